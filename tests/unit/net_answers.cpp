// Answers, whole and broken, and what each ends as.

#include <doctest/doctest.h>

#include <cstdlib>

#include "unit/net_fetch.h"
#include "unit/net_raw_server.h"

using aiq::HttpResult;
using aiq::make_curl_transport;
using aiq_test::fetch;
using aiq_test::Peer;
using aiq_test::post;
using aiq_test::RawServer;
using Failure = aiq::HttpResult::Failure;

namespace {

// One exchange with a server that reads the request and then does `act`.
HttpResult exchange(const std::function<void(Peer&)>& act) {
  RawServer server([&](Peer& peer) {
    if (peer.read_request()) act(peer);
  });
  const auto transport = make_curl_transport({.threads = 1});
  auto result = fetch(*transport, post(server.url()));
  CHECK(server.requests() == 1);
  return result;
}

}  // namespace

TEST_CASE("transport: a whole answer comes back with status, headers and times") {
  const auto result = exchange([](Peer& peer) {
    CHECK(peer.body == "{}");
    peer.answer("{\"ok\":true}", "X-Request-ID: req-1 \r\nX-Two: a\r\nX-Two: b\r\n");
  });
  CHECK(result.failure == Failure::none);
  CHECK(result.failure_text == "");
  CHECK(result.status == 200);
  CHECK(result.body == "{\"ok\":true}");
  CHECK(result.sent);
  REQUIRE(aiq::find_header(result.headers, "x-request-id") != nullptr);
  CHECK(*aiq::find_header(result.headers, "x-request-id") == "req-1");
  CHECK(*aiq::find_header(result.headers, "x-two") == "a");
  REQUIRE(result.connect_ms.has_value());
  REQUIRE(result.first_byte_ms.has_value());
  CHECK(*result.connect_ms <= *result.first_byte_ms);
  CHECK(*result.first_byte_ms <= result.total_ms);
}

TEST_CASE("transport: the request is a plain HTTP/1.1 POST of exactly the given body") {
  std::string head, body;
  RawServer server([&](Peer& peer) {
    if (!peer.read_request()) return;
    head = peer.head;
    body = peer.body;
    peer.answer("{}");
  });
  const auto transport = make_curl_transport({.threads = 1});
  auto request = post(server.url("/v1/x?y=z"), std::string(300'000, 'a') + "\0b");
  request.headers.emplace_back("x-empty", "");
  CHECK(fetch(*transport, request).failure == Failure::none);
  server.stop();
  CHECK(body == request.body);
  CHECK(head.rfind("POST /v1/x?y=z HTTP/1.1\r\n", 0) == 0);
  CHECK(head.find("content-type: application/json\r\n") != std::string::npos);
  CHECK(head.find("x-empty:") != std::string::npos);
  CHECK(head.find("Expect") == std::string::npos);
  CHECK(head.find("Accept-Encoding") == std::string::npos);
  CHECK(head.find("Transfer-Encoding") == std::string::npos);
}

TEST_CASE("transport: an empty body is sent and answered") {
  RawServer server([](Peer& peer) {
    if (peer.read_request()) peer.answer("{}");
  });
  const auto transport = make_curl_transport({.threads = 1});
  CHECK(fetch(*transport, post(server.url(), "")).failure == Failure::none);
}

TEST_CASE("transport: chunks are joined, trailers and interim answers are left out") {
  const auto result = exchange([](Peer& peer) {
    peer.send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n");
    peer.send("3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Trailer: t\r\n\r\n");
    peer.wait_closed();
  });
  CHECK(result.failure == Failure::none);
  CHECK(result.status == 200);
  CHECK(result.body == "abcdefg");
  CHECK(aiq::find_header(result.headers, "x-a") != nullptr);
  CHECK(aiq::find_header(result.headers, "link") == nullptr);
  CHECK(aiq::find_header(result.headers, "x-trailer") == nullptr);
}

TEST_CASE("transport: every status is an answer and redirects are not followed") {
  for (const char* status :
       {"301 Moved", "302 Found", "307 Temporary", "401 No", "500 Oh", "529 Busy"}) {
    CAPTURE(status);
    const auto result = exchange([&](Peer& peer) {
      peer.send(
          std::string("HTTP/1.1 ") + status +
          "\r\nLocation: /elsewhere\r\nWWW-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno");
      peer.wait_closed();
    });
    CHECK(result.failure == Failure::none);
    CHECK(result.status == std::atoi(status));
    CHECK(result.body == "no");
  }
}

TEST_CASE("transport: what breaks an exchange is told apart") {
  struct Case {
    const char* name;
    Failure failure;
    int status;
    std::function<void(Peer&)> act;
  };
  const std::vector<Case> cases = {
      {"closed before an answer", Failure::broken, 0, [](Peer& p) { p.close(); }},
      {"reset before an answer", Failure::broken, 0, [](Peer& p) { p.reset(); }},
      {"closed within the status line", Failure::broken, 0, [](Peer& p) { p.send("HTTP/1.1 2"); }},
      {"cut within the headers", Failure::cut, 200,
       [](Peer& p) { p.send("HTTP/1.1 200 OK\r\nContent-Le"); }},
      {"cut short of Content-Length", Failure::cut, 200,
       [](Peer& p) { p.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\""); }},
      {"cut before the first body byte", Failure::cut, 200,
       [](Peer& p) { p.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"); }},
      {"cut within a chunk", Failure::cut, 200,
       [](Peer& p) { p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"); }},
      {"cut before the last chunk", Failure::cut, 200,
       [](Peer& p) {
         p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
       }},
      {"a chunk without a size", Failure::cut, 200,
       [](Peer& p) {
         p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n");
       }},
      {"an answer that is not HTTP", Failure::malformed, 0,
       [](Peer& p) { p.send("<html>hello</html>\r\n\r\n"); }},
      {"a status that is not a number", Failure::malformed, 0,
       [](Peer& p) { p.send("HTTP/1.1 abc OK\r\n\r\n"); }},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto result = exchange(c.act);
    CHECK(static_cast<int>(result.failure) == static_cast<int>(c.failure));
    CHECK(result.status == c.status);
    CHECK(result.sent);
    CHECK(result.failure_text != "");
  }
}

TEST_CASE("transport: a reset in the middle of the body is a cut with what had come") {
  const auto result = exchange([](Peer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":");
    peer.reset();
  });
  CHECK(result.failure == Failure::cut);
  CHECK(result.status == 200);
}

TEST_CASE("transport: an answer above the limit is refused, announced or not") {
  for (const bool announced : {true, false}) {
    CAPTURE(announced);
    RawServer server([&](Peer& peer) {
      if (!peer.read_request()) return;
      const std::string length = announced ? "Content-Length: 1001\r\n" : "";
      peer.send("HTTP/1.1 200 OK\r\n" + length + "\r\n" + std::string(1001, 'x'));
      peer.close();
    });
    const auto transport = make_curl_transport({.threads = 1});
    auto request = post(server.url());
    request.max_response_bytes = 1000;
    const auto result = fetch(*transport, request);
    CHECK(result.failure == Failure::too_large);
    CHECK(result.status == 200);
    CHECK(result.body.size() <= 1000);
    request.max_response_bytes = 1001;
    CHECK(fetch(*transport, request).failure == Failure::none);
  }
}

TEST_CASE("transport: a flood of headers is refused") {
  const std::string line = "X-Flood: " + std::string(1000, 'x') + "\r\n";
  const auto many = exchange([&](Peer& peer) {
    peer.send("HTTP/1.1 200 OK\r\n");
    while (peer.send(line)) {
    }
  });
  CHECK(many.failure == Failure::malformed);
  const auto interim = exchange([&](Peer& peer) {
    while (peer.send("HTTP/1.1 100 Continue\r\n" + line + "\r\n")) {
    }
  });
  CHECK(interim.failure == Failure::malformed);
  const auto endless = exchange([&](Peer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nX-Long: ");
    while (peer.send(std::string(4096, 'x'))) {
    }
  });
  CHECK(endless.failure == Failure::malformed);
}

TEST_CASE("transport: no compressed answer is asked for or unpacked") {
  const auto result = exchange([](Peer& peer) {
    CHECK(peer.head.find("gzip") == std::string::npos);
    peer.answer("raw", "Content-Encoding: gzip\r\n");
  });
  CHECK(result.failure == Failure::none);
  CHECK(result.body == "raw");
}
