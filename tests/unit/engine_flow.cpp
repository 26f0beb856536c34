// Admission over a long time: a simulated clock, vendors that fail, refuse and tell their limits,
// restarts that keep only what is stored. Laws over random worlds, with a printed seed.

#include "core/engine/flow.h"

#include <doctest/doctest.h>

#include <deque>
#include <memory>

#include "core/base/random.h"
#include "core/base/sha256.h"
#include "core/engine/admission.h"
#include "core/engine/pace.h"

using namespace aiq;

namespace {

constexpr UnixMs kStart = 1'800'000'000'000;
constexpr DurationMs kMinute = 60'000;

struct Sent {
  UnixMs at;
  std::int64_t tokens;
};

// The most that any minute held.
std::int64_t most(const std::vector<Sent>& sent, bool tokens) {
  std::int64_t held = 0, top = 0;
  std::size_t first = 0;
  for (const Sent& each : sent) {
    held += tokens ? each.tokens : 1;
    while (sent[first].at + kMinute <= each.at)
      held -= tokens ? sent[first++].tokens : (++first, 1);
    top = std::max(top, held);
  }
  return top;
}

class World {
 public:
  World(std::uint64_t seed, Config config)
      : random(seed), config_(std::move(config)), store_(open_store(":memory:", {}, kStart, true)) {
    write([](Store& st) { st.register_vendor("v", "s", true); });
    write([](Store& st) { st.mark_proven("v"); });
  }

  template <class F>
  void write(F f) {
    store_->begin();
    f(*store_);
    store_->commit();
  }

  void submit(const std::string& tenant, std::int64_t prompt, std::int64_t output, int priority) {
    NewSubmission s;
    s.tenant = tenant;
    s.vendor = "v";
    s.model = "m";
    s.body = "{}";
    const std::string name = std::to_string(++submitted_);
    s.keys = {sha256_hex("i" + name), sha256_hex("c" + name)};
    s.correlation_id = name;
    s.cache_owner = "tenant:" + tenant;
    s.run_at = now;
    s.priority = priority;
    s.max_attempts = 1'000;
    s.prompt_tokens = prompt;
    s.output_tokens = output;
    s.actor = "test";
    write([&](Store& st) { (void)st.submit(s, now); });
  }

  // One pass of the dispatcher; returns when it wants to be woken.
  std::optional<UnixMs> pass() {
    std::optional<UnixMs> wake;
    write([&](Store& st) {
      (void)st.promote_due(now, 1'000);
      const AdmissionView view = st.admission_view(now);
      Admission admission(config_, view, now);
      while (const auto lane = admission.next()) {
        auto outcome = st.lease({*lane, random.token(), now, now + kMinute, "test"});
        const auto head = st.lane_head(*lane);
        if (outcome.kind != LeaseOutcome::Kind::leased) {
          admission.passed(head);
          continue;
        }
        admission.started(head);
        const LeasedJob& job = *outcome.job;
        sent.push_back({now, job.prompt_tokens + job.output_tokens.value_or(0)});
        first_start_.try_emplace(job.job_id, now);
        running.push_back(std::move(*outcome.job));
      }
      const auto changes = admission.changes();
      for (const RateRow& row : changes.rates)
        st.save_rate(row);
      for (const RateHold& hold : changes.spreads)
        st.save_spread(hold);
      for (const ShareRow& row : changes.shares)
        st.save_share(row);
      wake = admission.next_opening();
      if (view.next_due) wake = wake ? std::min(*wake, *view.next_due) : view.next_due;
    });
    return wake;
  }

  void end(const LeasedJob& job, Outcome outcome, const RateReport& rate = {},
           std::optional<DurationMs> retry_after = {}) {
    AttemptClose close;
    close.attempt_id = job.attempt_id;
    close.job_id = job.job_id;
    close.token = job.token;
    close.now = now;
    close.result.outcome = outcome;
    close.result.http_status = outcome == Outcome::completed ? 200 : 500;
    close.result.billed = outcome == Outcome::completed ? Billed::yes : Billed::no;
    close.result.retry_after_ms = retry_after;
    close.result.body = "{}";
    close.next = decide_next({.outcome = outcome,
                              .billed = close.result.billed,
                              .retry_after_ms = retry_after,
                              .started_at = job.started_at},
                             job.counters, config_.retry, job.max_attempts, {}, now, random);
    EndedRequest ended;
    ended.lane = job.lane;
    ended.outcome = outcome;
    ended.started_at = job.started_at;
    ended.taken_tokens = job.prompt_tokens + job.output_tokens.value_or(0);
    if (outcome == Outcome::completed) {
      ended.prompt_tokens = job.prompt_tokens;
      ended.output_tokens = job.output_tokens.value_or(0);
    }
    ended.output_limit = job.output_tokens;
    ended.rate = rate;
    write([&](Store& st) {
      (void)st.close_attempt(close);
      learn_from(st, config_, ended, now);
    });
  }

  std::int64_t left() {
    const auto stats = store_->stats(now);
    return stats.jobs[static_cast<std::size_t>(JobState::queued)] +
           stats.jobs[static_cast<std::size_t>(JobState::retrying)] +
           stats.jobs[static_cast<std::size_t>(JobState::processing)];
  }
  Store& store() { return *store_; }

  UnixMs now = kStart;
  SeededRandom random;
  std::vector<Sent> sent;
  std::deque<LeasedJob> running;

 private:
  Config config_;
  std::unique_ptr<Store> store_;
  int submitted_ = 0;
  std::map<JobId, UnixMs> first_start_;
};

Config config_with(std::int64_t rpm, std::int64_t tpm, int places) {
  Config config;
  VendorConfig vendor;
  vendor.name = "v";
  vendor.api = "openai";
  vendor.rpm = rpm;
  vendor.tpm = tpm;
  vendor.max_in_flight = places;
  config.vendors["v"] = vendor;
  config.retry.uncounted_max = 0;
  config.retry.max_attempts = 0;
  config.retry.cap_ms = 2'000;
  return config;
}

}  // namespace

TEST_CASE("admission: random histories: no limit is crossed, nothing waits for ever") {
  const auto seed = system_random().next();
  CAPTURE(seed);
  SeededRandom worlds(seed);
  for (int round = 0; round < 12; ++round) {
    const auto rpm = static_cast<std::int64_t>(worlds.below(3) == 0 ? 0 : 5 + worlds.below(2'000));
    const auto tpm =
        static_cast<std::int64_t>(worlds.below(3) == 0 ? 0 : 2'000 + worlds.below(60'000));
    const int places = static_cast<int>(1 + worlds.below(40));
    CAPTURE(round);
    CAPTURE(rpm);
    CAPTURE(tpm);
    CAPTURE(places);
    World world(worlds.next(), config_with(rpm, tpm, places));
    const int jobs = 120;
    int submitted = 0;
    std::multimap<UnixMs, LeasedJob> ends;
    const UnixMs deadline = kStart + 120 * kMinute;
    while (submitted < jobs || world.left() > 0) {
      REQUIRE(world.now < deadline);
      // Bursts.
      if (submitted < jobs && world.random.below(10) == 0) {
        for (auto n = world.random.below(40); n > 0 && submitted < jobs; --n, ++submitted)
          world.submit("t" + std::to_string(world.random.below(3)),
                       static_cast<std::int64_t>(1 + world.random.below(200)),
                       static_cast<std::int64_t>(world.random.below(200)),
                       static_cast<int>(world.random.below(3)));
      }
      const auto wake = world.pass();
      for (; !world.running.empty(); world.running.pop_front())
        ends.emplace(world.now + static_cast<DurationMs>(1 + world.random.below(3'000)),
                     world.running.front());
      // Work-conserving: when nothing opens by itself later, either all have run or the places are
      // taken, those that the vendor's pace and probing leave.
      const auto pace = world.store().pace("v", "m");
      const auto left_places =
          static_cast<std::size_t>(paced(places, pace ? pace_share(*pace, world.now) : 1.0));
      const bool probing = world.store().breaker("v", "m").has_value();
      if (!wake && ends.size() < (probing ? 1 : left_places)) {
        const auto view = world.store().stats(world.now);
        REQUIRE(view.jobs[static_cast<std::size_t>(JobState::queued)] +
                    view.jobs[static_cast<std::size_t>(JobState::retrying)] ==
                0);
      }
      UnixMs next = world.now + 1'000;
      if (wake) next = std::min(next, std::max(*wake, world.now + 1));
      if (!ends.empty()) next = std::min(next, std::max(ends.begin()->first, world.now + 1));
      world.now = next;
      while (!ends.empty() && ends.begin()->first <= world.now) {
        const auto luck = world.random.below(20);
        world.end(ends.begin()->second,
                  luck == 0   ? Outcome::server_error
                  : luck == 1 ? Outcome::rate_limited
                  : luck == 2 ? Outcome::network
                              : Outcome::completed,
                  {}, luck == 1 ? std::optional<DurationMs>(500) : std::nullopt);
        ends.erase(ends.begin());
      }
    }
    if (rpm > 0) CHECK(most(world.sent, false) <= rpm);
    if (tpm > 0) CHECK(most(world.sent, true) <= std::max<std::int64_t>(tpm, 400));
  }
}

TEST_CASE("flow: the first answer that tells a smaller limit slows the next ones") {
  World world(7, config_with(6'000, 0, 500));
  for (int i = 0; i < 400; ++i)
    world.submit("t", 1, 0, 0);
  (void)world.pass();
  REQUIRE(world.sent.size() == 240);
  RateReport rate;
  rate.limit_requests = 300;
  rate.remaining_requests = 60;
  rate.reset_requests_ms = 60'000;
  world.now += 100;
  world.end(world.running.front(), Outcome::completed, rate);
  world.running.pop_front();
  const std::size_t before = world.sent.size();
  for (int s = 0; s < 50; ++s) {
    world.now += 1'000;
    (void)world.pass();
  }
  // 60 are left of the vendor's minute, and they are given out at its pace.
  CHECK(world.sent.size() - before <= 60);
  CHECK(world.sent.size() - before >= 50);
}

TEST_CASE("flow: a limit that is told by the day is none by the minute") {
  World world(7, config_with(600, 0, 500));
  for (int i = 0; i < 100; ++i)
    world.submit("t", 1, 0, 0);
  (void)world.pass();
  RateReport rate;
  rate.limit_requests = 14'400;
  rate.remaining_requests = 3;
  rate.reset_requests_ms = 7'200'000;
  world.end(world.running.front(), Outcome::completed, rate);
  CHECK_FALSE(world.store().rate("model", "v m", "requests").has_value());
}

TEST_CASE("flow: what many in flight meet together is one refusal") {
  World world(7, config_with(0, 0, 64));
  for (int i = 0; i < 64; ++i)
    world.submit("t", 1, 0, 0);
  (void)world.pass();
  REQUIRE(world.running.size() == 64);
  for (const LeasedJob& job : world.running) {
    world.now += 1;
    world.end(job, Outcome::rate_limited, {}, 1'000);
  }
  CHECK(world.store().pace("v", "m")->share == 0.5);
}

TEST_CASE("flow: a short answer gives back nothing of the limit that its request set") {
  World world(7, config_with(0, 1'000, 64));
  world.submit("t", 10, 30, 0);
  (void)world.pass();
  world.end(world.running.front(), Outcome::completed);
  RateRow row = *world.store().rate("vendor", "v", "tokens");
  CHECK(RateWindow(row).taken(world.now) == 40);
}
