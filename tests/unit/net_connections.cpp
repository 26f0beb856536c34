// Connections: reuse, death, refusal, proxies; and that one start() is at most one request.

#include <doctest/doctest.h>

#include <cstdlib>

#include "unit/net_fetch.h"
#include "unit/net_raw_server.h"

using aiq::make_curl_transport;
using aiq_test::begin;
using aiq_test::fetch;
using aiq_test::kPatience;
using aiq_test::Peer;
using aiq_test::post;
using aiq_test::RawServer;
using Failure = aiq::HttpResult::Failure;

TEST_CASE("connections: one connection carries many requests, one after the other") {
  RawServer server([](Peer& peer) {
    while (peer.read_request())
      peer.answer(peer.body);
  });
  const auto transport = make_curl_transport({.threads = 1});
  for (int i = 0; i < 20; ++i) {
    const auto result = fetch(*transport, post(server.url(), std::to_string(i)));
    CHECK(result.body == std::to_string(i));
    REQUIRE(result.connect_ms.has_value());
    if (i > 0) CHECK(*result.connect_ms == 0);
  }
  CHECK(server.connections() == 1);
  CHECK(server.requests() == 20);
}

TEST_CASE("connections: a connection older than allowed is not used again") {
  RawServer server([](Peer& peer) {
    while (peer.read_request())
      peer.answer("{}");
  });
  const auto transport = make_curl_transport({.threads = 1});
  auto request = post(server.url());
  request.max_connection_age_ms = 1000;
  CHECK(fetch(*transport, request).failure == Failure::none);
  CHECK(fetch(*transport, request).failure == Failure::none);
  CHECK(server.connections() == 2);
}

TEST_CASE(
    "connections: one that the server closed while idle is replaced before it is written to") {
  std::promise<void> closed;
  RawServer server([&](Peer& peer) {
    while (peer.read_request()) {
      peer.answer("{}");
      if (peer.number() > 0) continue;
      peer.close();
      closed.set_value();
      return;
    }
  });
  const auto transport = make_curl_transport({.threads = 1});
  CHECK(fetch(*transport, post(server.url())).failure == Failure::none);
  REQUIRE(closed.get_future().wait_for(kPatience) == std::future_status::ready);
  CHECK(fetch(*transport, post(server.url())).failure == Failure::none);
  CHECK(server.connections() == 2);
  CHECK(server.requests() == 2);
}

TEST_CASE("connections: a reused one that dies after the request was written is not tried again") {
  for (const bool by_reset : {false, true}) {
    CAPTURE(by_reset);
    RawServer server([&](Peer& peer) {
      if (!peer.read_request()) return;
      peer.answer("{}");
      if (!peer.read_request()) return;
      if (by_reset) peer.reset();
    });
    const auto transport = make_curl_transport({.threads = 1});
    CHECK(fetch(*transport, post(server.url())).failure == Failure::none);
    const auto second = fetch(*transport, post(server.url()));
    CHECK(second.failure == Failure::broken);
    CHECK(second.sent);
    CHECK(second.status == 0);
    transport->stop();
    server.stop();
    CHECK(server.requests() == 2);
    CHECK(server.connections() <= 2);  // perhaps connected again, but never written to again
  }
}

TEST_CASE("connections: a reused one that dies while the request is written is not tried again") {
  // The server reads the beginning and resets, so that curl knows it before the body is through.
  RawServer server([&](Peer& peer) {
    if (!peer.read_request()) return;
    peer.answer("{}");
    if (peer.read_any()) peer.reset();
  });
  const auto transport = make_curl_transport({.threads = 1});
  CHECK(fetch(*transport, post(server.url())).failure == Failure::none);
  const auto second = fetch(*transport, post(server.url(), std::string(8 << 20, 'x')));
  CHECK(second.failure == Failure::broken);
  CHECK(second.sent);
  transport->stop();
  server.stop();
  CHECK(server.connections() <= 2);
  CHECK(server.requests() == 1);
}

TEST_CASE("connections: an empty body on a reused one that dies is not sent again either") {
  RawServer server([&](Peer& peer) {
    if (!peer.read_request()) return;
    peer.answer("{}");
    peer.read_request();
  });
  const auto transport = make_curl_transport({.threads = 1});
  CHECK(fetch(*transport, post(server.url(), "")).failure == Failure::none);
  CHECK(fetch(*transport, post(server.url(), "")).failure == Failure::broken);
  transport->stop();
  server.stop();
  CHECK(server.requests() == 2);
}

TEST_CASE("connections: a refused one is not sent") {
  RawServer server([](Peer&) {});
  const std::string url = server.url();
  server.stop();
  const auto transport = make_curl_transport({.threads = 1});
  const auto result = fetch(*transport, post(url));
  CHECK(result.failure == Failure::not_sent);
  CHECK_FALSE(result.sent);
  CHECK(result.status == 0);
  CHECK(result.failure_text != "");
  CHECK_FALSE(result.connect_ms.has_value());
}

TEST_CASE("connections: a TLS failure is not sent") {
  RawServer server([](Peer& peer) {
    peer.read_any();
    peer.send("this is not TLS\r\n");
  });
  const auto transport = make_curl_transport({.threads = 1});
  const auto result =
      fetch(*transport, post("https://127.0.0.1:" + std::to_string(server.port()) + "/"));
  CHECK(result.failure == Failure::not_sent);
  CHECK_FALSE(result.sent);
}

TEST_CASE("connections: what can't be a request is refused before anything is sent") {
  RawServer server([](Peer& peer) {
    if (peer.read_request()) peer.answer("{}");
  });
  const auto transport = make_curl_transport({.threads = 1});
  auto injected = post(server.url());
  injected.headers.emplace_back("x-a", "1\r\nX-B: 2");
  auto named = post(server.url());
  named.headers.emplace_back("x a", "1");
  for (const auto& request : {injected, named, post("file:///etc/hostname"), post("not a url"),
                              post("ftp://127.0.0.1/x"), post("")}) {
    CAPTURE(request.url);
    const auto result = fetch(*transport, request);
    CHECK(result.failure == Failure::not_sent);
    CHECK_FALSE(result.sent);
  }
  CHECK(server.connections() == 0);
}

TEST_CASE("connections: a request that can't be made ends as not sent") {
  const auto transport = make_curl_transport({.threads = 1});
  std::promise<aiq::HttpResult> ended;
  transport->start([]() -> aiq::HttpRequest { throw std::runtime_error("no credential"); },
                   [&](aiq::HttpResult result) { ended.set_value(std::move(result)); });
  auto future = ended.get_future();
  REQUIRE(future.wait_for(kPatience) == std::future_status::ready);
  const auto result = future.get();
  CHECK(result.failure == Failure::not_sent);
  CHECK(result.failure_text == "no credential");
}

TEST_CASE("connections: the environment's proxies are not used, a configured one is") {
  RawServer proxy([](Peer& peer) {
    if (peer.read_request()) peer.answer("through the proxy");
  });
  RawServer server([](Peer& peer) {
    if (peer.read_request()) peer.answer("direct");
  });
  const std::string proxy_url = "http://127.0.0.1:" + std::to_string(proxy.port());
  setenv("http_proxy", proxy_url.c_str(), 1);
  setenv("all_proxy", proxy_url.c_str(), 1);
  const auto transport = make_curl_transport({.threads = 1});
  CHECK(fetch(*transport, post(server.url())).body == "direct");
  unsetenv("http_proxy");
  unsetenv("all_proxy");
  setenv("no_proxy", "*", 1);
  auto request = post(server.url());
  request.proxy = proxy_url;
  CHECK(fetch(*transport, request).body == "through the proxy");
  unsetenv("no_proxy");
}
