#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/model/retry.h"

using namespace aiq;

namespace {

constexpr UnixMs kNow = 1'800'000'000'000;
constexpr UnixMs kStarted = kNow - 3'000;

const std::vector<Outcome> kDecided = {
    Outcome::completed,
    Outcome::rate_limited,
    Outcome::vendor_quota,
    Outcome::overloaded,
    Outcome::server_error,
    Outcome::connect_timeout,
    Outcome::first_byte_timeout,
    Outcome::total_timeout,
    Outcome::network,
    Outcome::bad_response,
    Outcome::empty_response,
    Outcome::rejected,
    Outcome::auth,
    Outcome::unknown,
    Outcome::released,
    Outcome::crashed,
};

EndedAttempt ended(Outcome outcome, Billed billed = Billed::no) {
  EndedAttempt out;
  out.outcome = outcome;
  out.billed = billed;
  out.started_at = kStarted;
  return out;
}

Next decide(const EndedAttempt& attempt, const AttemptCounters& before = {},
            const RetryPolicy& policy = {}, std::optional<UnixMs> deadline = {},
            std::uint64_t seed = 1) {
  SeededRandom random(seed);
  return decide_next(attempt, before, policy, policy.max_attempts, deadline, kNow, random);
}

std::string text(const Next& next) {
  switch (next.step) {
    case NextStep::complete:
      return "complete";
    case NextStep::retry:
      return "retry";
    case NextStep::requeue:
      return "requeue";
    case NextStep::dead_letter:
      return std::string(to_string(next.reason));
  }
  return "?";
}

// The earliest and the latest start of many draws, after `kNow`.
struct Range {
  DurationMs first, last;
};

Range start_range(const EndedAttempt& attempt, const AttemptCounters& before,
                  const RetryPolicy& policy, std::optional<UnixMs> deadline = {}) {
  SeededRandom random(7);
  Range range{INT64_MAX, INT64_MIN};
  for (int draw = 0; draw < 2'000; ++draw) {
    const Next next =
        decide_next(attempt, before, policy, policy.max_attempts, deadline, kNow, random);
    REQUIRE(next.step == NextStep::retry);
    range.first = std::min(range.first, next.run_at - kNow);
    range.last = std::max(range.last, next.run_at - kNow);
  }
  return range;
}

std::uint64_t test_seed() {
  const char* text = std::getenv("AIQ_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : system_random().next();
}

}  // namespace

TEST_CASE("retry: a first attempt, by outcome, bill and the vendor's word") {
  struct Row {
    Outcome outcome;
    const char *retryable, *final;
  };
  const std::vector<Row> rows = {
      {Outcome::completed, "complete", "complete"},
      {Outcome::rate_limited, "retry", "retry"},
      {Outcome::vendor_quota, "requeue", "requeue"},
      {Outcome::overloaded, "retry", "rejected"},
      {Outcome::server_error, "retry", "rejected"},
      {Outcome::connect_timeout, "retry", "retry"},
      {Outcome::first_byte_timeout, "retry", "retry"},
      {Outcome::total_timeout, "retry", "retry"},
      {Outcome::network, "retry", "retry"},
      {Outcome::bad_response, "retry", "retry"},
      {Outcome::empty_response, "retry", "retry"},
      {Outcome::rejected, "retry", "rejected"},
      {Outcome::auth, "requeue", "requeue"},
      {Outcome::unknown, "retry", "retry"},
      {Outcome::released, "requeue", "requeue"},
      {Outcome::crashed, "retry", "retry"},
  };
  REQUIRE(rows.size() == kDecided.size());
  for (const Row& row : rows) {
    for (const Billed billed : {Billed::no, Billed::yes, Billed::maybe}) {
      CAPTURE(to_string(row.outcome));
      CAPTURE(to_string(billed));
      EndedAttempt attempt = ended(row.outcome, billed);
      CHECK(text(decide(attempt)) == row.retryable);
      attempt.retryable = false;
      const Next next = decide(attempt);
      CHECK(text(next) == row.final);

      const bool limited =
          row.outcome == Outcome::rate_limited || row.outcome == Outcome::overloaded;
      AttemptCounters want;
      want.counted = counts(row.outcome) ? 1 : 0;
      want.uncounted =
          row.outcome == Outcome::rate_limited || row.outcome == Outcome::released ? 1 : 0;
      want.maybes = billed == Billed::maybe && row.outcome != Outcome::released ? 1 : 0;
      want.crashes = row.outcome == Outcome::unknown || row.outcome == Outcome::crashed ? 1 : 0;
      if (limited) want.limited_since = kStarted;
      CHECK(next.counters == want);
      CHECK(next.hold_until.has_value() == (row.outcome == Outcome::rate_limited));
    }
  }
}

TEST_CASE("retry: each limit ends in its own dead letter, not one attempt earlier") {
  struct Row {
    const char* name;
    EndedAttempt attempt;
    AttemptCounters before;
    const char* want;
  };
  const UnixMs day = 24LL * 3600 * 1000;
  const EndedAttempt maybe = ended(Outcome::network, Billed::maybe);
  const EndedAttempt failed = ended(Outcome::server_error);
  const EndedAttempt crashed = ended(Outcome::crashed);
  const EndedAttempt limited = ended(Outcome::rate_limited);
  const EndedAttempt overloaded = ended(Outcome::overloaded);
  const std::vector<Row> rows = {
      {"fourth counted", failed, {.counted = 3}, "retry"},
      {"fifth counted", failed, {.counted = 4}, "attempts_exhausted"},
      {"rate limit after four counted", limited, {.counted = 4}, "retry"},
      {"second maybe", maybe, {.maybes = 1}, "retry"},
      {"third maybe", maybe, {.maybes = 2}, "unknown_limit"},
      {"second crash", crashed, {.crashes = 1}, "retry"},
      {"third crash", crashed, {.crashes = 2}, "crash_limit"},
      {"99th uncounted", limited, {.uncounted = 98, .limited_since = kStarted}, "retry"},
      {"100th", limited, {.uncounted = 99, .limited_since = kStarted}, "rate_limit_exhausted"},
      {"just below a day", limited, {.limited_since = kNow - day + 1}, "retry"},
      {"a day", limited, {.limited_since = kNow - day}, "rate_limit_exhausted"},
      {"a day overloaded", overloaded, {.limited_since = kNow - day}, "rate_limit_exhausted"},
      {"a day, but another failure", failed, {.limited_since = kNow - 2 * day}, "retry"},
      {"100th, but another failure", failed, {.uncounted = 100}, "retry"},
      {"released does not die",
       ended(Outcome::released, Billed::maybe),
       {.counted = 9, .maybes = 9, .crashes = 9, .uncounted = 999, .limited_since = 0},
       "requeue"},
      {"auth does not die", ended(Outcome::auth), {.counted = 9, .uncounted = 999}, "requeue"},
      {"completed at every limit",
       ended(Outcome::completed, Billed::yes),
       {.counted = 4, .maybes = 2, .crashes = 2, .uncounted = 99, .limited_since = 0},
       "complete"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(text(decide(row.attempt, row.before)) == row.want);
  }
}

TEST_CASE("retry: of several reached limits the first of the header's order is the reason") {
  const UnixMs long_ago = kNow - 48LL * 3600 * 1000;
  AttemptCounters all = {
      .counted = 4, .maybes = 2, .crashes = 2, .uncounted = 100, .limited_since = long_ago};
  EndedAttempt attempt = ended(Outcome::rejected, Billed::maybe);
  attempt.retryable = false;
  CHECK(text(decide(attempt, all, {}, kNow - 1)) == "rejected");
  CHECK(text(decide(ended(Outcome::unknown, Billed::maybe), all, {}, kNow - 1)) == "crash_limit");
  attempt = ended(Outcome::overloaded, Billed::maybe);
  all.crashes = 0;
  CHECK(text(decide(attempt, all, {}, kNow - 1)) == "unknown_limit");
  all.maybes = 0;
  CHECK(text(decide(attempt, all, {}, kNow - 1)) == "attempts_exhausted");
  all.counted = 0;
  CHECK(text(decide(attempt, all, {}, kNow - 1)) == "rate_limit_exhausted");
  all.limited_since.reset();
  all.uncounted = 0;
  CHECK(text(decide(attempt, all, {}, kNow - 1)) == "deadline");
}

TEST_CASE("retry: a limit of 0 is none, but unknown_retries = 0 forbids such a retry") {
  const RetryPolicy none = {.max_attempts = 0,
                            .unknown_retries = 0,
                            .crash_limit = 0,
                            .uncounted_max = 0,
                            .give_up_after_ms = 0};
  const AttemptCounters high = {
      .counted = 1000, .crashes = 1000, .uncounted = 1000, .limited_since = 0};
  CHECK(text(decide(ended(Outcome::crashed), high, none)) == "retry");
  CHECK(text(decide(ended(Outcome::rate_limited), high, none)) == "retry");
  CHECK(text(decide(ended(Outcome::total_timeout, Billed::maybe), {}, none)) == "unknown_limit");
}

TEST_CASE("retry: the start of the first limited attempt stays") {
  const AttemptCounters before = {.uncounted = 1, .limited_since = kNow - 60'000};
  CHECK(decide(ended(Outcome::rate_limited), before).counters.limited_since == kNow - 60'000);
  CHECK(decide(ended(Outcome::server_error), before).counters.limited_since == kNow - 60'000);
}

TEST_CASE("retry: an asked-for wait is held, and the jitter only adds") {
  struct Row {
    DurationMs wait, jitter;
  };
  for (const Row row : {Row{0, 1'000}, Row{500, 1'000}, Row{3'000, 1'000}, Row{9'000, 3'000},
                        Row{3'600'000, 1'200'000}}) {
    for (const Outcome outcome :
         {Outcome::rate_limited, Outcome::overloaded, Outcome::server_error}) {
      CAPTURE(row.wait);
      EndedAttempt attempt = ended(outcome);
      attempt.retry_after_ms = row.wait;
      const Range range = start_range(attempt, {}, {});
      CHECK(range.first >= row.wait);
      CHECK(range.first < row.wait + row.jitter / 10);
      CHECK(range.last > row.wait + row.jitter * 9 / 10);
      CHECK(range.last <= row.wait + row.jitter);
      CHECK(decide(attempt).hold_until == kNow + row.wait);
    }
  }
}

TEST_CASE("retry: without a wait the backoff doubles up to its cap") {
  const RetryPolicy policy = {.max_attempts = 0, .base_ms = 500, .cap_ms = 6'000};
  const std::vector<DurationMs> ceilings = {500, 1'000, 2'000, 4'000, 6'000, 6'000};
  for (std::size_t i = 0; i < ceilings.size(); ++i) {
    // Full jitter: the whole range is used (missing a tenth 2,000 times is not chance).
    const Range range =
        start_range(ended(Outcome::server_error), {.counted = static_cast<int>(i)}, policy);
    CHECK(range.first >= 0);
    CHECK(range.first < ceilings[i] / 10);
    CHECK(range.last > ceilings[i] * 9 / 10);
    CHECK(range.last <= ceilings[i]);
  }
  const Next late = decide(ended(Outcome::server_error), {.counted = 2'000'000'000}, policy);
  CHECK(late.run_at <= kNow + 6'000);
}

TEST_CASE("retry: a rate limit without a wait holds the vendor's model for the base backoff") {
  const Next next = decide(ended(Outcome::rate_limited));
  CHECK(next.hold_until == kNow + 500);
  CHECK_FALSE(decide(ended(Outcome::network)).hold_until.has_value());
}

TEST_CASE("retry: a returned job is due at once") {
  for (const Outcome outcome : {Outcome::released, Outcome::auth, Outcome::vendor_quota}) {
    CHECK(decide(ended(outcome)).run_at == kNow);
  }
}

TEST_CASE("retry: a retry that can't start before the deadline is a dead letter") {
  EndedAttempt attempt = ended(Outcome::rate_limited);
  attempt.retry_after_ms = 10'000;
  CHECK(text(decide(attempt, {}, {}, kNow + 10'000)) == "deadline");
  // The jitter alone does not miss it.
  CHECK(start_range(attempt, {}, {}, kNow + 10'001).last == 10'000);
  CHECK(start_range(attempt, {}, {}, kNow + 10'101).last == 10'100);
  CHECK(text(decide(ended(Outcome::network), {}, {}, kNow)) == "deadline");
  CHECK(text(decide(ended(Outcome::network), {}, {}, kNow + 1)) == "retry");
}

TEST_CASE("retry: an absurd wait does not overflow") {
  EndedAttempt attempt = ended(Outcome::rate_limited);
  attempt.retry_after_ms = INT64_MAX;
  const Next next = decide(attempt);
  CHECK(next.run_at > kNow);
  CHECK(next.hold_until > kNow);
  attempt.retry_after_ms = -5;
  CHECK(decide(attempt).hold_until == kNow);
}

TEST_CASE("retry: any series of failures ends, within every limit (seeded)") {
  const std::uint64_t seed = test_seed();
  MESSAGE("AIQ_TEST_SEED=" << seed);
  SeededRandom random(seed);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  for (int run = 0; run < 3'000; ++run) {
    const RetryPolicy policy = {.max_attempts = pick(1, 8),
                                .base_ms = pick(0, 2'000),
                                .cap_ms = pick(0, 60'000),
                                .unknown_retries = pick(0, 3),
                                .crash_limit = pick(1, 4),
                                .uncounted_max = pick(1, 20),
                                .give_up_after_ms = pick(1'000, 3'600'000)};
    AttemptCounters counters;
    UnixMs now = kNow;
    const std::optional<UnixMs> deadline =
        pick(0, 1) == 0 ? std::nullopt : std::optional<UnixMs>(now + pick(0, 600'000));
    int sent_after_maybe = 0;
    bool last_maybe = false;
    for (int attempts = 1;; ++attempts) {
      REQUIRE(attempts < 10'000);
      if (last_maybe) ++sent_after_maybe;
      EndedAttempt attempt =
          ended(kDecided[random.below(kDecided.size())], static_cast<Billed>(random.below(3)));
      attempt.started_at = now;
      attempt.retryable = pick(0, 3) != 0;
      if (pick(0, 3) == 0) attempt.retry_after_ms = pick(0, 120'000);
      now += pick(0, 5'000);
      const Next next =
          decide_next(attempt, counters, policy, policy.max_attempts, deadline, now, random);
      REQUIRE(next.counters.counted >= counters.counted);
      REQUIRE(next.counters.maybes >= counters.maybes);
      counters = next.counters;
      if (attempt.retry_after_ms) REQUIRE(next.hold_until == now + *attempt.retry_after_ms);
      if (next.step == NextStep::complete || next.step == NextStep::dead_letter) break;
      REQUIRE(next.run_at >= now);
      if (next.step == NextStep::retry) {
        REQUIRE(counters.counted < policy.max_attempts);
        REQUIRE(counters.crashes < policy.crash_limit);
        REQUIRE(counters.maybes <= policy.unknown_retries);
        if (deadline) REQUIRE(next.run_at < *deadline);
        if (attempt.retry_after_ms) REQUIRE(next.run_at >= now + *attempt.retry_after_ms);
        now = next.run_at;
      }
      last_maybe = attempt.billed == Billed::maybe && next.step == NextStep::retry;
    }
    REQUIRE(sent_after_maybe <= policy.unknown_retries);
  }
}
