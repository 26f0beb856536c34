#pragma once
// Answers and calls for the tests of the vendor adapters.

#include <doctest/doctest.h>

#include <string>

#include "core/vendor/vendor.h"

namespace aiq_test {

inline constexpr aiq::UnixMs kNow = 1'772'323'200'000;  // 2026-03-01T00:00:00Z

inline aiq::HttpResult http(int status, std::string body, aiq::HttpHeaders headers = {}) {
  aiq::HttpResult result;
  result.status = status;
  result.body = std::move(body);
  result.headers = std::move(headers);
  result.sent = true;
  return result;
}

inline aiq::VendorReply decode(const std::string& api, const aiq::HttpResult& result,
                               std::optional<aiq::Endpoint> endpoint = std::nullopt) {
  const aiq::Vendor* vendor = aiq::find_vendor(api);
  REQUIRE(vendor != nullptr);
  aiq::VendorCall call;
  call.model = "m";
  call.endpoint = endpoint.value_or(vendor->default_endpoint());
  call.body = "{}";
  return vendor->decode(call, result, kNow);
}

// A whole chat answer around `message` and `usage`, both JSON.
inline std::string chat(const std::string& message = R"({"role":"assistant","content":"hello"})",
                        const std::string& usage = R"({"prompt_tokens":24,"completion_tokens":15})",
                        const std::string& finish = "stop") {
  return R"({"id":"c","object":"chat.completion","choices":[{"index":0,"message":)" + message +
         R"(,"finish_reason":")" + finish + R"("}],"usage":)" + usage + "}";
}

inline std::string message(const std::string& content = R"([{"type":"text","text":"hello"}])",
                           const std::string& usage = R"({"input_tokens":3,"output_tokens":5})",
                           const std::string& stop = "end_turn") {
  return R"({"id":"m","type":"message","role":"assistant","content":)" + content +
         R"(,"stop_reason":")" + stop + R"(","usage":)" + usage + "}";
}

// Names in failure messages instead of numbers.
inline std::string outcome(const aiq::AttemptResult& result) {
  return std::string(aiq::to_string(result.outcome));
}
inline std::string billed(const aiq::AttemptResult& result) {
  return std::string(aiq::to_string(result.billed));
}
inline std::string state(const aiq::AttemptResult& result) {
  return std::string(aiq::to_string(result.usage_state));
}

}  // namespace aiq_test
