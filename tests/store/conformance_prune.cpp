// What is over goes, with all that belongs to it, and nothing else does.

#include "core/store/prune.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

constexpr DurationMs kDay = 24 * kHour;

// All of it at one moment.
PruneRules before(UnixMs at) {
  return {at, at, at, at, at, at};
}

template <class World>
PruneCounts prune_all(World& world, const PruneRules& rules) {
  PruneCounts total;
  PruneCursor from;
  while (from.phase != PruneCursor::Phase::done) {
    const PruneSlice slice = world.write([&](Store& st) { return st.prune(rules, from); });
    total += slice.counts;
    from = slice.next;
  }
  return total;
}

template <class World>
PruneCounts count_all(World& world, const PruneRules& rules) {
  PruneCounts total;
  PruneCursor from;
  while (from.phase != PruneCursor::Phase::done) {
    const PruneSlice slice = world.store().prunable(rules, from);
    total += slice.counts;
    from = slice.next;
  }
  return total;
}

// What counting said beforehand is what goes.
template <class World>
PruneCounts prune_as_counted(World& world, const PruneRules& rules) {
  const PruneCounts counted = count_all(world, rules);
  const PruneCounts pruned = prune_all(world, rules);
  CHECK(counted.jobs == pruned.jobs);
  CHECK(counted.attempts == pruned.attempts);
  CHECK(counted.results == pruned.results);
  CHECK(counted.client_keys == pruned.client_keys);
  CHECK(counted.events == pruned.events);
  world.expect_sound();
  return pruned;
}

template <class World>
JobId complete_one(World& world, const NewSubmission& s, const std::string& token) {
  const JobId id = world.submit(s).job_id;
  const LeasedJob job = world.lease_only(token);
  REQUIRE(job.job_id == id);
  world.close(answered(job, world.now));
  return id;
}

TEST_CASE_TEMPLATE("prune: a job goes by the age of its end, with all that is its own", Place,
                   OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("a");
  s.labels = {{"k", "v"}, {"team", "x"}};
  s.client_key = "key";
  s.cache.store = false;
  s.hard_ttl_ms = 0;
  const JobId old = complete_one(world, s, "t1");
  world.now += kDay;
  NewSubmission later = request("b");
  later.cache.store = false;
  later.hard_ttl_ms = 0;
  const JobId young = complete_one(world, later, "t2");

  PruneRules rules;
  rules.completed = kStart;  // not older than that moment
  CHECK(prune_as_counted(world, rules).jobs == 0);
  rules.completed = kStart + 1;
  const PruneCounts counts = prune_as_counted(world, rules);
  CHECK(counts.jobs == 1);
  CHECK(counts.attempts == 1);
  CHECK(counts.results == 1);
  CHECK(counts.client_keys == 0);
  CHECK(counts.events == 0);
  CHECK_FALSE(world.store().job(old).has_value());
  CHECK(world.store().attempts_of(old).empty());
  CHECK_FALSE(world.store().request_body(old).has_value());
  CHECK(world.job(young).result_id.has_value());
  CHECK(world.count(JobState::completed) == 1);

  // Its key still says that the request was made; and its id is not given out again.
  CHECK(world.submit(s).job_id == old);
  CHECK(world.submit(request("c")).job_id == young + 1);
  rules.client_keys = kStart + 1;
  CHECK(prune_as_counted(world, rules).client_keys == 1);
  CHECK(world.submit(s).outcome == SubmitReceipt::Outcome::created);
}

TEST_CASE_TEMPLATE("prune: live jobs, open dead letters and usage stay at any age", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId done = complete_one(world, request("done"), "t0");
  REQUIRE(world.job(done).usage.has_value());
  NewSubmission letter = request("letter");
  letter.client_key = "of a dead letter";
  const JobId dead = world.submit(letter).job_id;
  world.close(refused(world.lease_only("t1"), world.now));
  const JobId retrying = world.submit(request("retrying")).job_id;
  world.close(failed(world.lease_only("t2"), world.now, world.now + kDay));
  const JobId running = world.submit(request("running")).job_id;
  const LeasedJob job = world.lease_only("t3");
  NewSubmission waits = request("waits");
  waits.client_key = "of a waiting one";
  const JobId waiting = world.submit(waits).job_id;

  world.now += 1000 * kDay;
  const PruneCounts counts = prune_as_counted(world, before(world.now));
  CHECK(counts.jobs == 1);
  CHECK(counts.attempts == 1);
  CHECK(counts.client_keys == 0);
  CHECK(world.state(dead) == JobState::dead_lettered);
  CHECK(world.store().attempts_of(dead).size() == 1);
  CHECK(world.store().attempts_of(retrying).size() == 1);
  CHECK(world.store().attempts_of(running).size() == 1);
  CHECK(world.state(waiting) == JobState::queued);
  CHECK(world.store().list_dead_letters({}, {}).size() == 1);
  CHECK(world.close(answered(job, world.now)).held);
}

TEST_CASE_TEMPLATE("prune: an answer stays as long as a job or an entry needs it", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId paid = complete_one(world, request("a"), "t1");
  const std::int64_t result = world.job(paid).result_id.value();
  world.now += 1;
  const SubmitReceipt second = world.submit(request("a"));
  REQUIRE(second.outcome == SubmitReceipt::Outcome::cached);

  // The one that paid is gone; its entry still answers.
  PruneRules rules;
  rules.completed = world.now;
  PruneCounts counts = prune_as_counted(world, rules);
  CHECK(counts.jobs == 1);
  CHECK(counts.results == 0);
  world.now += 1;
  const SubmitReceipt third = world.submit(request("a"));
  REQUIRE(third.outcome == SubmitReceipt::Outcome::cached);
  CHECK(world.job(third.job_id).result_id == result);
  CHECK(world.store().result_body(result) == "{}");

  SUBCASE("the entry goes first, then the jobs") {
    CacheFilter all;
    all.all = true;
    CHECK(world.write([&](Store& st) { return st.invalidate_cache(all, "", 10).removed; }) == 1);
    CHECK(world.store().result_body(result).has_value());
    rules.completed = world.now;  // the second, not the third
    CHECK(prune_as_counted(world, rules).results == 0);
    CHECK(world.store().result_body(result).has_value());
    rules.completed = world.now + 1;
    CHECK(prune_as_counted(world, rules).results == 1);
    CHECK_FALSE(world.store().result_body(result).has_value());
  }
  SUBCASE("the jobs go first, then the entry") {
    rules.completed = world.now + 1;
    counts = prune_as_counted(world, rules);
    CHECK(counts.jobs == 2);
    CHECK(counts.results == 0);
    CHECK(world.submit(request("a")).outcome == SubmitReceipt::Outcome::cached);
    rules.completed = world.now + 2;
    CHECK(prune_as_counted(world, rules).results == 0);
    world.write([&](Store& st) { return st.evict_cache(world.now + kDay, 1 << 20, 10); });
    CHECK_FALSE(world.store().result_body(result).has_value());
  }
  SUBCASE("both jobs at once, with no entry") {
    world.write([&](Store& st) { return st.evict_cache(world.now + kDay, 1 << 20, 10); });
    rules.completed = world.now + 1;
    counts = prune_as_counted(world, rules);
    CHECK(counts.jobs == 2);
    CHECK(counts.results == 1);
  }
  SUBCASE("the entry is replaced by a newer answer") {
    rules.completed = world.now + 1;
    REQUIRE(prune_as_counted(world, rules).jobs == 2);
    NewSubmission fresh = request("a");
    fresh.cache.read = false;
    fresh.cache.coalesce = false;
    complete_one(world, fresh, "t2");
    CHECK_FALSE(world.store().result_body(result).has_value());
  }
  world.expect_sound();
}

TEST_CASE_TEMPLATE("prune: attempts of final jobs go by themselves, with their late answers", Place,
                   OnFile, InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("a")).job_id;
  const LeasedJob job = world.lease_only("t1");
  world.write([&](Store& st) { return st.cancel(id, world.now); });
  world.close(answered(job, world.now, "late"));
  PruneRules rules;
  rules.attempts = world.now;
  CHECK(prune_as_counted(world, rules).attempts == 0);
  rules.attempts = world.now + 1;
  const PruneCounts counts = prune_as_counted(world, rules);
  CHECK(counts.jobs == 0);
  CHECK(counts.attempts == 1);
  CHECK(counts.results == 1);
  CHECK(world.state(id) == JobState::cancelled);
  CHECK((*world.job(id).usage)[Meter::input] == 10);
}

TEST_CASE_TEMPLATE("prune: each kind by its own age, none when it is to be kept", Place, OnFile,
                   InMemory) {
  World<Place> world;
  complete_one(world, request("done"), "t1");
  const JobId cancelled = world.submit(request("cancelled")).job_id;
  world.write([&](Store& st) { return st.cancel(cancelled, world.now); });
  world.now += kDay;

  CHECK(prune_as_counted(world, {}).jobs == 0);
  PruneRules rules;
  rules.cancelled = world.now;
  CHECK(prune_as_counted(world, rules).jobs == 1);
  CHECK(world.count(JobState::cancelled) == 0);
  CHECK(world.count(JobState::completed) == 1);

  rules = {};
  rules.outbox = world.now;
  CHECK(prune_as_counted(world, rules).events == 5);  // of both jobs, as they happened
  CHECK(prune_as_counted(world, rules).events == 0);
}

TEST_CASE_TEMPLATE("prune: more than a slice, and old ones behind young ones", Place, OnFile,
                   InMemory) {
  World<Place> world;
  world.now += kDay;  // the clock was ahead
  NewSubmission waits = request("waits");
  waits.run_at = world.now + 1000 * kDay;
  world.submit(waits);
  world.now = kStart;
  world.write([&](Store& st) {
    for (int i = 0; i < 2'500; ++i) {
      const JobId id = st.submit(request("job " + std::to_string(i)), world.now).job_id;
      st.cancel(id, world.now);
    }
  });
  world.now += 2;
  PruneRules rules;
  rules.cancelled = rules.outbox = kStart + 1;
  const PruneCounts counts = prune_as_counted(world, rules);
  CHECK(counts.jobs == 2'500);
  CHECK(counts.events == 5'000);
  CHECK(world.count(JobState::cancelled) == 0);
  CHECK(world.count(JobState::queued) == 1);
}

}  // namespace
}  // namespace aiq::test
