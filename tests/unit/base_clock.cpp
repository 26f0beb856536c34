#include "core/base/clock.h"

#include <doctest/doctest.h>

#include <chrono>

using namespace aiq;

TEST_CASE("clock: wall time is milliseconds since 1970") {
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const UnixMs before = now();
  const UnixMs read = system_clock().wall_ms();
  const UnixMs after = now();
  CHECK(read >= before);
  CHECK(read <= after);
}

TEST_CASE("clock: monotonic time never goes back and moves on") {
  const Clock& clock = system_clock();
  const MonoMs first = clock.mono_ms();
  MonoMs last = first;
  // Busy, so that no step between two readings is missed; ends as soon as 3 ms have passed.
  while (last < first + 3) {
    const MonoMs read = clock.mono_ms();
    REQUIRE(read >= last);
    last = read;
  }
  CHECK(last >= first + 3);
}
