#pragma once
// Starting exchanges in tests and waiting for how they end.

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "core/net/curl_transport.h"

namespace aiq_test {

// Generous: a sanitizer build on a busy machine.
inline constexpr std::chrono::seconds kPatience{60};

inline aiq::HttpRequest post(const std::string& url, std::string body = "{}") {
  aiq::HttpRequest request;
  request.url = url;
  request.headers = {{"content-type", "application/json"}};
  request.body = std::move(body);
  return request;
}

struct Pending {
  aiq::TransferId id;
  std::future<aiq::HttpResult> result;

  aiq::HttpResult get() {
    REQUIRE(result.wait_for(kPatience) == std::future_status::ready);
    return result.get();
  }
};

inline Pending begin(aiq::Transport& transport, aiq::HttpRequest request) {
  auto promise = std::make_shared<std::promise<aiq::HttpResult>>();
  auto future = promise->get_future();
  const auto id =
      transport.start([request] { return request; },
                      [promise](aiq::HttpResult result) { promise->set_value(std::move(result)); });
  return {id, std::move(future)};
}

inline aiq::HttpResult fetch(aiq::Transport& transport, aiq::HttpRequest request) {
  return begin(transport, std::move(request)).get();
}

}  // namespace aiq_test
