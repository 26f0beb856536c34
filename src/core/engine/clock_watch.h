#pragma once
// Notices that the wall clock was set back, by comparing its pace with the monotonic clock's.

#include <optional>

#include "core/base/clock.h"
#include "core/base/duration.h"

namespace aiq {

class ClockWatch {
 public:
  // What a clock is steered by little by little (a service of time slews by 1 ms in 2 s at most) is
  // no step.
  static constexpr DurationMs kStepMs = 1'000;

  // By how much it was set back since the last call, in ms; nullopt: by less than kStepMs. A step
  // forward is not told from a machine that slept.
  [[nodiscard]] std::optional<DurationMs> set_back(UnixMs wall, MonoMs mono) {
    const DurationMs before = ahead_;
    const bool first = !begun_;
    begun_ = true;
    ahead_ = wall - mono;
    if (first || before - ahead_ < kStepMs) return std::nullopt;
    return before - ahead_;
  }

 private:
  bool begun_ = false;
  DurationMs ahead_ = 0;  // of the wall clock
};

}  // namespace aiq
