// Timeouts kept apart, cancelling, stopping, many at once.

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "unit/net_fetch.h"
#include "unit/net_raw_server.h"

using aiq::HttpResult;
using aiq::make_curl_transport;
using aiq_test::begin;
using aiq_test::fetch;
using aiq_test::kPatience;
using aiq_test::Peer;
using aiq_test::Pending;
using aiq_test::post;
using aiq_test::RawServer;
using Failure = aiq::HttpResult::Failure;

namespace {

// Counts up; waits until a number is reached.
class Meeting {
 public:
  void arrive() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  [[nodiscard]] bool wait_for(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;  // guarded by mutex_
};

}  // namespace

TEST_CASE("timeouts: no connection in time is not sent") {
  // A listener whose queue is full lets further connections hang.
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener, generic, size) == 0);
  REQUIRE(::listen(listener, 0) == 0);
  REQUIRE(::getsockname(listener, generic, &size) == 0);
  std::vector<int> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::connect(fillers.back(), generic, size);
  }
  const auto transport = make_curl_transport({.threads = 1});
  auto request = post("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/");
  request.connect_timeout_ms = 200;
  const auto result = fetch(*transport, request);
  CHECK(result.failure == Failure::connect_timeout);
  CHECK_FALSE(result.sent);
  CHECK(result.total_ms >= 200);
  // A total timeout below the connect timeout: still nothing was sent.
  request.connect_timeout_ms = 60'000;
  request.total_timeout_ms = 100;
  CHECK(fetch(*transport, request).failure == Failure::connect_timeout);
  for (const int fd : fillers)
    ::close(fd);
  ::close(listener);
}

TEST_CASE("timeouts: a TLS handshake that hangs counts to the connect timeout") {
  RawServer server([](Peer& peer) { peer.wait_closed(); });
  const auto transport = make_curl_transport({.threads = 1});
  auto request = post("https://127.0.0.1:" + std::to_string(server.port()) + "/");
  request.connect_timeout_ms = 200;
  const auto result = fetch(*transport, request);
  CHECK(result.failure == Failure::connect_timeout);
  CHECK_FALSE(result.sent);
}

TEST_CASE("timeouts: silence after the request is the first-byte timeout") {
  RawServer server([](Peer& peer) {
    if (peer.read_request()) peer.wait_closed();
  });
  const auto transport = make_curl_transport({.threads = 1});
  auto request = post(server.url());
  request.first_byte_timeout_ms = 200;
  const auto result = fetch(*transport, request);
  CHECK(result.failure == Failure::first_byte_timeout);
  CHECK(result.sent);
  CHECK(result.status == 0);
  CHECK(result.total_ms >= 200);
  CHECK_FALSE(result.first_byte_ms.has_value());
}

TEST_CASE("timeouts: once an answer has begun only the total timeout counts") {
  for (const char* beginning :
       {"HTTP/1.1 200 OK\r\nX", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"}) {
    CAPTURE(beginning);
    RawServer server([&](Peer& peer) {
      if (!peer.read_request()) return;
      peer.send(beginning);
      peer.wait_closed();
    });
    const auto transport = make_curl_transport({.threads = 1});
    auto request = post(server.url());
    request.first_byte_timeout_ms = 300;
    request.total_timeout_ms = 900;
    const auto result = fetch(*transport, request);
    CHECK(result.failure == Failure::total_timeout);
    CHECK(result.sent);
    CHECK(result.total_ms >= 900);
  }
}

TEST_CASE("timeouts: a body that the server does not take ends by the total timeout") {
  RawServer server([](Peer& peer) {
    if (peer.read_any()) peer.hold();
  });
  const auto transport = make_curl_transport({.threads = 1});
  auto request = post(server.url(), std::string(32 << 20, 'x'));
  request.first_byte_timeout_ms = 100;
  request.total_timeout_ms = 700;
  const auto result = fetch(*transport, request);
  CHECK(result.failure == Failure::total_timeout);
  CHECK(result.sent);
}

TEST_CASE("cancel: a running exchange ends at once and its connection with it") {
  Meeting arrived, closed;
  RawServer server([&](Peer& peer) {
    if (!peer.read_request()) return;
    arrived.arrive();
    peer.wait_closed();
    closed.arrive();
  });
  const auto transport = make_curl_transport({.threads = 2});
  std::vector<Pending> pending;
  for (int i = 0; i < 4; ++i)
    pending.push_back(begin(*transport, post(server.url())));
  REQUIRE(arrived.wait_for(4));
  for (auto& p : pending)
    transport->cancel(p.id);
  for (auto& p : pending) {
    const auto result = p.get();
    CHECK(result.failure == Failure::cancelled);
    CHECK(result.sent);
    transport->cancel(p.id);  // ended: nothing happens
  }
  CHECK(closed.wait_for(4));
  transport->cancel(0);
  transport->cancel(1'000'000);
}

TEST_CASE("cancel: right after the start, each exchange ends exactly once") {
  RawServer server([](Peer& peer) {
    while (peer.read_request())
      peer.answer("{}");
  });
  const auto transport = make_curl_transport({.threads = 2});
  for (int i = 0; i < 200; ++i) {
    auto pending = begin(*transport, post(server.url()));
    transport->cancel(pending.id);
    const auto result = pending.get();
    const bool ended = result.failure == Failure::cancelled || result.failure == Failure::none;
    CHECK(ended);
    if (!result.sent) CHECK(result.failure == Failure::cancelled);
  }
}

TEST_CASE("stop: everything ends as cancelled before stop returns") {
  Meeting arrived;
  RawServer server([&](Peer& peer) {
    if (!peer.read_request()) return;
    arrived.arrive();
    peer.wait_closed();
  });
  const auto transport = make_curl_transport({.threads = 2});
  std::atomic<int> cancelled{0};
  const auto count = [&](HttpResult result) {
    if (result.failure == Failure::cancelled) ++cancelled;
  };
  for (int i = 0; i < 10; ++i)
    transport->start([&] { return post(server.url()); }, count);
  REQUIRE(arrived.wait_for(10));
  for (int i = 0; i < 10; ++i)
    transport->start([&] { return post(server.url()); }, count);
  transport->stop();
  CHECK(cancelled == 20);
  transport->stop();
}

TEST_CASE("transport: 600 requests are in flight at once and all complete") {
  constexpr int kCount = 600;
  Meeting arrived;
  std::atomic<bool> all_there{true};
  RawServer server([&](Peer& peer) {
    while (peer.read_request()) {
      arrived.arrive();
      if (!arrived.wait_for(kCount)) all_there = false;
      peer.answer(peer.body);
    }
  });
  const auto transport = make_curl_transport({.threads = 2, .max_in_flight = 256});
  std::vector<Pending> pending;
  for (int round = 0; round < 2; ++round) {
    pending.clear();
    for (int i = 0; i < kCount; ++i) {
      pending.push_back(begin(*transport, post(server.url(), std::to_string(i))));
    }
    for (int i = 0; i < kCount; ++i) {
      const auto result = pending[static_cast<std::size_t>(i)].get();
      CHECK(result.failure == Failure::none);
      CHECK(result.body == std::to_string(i));
    }
  }
  CHECK(all_there);
  CHECK(server.requests() == 2 * kCount);
  CHECK(server.connections() < 2 * kCount);  // the second round finds pooled connections
}

TEST_CASE("transport: a callback may start the next exchange, from any thread") {
  RawServer server([](Peer& peer) {
    while (peer.read_request())
      peer.answer("{}");
  });
  const auto transport = make_curl_transport({.threads = 2});
  Meeting ended;
  std::function<void(int)> chain = [&](int left) {
    transport->start([&] { return post(server.url()); },
                     [&, left](HttpResult result) {
                       if (result.failure == Failure::none && left > 0) chain(left - 1);
                       ended.arrive();
                     });
  };
  std::vector<std::thread> starters;
  for (int i = 0; i < 4; ++i)
    starters.emplace_back([&] { chain(49); });
  for (auto& starter : starters)
    starter.join();
  CHECK(ended.wait_for(200));
  transport->stop();
  CHECK(server.requests() == 200);
}
