#include "core/model/retry.h"

#include <algorithm>

#include "core/base/check.h"

namespace aiq {
namespace {

// The longest duration that parse_duration reads. A vendor may ask for more; sums of it and a
// time of day must not overflow.
constexpr DurationMs kWaitMax = 100LL * 366 * 24 * 3600 * 1000;
constexpr DurationMs kJitterMin = 1'000;

bool is_crash(Outcome outcome) {
  return outcome == Outcome::unknown || outcome == Outcome::crashed;
}

bool is_limited(Outcome outcome) {
  return outcome == Outcome::rate_limited || outcome == Outcome::overloaded;
}

// Given back without judging the job: a shutdown, or a vendor that a person must look after.
bool is_returned(Outcome outcome) {
  return outcome == Outcome::released || outcome == Outcome::auth ||
         outcome == Outcome::vendor_quota;
}

// Whether the vendor says that the same request would fail again.
bool is_refused(const EndedAttempt& ended) {
  const bool vendor_decides = ended.outcome == Outcome::rejected ||
                              ended.outcome == Outcome::server_error ||
                              ended.outcome == Outcome::overloaded;
  return vendor_decides && !ended.retryable;
}

AttemptCounters count(const EndedAttempt& ended, AttemptCounters counters) {
  if (counts(ended.outcome)) ++counters.counted;
  if (ended.outcome == Outcome::rate_limited || ended.outcome == Outcome::released) {
    ++counters.uncounted;
  }
  if (ended.billed == Billed::maybe && ended.outcome != Outcome::released) ++counters.maybes;
  if (is_crash(ended.outcome)) ++counters.crashes;
  if (is_limited(ended.outcome) && !counters.limited_since) {
    counters.limited_since = ended.started_at;
  }
  return counters;
}

// The first limit reached, in the order of the header; the deadline is judged with the wait.
std::optional<DeadReason> reached_limit(const EndedAttempt& ended, const AttemptCounters& counters,
                                        const RetryPolicy& policy, int max_attempts, UnixMs now) {
  if (is_refused(ended)) return DeadReason::rejected;
  if (policy.crash_limit > 0 && counters.crashes >= policy.crash_limit) {
    return DeadReason::crash_limit;
  }
  if (counters.maybes > policy.unknown_retries) return DeadReason::unknown_limit;
  if (max_attempts > 0 && counters.counted >= max_attempts) return DeadReason::attempts_exhausted;
  if (!is_limited(ended.outcome)) return std::nullopt;
  if (policy.uncounted_max > 0 && counters.uncounted >= policy.uncounted_max) {
    return DeadReason::rate_limit_exhausted;
  }
  if (policy.give_up_after_ms > 0 && now - *counters.limited_since >= policy.give_up_after_ms) {
    return DeadReason::rate_limit_exhausted;
  }
  return std::nullopt;
}

// base * 2^(n-1), at most cap.
DurationMs backoff_ceiling(const RetryPolicy& policy, int n) {
  DurationMs ceiling = std::min(policy.base_ms, policy.cap_ms);
  for (int i = 1; i < n && ceiling > 0 && ceiling < policy.cap_ms; ++i) {
    ceiling = ceiling > policy.cap_ms / 2 ? policy.cap_ms : ceiling * 2;
  }
  return std::max<DurationMs>(ceiling, 0);
}

// When the next attempt may start: at `earliest`, plus a jitter of at most `spread`.
struct RetryWindow {
  UnixMs earliest;
  DurationMs spread;
};

RetryWindow retry_window(std::optional<DurationMs> wait, const AttemptCounters& counters,
                         const RetryPolicy& policy, UnixMs now) {
  if (wait) return {now + *wait, std::max(kJitterMin, *wait / 3)};
  return {now, backoff_ceiling(policy, std::max(1, counters.counted + counters.uncounted))};
}

}  // namespace

Next decide_next(const EndedAttempt& ended, const AttemptCounters& before,
                 const RetryPolicy& policy, int max_attempts, std::optional<UnixMs> deadline,
                 UnixMs now, Random& random) {
  // Both end without a decision: the job belongs to somebody else, or to nobody.
  AIQ_CHECK(ended.outcome != Outcome::cancelled && ended.outcome != Outcome::lease_lost);

  std::optional<DurationMs> wait = ended.retry_after_ms;
  if (wait) wait = std::clamp<DurationMs>(*wait, 0, kWaitMax);

  Next next;
  next.counters = count(ended, before);
  if (wait) {
    next.hold_until = now + *wait;
  } else if (ended.outcome == Outcome::rate_limited) {
    next.hold_until = now + policy.base_ms;
  }
  if (ended.outcome == Outcome::completed) {
    next.step = NextStep::complete;
    return next;
  }
  if (is_returned(ended.outcome)) {
    next.step = NextStep::requeue;
    next.run_at = now;
    return next;
  }
  if (const auto reason = reached_limit(ended, next.counters, policy, max_attempts, now)) {
    next.step = NextStep::dead_letter;
    next.reason = *reason;
    return next;
  }
  RetryWindow window = retry_window(wait, next.counters, policy, now);
  if (deadline) {
    if (window.earliest >= *deadline) {
      next.step = NextStep::dead_letter;
      next.reason = DeadReason::deadline;
      next.run_at = window.earliest;  // a deadline raised meanwhile makes it a retry after all
      return next;
    }
    // A random draw must not be what misses the deadline.
    window.spread = std::min(window.spread, *deadline - 1 - window.earliest);
  }
  next.step = NextStep::retry;
  next.run_at = window.earliest + static_cast<DurationMs>(
                                      random.below(static_cast<std::uint64_t>(window.spread) + 1));
  return next;
}

}  // namespace aiq
