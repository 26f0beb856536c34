#include "core/engine/rate_window.h"

#include <doctest/doctest.h>

#include <deque>
#include <stdexcept>

#include "core/base/random.h"

using namespace aiq;

namespace {

constexpr UnixMs kNow = 1'800'000'000'000;
constexpr DurationMs kMinute = 60'000;

// An independent witness: the most that any 60 s have held.
class Journal {
 public:
  void add(UnixMs at, std::int64_t units) {
    all_.push_back({at, units});
    sum_ += units;
    while (all_.front().first + kMinute <= at) {
      sum_ -= all_.front().second;
      all_.pop_front();
    }
    most_ = std::max(most_, sum_);
    total_ += units;
  }
  [[nodiscard]] std::int64_t most() const { return most_; }
  [[nodiscard]] std::int64_t total() const { return total_; }

 private:
  std::deque<std::pair<UnixMs, std::int64_t>> all_;
  std::int64_t sum_ = 0, most_ = 0, total_ = 0;
};

// Through a row and back, as between any two transactions.
RateWindow stored(const RateWindow& window) {
  RateRow row;
  window.write_to(row);
  return RateWindow(row);
}

}  // namespace

TEST_CASE("rate window: a burst of 4 %, then one unit after the other") {
  RateWindow window;
  int taken = 0;
  while (window.fits(600, kNow, 1)) {
    window.take(600, kNow, 1);
    ++taken;
  }
  CHECK(taken == 24);
  const UnixMs next = window.fits_at(600, kNow, 1);
  CHECK(next == kNow + 106);  // 61 s / (600 - 24)
  CHECK_FALSE(window.fits(600, next - 1, 1));
  CHECK(window.fits(600, next, 1));
}

TEST_CASE("rate window: small limits are evenly spaced") {
  for (const std::int64_t limit : {1, 2, 5, 24}) {
    CAPTURE(limit);
    RateWindow window;
    REQUIRE(window.fits(limit, kNow, 1));
    window.take(limit, kNow, 1);
    CHECK(window.fits_at(limit, kNow, 1) >= kNow + 61'000 / limit);
  }
}

TEST_CASE("rate window: over any limit and size of takers, no 60 s hold more; the edge is used") {
  const auto seed = system_random().next();
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 60; ++round) {
    const auto limit = static_cast<std::int64_t>(1 + random.below(round % 3 == 0 ? 40 : 60'000));
    const auto largest =
        std::max<std::int64_t>(1, limit / (1 + static_cast<std::int64_t>(random.below(30))));
    CAPTURE(limit);
    CAPTURE(largest);
    RateWindow window;
    Journal journal;
    UnixMs now = kNow;
    const UnixMs end = kNow + 10 * kMinute;
    while (now < end) {
      const auto units =
          static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(largest)));
      const UnixMs at = window.fits_at(limit, now, units);
      REQUIRE(at - now <= 130'000);  // nothing waits for ever: at most two whole limits
      now = at;
      if (now >= end) break;
      REQUIRE(window.fits(limit, now, units));
      window.take(limit, now, units);
      journal.add(now, units);
      if (random.below(4) == 0) window = stored(window);
      if (random.below(50) == 0) now += static_cast<DurationMs>(random.below(5'000));
    }
    CHECK(journal.most() <= limit);
    if (largest * 25 <= limit) {
      // Ten minutes without the pauses: nearly ten times the limit.
      CHECK(journal.total() * 100 >= limit * 10 * 85);
    }
  }
}

TEST_CASE("rate window: who needs more than the bucket holds starts when it is full") {
  RateWindow window;
  window.take(60'000, kNow, 2'400);
  CHECK_FALSE(window.fits(60'000, kNow, 5'000));
  const UnixMs full = window.fits_at(60'000, kNow, 5'000);
  CHECK(full > kNow + 2'500);
  window.take(60'000, full, 5'000);
  // In debt: a small one waits until it is paid.
  CHECK(window.fits_at(60'000, full, 10) > full + 2'700);
  // Above the whole limit: alone in its minute.
  CHECK(window.fits_at(60'000, full, 70'000) >= full + kMinute);
  CHECK(RateWindow().fits(60'000, kNow, 70'000));
}

TEST_CASE("rate window: a lowered limit holds at once") {
  RateWindow window;
  UnixMs now = kNow;
  for (int i = 0; i < 300; ++i) {
    now = window.fits_at(600, now, 1);
    window.take(600, now, 1);
  }
  // About 29 s have passed; 300 within them: under a limit of 200 nothing more until they are old.
  CHECK(window.fits_at(200, now, 1) > now + 30'000);
}

TEST_CASE("rate window: usage corrects what was taken, in both rules") {
  RateWindow window;
  window.take(1'000, kNow, 40);
  CHECK_FALSE(window.fits(1'000, kNow, 40));
  window.correct(kNow, 40, 0);
  CHECK(window.fits(1'000, kNow, 40));
  window.take(1'000, kNow, 40);
  window.correct(kNow, 40, 940);
  CHECK(window.taken(kNow) == 940);
  CHECK(window.fits_at(1'000, kNow, 40) > kNow + 50'000);
  // Long ago: only the bucket remembers.
  window.correct(kNow - 10 * kMinute, 10, 0);
}

TEST_CASE("rate window: what the vendor counts beside us counts") {
  RateWindow window;
  window.take(100, kNow, 2);
  window.observe(kNow, 2, 98);
  CHECK(window.taken(kNow) == 2);
  window.observe(kNow, 90, 10);
  CHECK(window.taken(kNow) == 90);
  window.observe(kNow, 100, 0);
  CHECK(window.fits_at(100, kNow, 1) >= kNow + 60'000);
  RateWindow fresh;
  fresh.observe(kNow, 100, 0);
  CHECK_FALSE(fresh.fits(100, kNow, 1));
}

TEST_CASE("rate window: a clock that goes back gives nothing away") {
  RateWindow window;
  for (int i = 0; i < 24; ++i)
    window.take(600, kNow, 1);
  const UnixMs before = kNow - 3'600'000;
  CHECK_FALSE(window.fits(600, before, 1));
  window.take(600, before, 1);
  CHECK(stored(window).taken(kNow) == 25);
}

TEST_CASE("rate window: a row that was tampered with is refused") {
  for (const char* recent : {"x", "12", "12:", "12:a", "12:3 13"}) {
    RateRow row;
    row.recent = recent;
    CHECK_THROWS_AS(RateWindow{row}, std::invalid_argument);
  }
}
