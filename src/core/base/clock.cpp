#include "core/base/clock.h"

#include <ctime>

#include "core/base/check.h"

namespace aiq {
namespace {

std::int64_t read_ms(clockid_t id) {
  timespec at{};
  AIQ_CHECK(clock_gettime(id, &at) == 0);
  return std::int64_t{at.tv_sec} * 1000 + at.tv_nsec / 1'000'000;
}

class SystemClock final : public Clock {
 public:
  [[nodiscard]] UnixMs wall_ms() const override { return read_ms(CLOCK_REALTIME); }
  [[nodiscard]] MonoMs mono_ms() const override { return read_ms(CLOCK_MONOTONIC); }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace aiq
