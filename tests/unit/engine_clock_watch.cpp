#include <doctest/doctest.h>

#include "core/engine/clock_watch.h"
#include "support/manual_clock.h"

namespace aiq::test {
namespace {

TEST_CASE("clock watch: a step back is told once, with its size") {
  ManualClock clock;
  ClockWatch watch;
  const auto look = [&] { return watch.set_back(clock.wall_ms(), clock.mono_ms()); };
  CHECK_FALSE(look().has_value());
  clock.advance(10'000);
  CHECK_FALSE(look().has_value());
  clock.advance(500);
  clock.set_wall(clock.wall_ms() - 3'600'000);
  CHECK(look() == 3'600'000);
  clock.advance(500);
  CHECK_FALSE(look().has_value());
}

TEST_CASE("clock watch: steps forward and a slow clock are no steps back") {
  ManualClock clock;
  ClockWatch watch;
  const auto look = [&] { return watch.set_back(clock.wall_ms(), clock.mono_ms()); };
  CHECK_FALSE(look().has_value());
  clock.set_wall(clock.wall_ms() + 86'400'000);
  CHECK_FALSE(look().has_value());
  for (int second = 0; second < 7'200; ++second) {  // an hour of slewing makes up 1.8 s
    clock.advance(1'000);
    clock.set_wall(clock.wall_ms() - (second % 4 == 0 ? 1 : 0));
    REQUIRE_FALSE(look().has_value());
  }
}

}  // namespace
}  // namespace aiq::test
