#include <doctest/doctest.h>

#include <deque>
#include <string>

#include "core/base/random.h"
#include "sim/latency.h"
#include "sim/limits.h"

using namespace aiq::sim;

TEST_CASE("sim window: a unit is free again after exactly 60 s") {
  SlidingWindow window(2);
  CHECK(window.wait_for(1000, 1) == 0);
  window.take(1000, 1);
  window.take(5000, 1);
  CHECK(window.remaining(5000) == 0);
  CHECK(window.wait_for(5000, 1) == 56'000);
  CHECK(window.wait_for(5000, 2) == 60'000);
  CHECK(window.wait_for(60'999, 1) == 1);
  CHECK(window.wait_for(61'000, 1) == 0);
  CHECK(window.full_in(61'000) == 4000);
  CHECK(window.full_in(65'000) == 0);
}

TEST_CASE("sim window: what is above the limit never fits") {
  SlidingWindow window(10);
  CHECK_FALSE(window.wait_for(0, 11));
  CHECK(window.wait_for(0, 10) == 0);
}

TEST_CASE("sim window: no 60 s hold more than the limit, whatever arrives") {
  constexpr std::uint64_t kSeed = 20260301;
  CAPTURE(kSeed);
  aiq::SeededRandom random(kSeed);
  SlidingWindow window(100);
  std::deque<std::pair<aiq::MonoMs, std::int64_t>> taken;
  aiq::MonoMs now = 0;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += static_cast<aiq::MonoMs>(random.below(3000));
    const auto amount = static_cast<std::int64_t>(random.below(40));
    std::int64_t sum = 0;
    while (!taken.empty() && taken.front().first <= now - kWindowMs)
      taken.pop_front();
    for (const auto& [at, units] : taken)
      sum += units;
    const auto wait = window.wait_for(now, amount);
    REQUIRE(wait);
    REQUIRE((*wait == 0) == (sum + amount <= 100));
    if (*wait > 0) {
      ++refused;
      continue;
    }
    window.take(now, amount);
    taken.emplace_back(now, amount);
  }
  CHECK(refused > 100);
}

TEST_CASE("sim limits: a refusal takes nothing and says when to come back") {
  Limits limits({.rpm = 2, .tpm = 100, .max_in_flight = 0});
  CHECK_FALSE(limits.admit(0, 60, 0));
  const auto tokens = limits.admit(100, 60, 0);
  REQUIRE(tokens);
  CHECK(tokens->limit == "tpm");
  CHECK(tokens->retry_after_s == 60);
  CHECK_FALSE(limits.admit(200, 40, 0));
  const auto requests = limits.admit(20'300, 0, 0);
  REQUIRE(requests);
  CHECK(requests->limit == "rpm");
  CHECK(requests->retry_after_s == 40);
  const auto too_large = limits.admit(300'000, 101, 0);
  REQUIRE(too_large);
  CHECK(too_large->limit == "tpm");
  CHECK_FALSE(limits.admit(300'000, 100, 0));
}

TEST_CASE("sim limits: in flight") {
  Limits limits({.rpm = 0, .tpm = 0, .max_in_flight = 2});
  CHECK_FALSE(limits.admit(0, 1'000'000, 1));
  CHECK(limits.admit(0, 1, 2)->limit == "max_in_flight");
  CHECK(limits.rate_headers(false, 0, 0).empty());
}

TEST_CASE("sim limits: rate headers in the words of each vendor") {
  Limits limits({.rpm = 10, .tpm = 1000, .max_in_flight = 0});
  CHECK_FALSE(limits.admit(500, 300, 0));
  const Headers openai = limits.rate_headers(false, 2000, 0);
  CHECK(find_header(openai, "x-ratelimit-limit-requests") == "10");
  CHECK(find_header(openai, "x-ratelimit-remaining-requests") == "9");
  CHECK(find_header(openai, "x-ratelimit-remaining-tokens") == "700");
  CHECK(find_header(openai, "x-ratelimit-reset-tokens") == "58.5s");
  const Headers anthropic = limits.rate_headers(true, 2000, 0);
  CHECK(find_header(anthropic, "anthropic-ratelimit-tokens-remaining") == "700");
  CHECK(find_header(anthropic, "anthropic-ratelimit-requests-reset") == "1970-01-01T00:00:58.500Z");
}

TEST_CASE("sim limits: durations as Go prints them") {
  CHECK(go_duration(0) == "0s");
  CHECK(go_duration(12) == "12ms");
  CHECK(go_duration(1000) == "1s");
  CHECK(go_duration(1500) == "1.5s");
  CHECK(go_duration(1005) == "1.005s");
  CHECK(go_duration(360'000) == "6m0s");
  CHECK(go_duration(179'560) == "2m59.56s");
  CHECK(go_duration(3'600'000) == "1h0m0s");
  CHECK(go_duration(85'668'648) == "23h47m48.648s");
}

TEST_CASE("sim latency: one duration, or two in rising order") {
  CHECK(parse_latency("50ms")->max == 50);
  CHECK(parse_latency("50ms..2s")->min == 50);
  CHECK(parse_latency("50ms..2s")->max == 2000);
  for (const char* text : {"", "..", "50ms..", "..50ms", "2s..1s", "1s..2s..3s", "50", "fast"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_latency(text));
  }
}
