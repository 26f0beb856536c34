#pragma once
// A clock that moves only when a test says so. Thread-safe.

#include <atomic>

#include "core/base/clock.h"

namespace aiq::test {

class ManualClock final : public Clock {
 public:
  explicit ManualClock(UnixMs start = 1'800'000'000'000) : wall_(start) {}
  [[nodiscard]] UnixMs wall_ms() const override { return wall_; }
  [[nodiscard]] MonoMs mono_ms() const override { return mono_; }
  void advance(DurationMs ms) {
    wall_ += ms;
    mono_ += ms;
  }
  void set_wall(UnixMs at) { wall_ = at; }

 private:
  std::atomic<UnixMs> wall_;
  std::atomic<MonoMs> mono_{1'000};
};

}  // namespace aiq::test
