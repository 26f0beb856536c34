#pragma once
// What becomes of a job after an attempt ended: pure rules, no clock, no database.

#include <cstdint>
#include <optional>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/base/random.h"
#include "core/model/attempt.h"
#include "core/model/job.h"

namespace aiq {

// [retry] of the configuration. 0 means no limit, except in unknown_retries: no such retry.
struct RetryPolicy {
  int max_attempts = 5;        // attempts that count
  DurationMs base_ms = 500;    // first backoff ceiling
  DurationMs cap_ms = 60'000;  // largest backoff ceiling
  int unknown_retries = 2;     // retries after an attempt that may have been billed
  int crash_limit = 3;         // attempts ended by a dead process
  int uncounted_max = 100;     // rate-limited or released attempts
  DurationMs give_up_after_ms = 24LL * 3600 * 1000;  // since the first limited attempt
};

// Counters of a job within its generation, kept in its row.
struct AttemptCounters {
  int counted = 0;                           // ended attempts that count
  int maybes = 0;                            // ended attempts billed maybe (`released` left out)
  int crashes = 0;                           // ended by a dead process
  int uncounted = 0;                         // ended attempts that were rate_limited or released
  std::optional<UnixMs> limited_since = {};  // start of the first rate_limited or overloaded one

  bool operator==(const AttemptCounters&) const = default;
};

enum class NextStep : std::uint8_t { complete, retry, requeue, dead_letter };

struct Next {
  NextStep step = NextStep::retry;
  UnixMs run_at = 0;                         // not before: retry, requeue, dead letter by deadline
  DeadReason reason = DeadReason::rejected;  // dead_letter
  AttemptCounters counters;                  // after this attempt
  // rate_limited (and any answer with a wait): no request of this vendor and model before it.
  std::optional<UnixMs> hold_until;
};

struct EndedAttempt {
  Outcome outcome = Outcome::unknown;
  Billed billed = Billed::maybe;
  bool retryable = true;
  std::optional<DurationMs> retry_after_ms;
  UnixMs started_at = 0;
};

// `before`: counters at the lease. `max_attempts`: the job's own, 0 = no limit. `deadline`: the
// job's, if any: a retry that could only start at or after it is a dead letter at once; a jitter
// never moves a retry past it.
// `released`, `auth` and `vendor_quota` requeue at once, whatever the limits; rate_limit_exhausted
// is decided after rate_limited and overloaded only; `retryable` after rejected, server_error and
// overloaded only. `cancelled` and `lease_lost` decide nothing: passing them aborts.
// Order of the limits when several are reached: rejected, crash_limit, unknown_limit,
// attempts_exhausted, rate_limit_exhausted, deadline.
// Waits: an asked-for wait w gives w plus a uniform jitter of at most max(1 s, w/3); without one,
// full jitter: uniform in [0, min(cap, base * 2^(n-1))], n = attempts since the last success
// (AWS Architecture Blog, "Exponential Backoff And Jitter").
[[nodiscard]] Next decide_next(const EndedAttempt& ended, const AttemptCounters& before,
                               const RetryPolicy& policy, int max_attempts,
                               std::optional<UnixMs> deadline, UnixMs now, Random& random);

// After a wait of `wait_ms` that all jobs of a vendor and model had to respect, their starts are
// spread evenly over this long.
inline constexpr DurationMs kSpreadMinMs = 1'500;
inline constexpr DurationMs kSpreadPart = 3;
[[nodiscard]] constexpr DurationMs spread_ms(DurationMs wait_ms) {
  return wait_ms / kSpreadPart > kSpreadMinMs ? wait_ms / kSpreadPart : kSpreadMinMs;
}

}  // namespace aiq
