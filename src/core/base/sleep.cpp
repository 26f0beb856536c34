#include "core/base/sleep.h"

#include <ctime>

namespace aiq {

void sleep_ms(DurationMs ms) {
  if (ms <= 0) return;
  timespec wait{};
  wait.tv_sec = ms / 1000;
  wait.tv_nsec = (ms % 1000) * 1'000'000;
  clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);
}

}  // namespace aiq
