#pragma once
// Time. Two clocks that are never mixed: the wall clock says when something happened or is due
// (it may jump); the monotonic clock measures waits, leases and timeouts (it never goes back).

#include <cstdint>

namespace aiq {

using UnixMs = std::int64_t;  // UTC, milliseconds since 1970-01-01
using MonoMs = std::int64_t;  // CLOCK_MONOTONIC, milliseconds since an arbitrary start

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual UnixMs wall_ms() const = 0;
  [[nodiscard]] virtual MonoMs mono_ms() const = 0;
};

// The clocks of this machine. Thread-safe.
Clock& system_clock();

}  // namespace aiq
