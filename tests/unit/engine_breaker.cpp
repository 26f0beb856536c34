#include "core/engine/breaker.h"

#include <doctest/doctest.h>

using namespace aiq;

namespace {

constexpr UnixMs kNow = 1'800'000'000'000;
using Change = Breaker::Change;
using State = Breaker::State;

Breaker stored(const Breaker& breaker) {
  BreakerRow row;
  breaker.write_to(row);
  return Breaker(row);
}

// An open one, until kNow + 15 s.
Breaker opened() {
  Breaker breaker;
  for (int i = 0; i < 9; ++i)
    REQUIRE(breaker.note({}, true, kNow, kNow) == Change::counted);
  REQUIRE(breaker.note({}, true, kNow, kNow) == Change::opened);
  return breaker;
}

}  // namespace

TEST_CASE("breaker: answers alone cost nothing") {
  Breaker breaker;
  for (int i = 0; i < 100; ++i)
    CHECK(breaker.note({}, false, kNow, kNow) == Change::none);
  CHECK(breaker.state(kNow) == State::closed);
}

TEST_CASE("breaker: opens at the share, not below it and not by few") {
  Breaker breaker;
  // The first failure begins the count: 1 of 1, 1 of 2, ...
  CHECK(breaker.note({}, true, kNow, kNow) == Change::counted);
  for (int i = 0; i < 6; ++i)
    CHECK(breaker.note({}, false, kNow, kNow) == Change::counted);
  for (int i = 0; i < 4; ++i) {
    breaker = stored(breaker);
    CHECK(breaker.note({}, true, kNow, kNow) == Change::counted);  // 5 of 11 at the end
  }
  CHECK(breaker.note({}, true, kNow, kNow) == Change::opened);  // 6 of 12
  CHECK(breaker.state(kNow + 14'999) == State::open);
  CHECK(breaker.state(kNow + 15'000) == State::half_open);
}

TEST_CASE("breaker: failures older than the window do not count") {
  Breaker breaker;
  for (int i = 0; i < 9; ++i)
    (void)breaker.note({}, true, kNow, kNow);
  CHECK(breaker.note({}, true, kNow + 31'000, kNow + 31'000) == Change::counted);
  CHECK(breaker.note({}, false, kNow + 90'000, kNow + 90'000) == Change::forgotten);
}

TEST_CASE("breaker: only what was sent afterwards probes; enough answers close it") {
  Breaker breaker = stored(opened());
  const UnixMs later = kNow + 20'000;
  CHECK(breaker.note({}, true, kNow + 1, later) == Change::none);
  CHECK(breaker.note({}, false, kNow + 1, later) == Change::none);
  CHECK(breaker.note({}, false, later, later) == Change::counted);
  breaker = stored(breaker);
  CHECK(breaker.note({}, false, later, later + 5) == Change::closed);
  CHECK(breaker.state(later) == State::closed);
}

TEST_CASE("breaker: each failed probe doubles the time, up to eight times") {
  Breaker breaker = opened();
  UnixMs now = kNow;
  for (const DurationMs wait : {15'000, 30'000, 60'000, 120'000, 120'000}) {
    CHECK(breaker.open_until() == now + wait);
    now = *breaker.open_until();
    breaker = stored(breaker);
    CHECK(breaker.note({}, true, now, now) == Change::opened);
  }
}

TEST_CASE("breaker: which ends speak of the vendor's health") {
  CHECK(fails_vendor(Outcome::server_error) == true);
  CHECK(fails_vendor(Outcome::overloaded) == true);
  CHECK(fails_vendor(Outcome::connect_timeout) == true);
  CHECK(fails_vendor(Outcome::completed) == false);
  CHECK(fails_vendor(Outcome::rejected) == false);
  for (const Outcome other : {Outcome::rate_limited, Outcome::auth, Outcome::vendor_quota,
                              Outcome::released, Outcome::cancelled, Outcome::unknown})
    CHECK_FALSE(fails_vendor(other).has_value());
}
