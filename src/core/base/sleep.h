#pragma once
// Waiting without an event to wait for; for polling another process.

#include "core/base/duration.h"

namespace aiq {

// Returns after at least `ms` of the monotonic clock, or at once when a signal was handled.
void sleep_ms(DurationMs ms);

}  // namespace aiq
