// How entries leave the cache: slices, their cost, the limit of its size, what is never kept.

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

// `n` entries with 10 bytes each, every tenth of model `rare`.
template <class Place>
void fill(World<Place>& world, int n) {
  for (int i = 0; i < n; ++i) {
    NewSubmission s = request("e" + std::to_string(i));
    if (i % 10 == 0) s.model = "rare";
    world.submit(s);
    world.close(answered(world.lease_only("t" + std::to_string(i)), world.now, "0123456789"));
    world.now += kSecond;
  }
}

TEST_CASE_TEMPLATE("cache: invalidating in slices looks at each entry once", Place, OnFile,
                   InMemory) {
  World<Place> world;
  fill(world, 40);
  CacheFilter rare;
  rare.model = "rare";
  int removed = 0, slices = 0;
  std::string after;
  do {
    const CacheRemoval slice =
        world.write([&](Store& st) { return st.invalidate_cache(rare, after, 7); });
    CHECK((slice.next.empty() || slice.next > after));
    CHECK(slice.removed <= 7);
    removed += slice.removed;
    after = slice.next;
    ++slices;
  } while (!after.empty());
  CHECK(removed == 4);
  CHECK(slices == 6);  // 40 entries, 7 at a time
  CHECK(world.store().stats(world.now).cache.entries == 36);
  CHECK(world.write([&](Store& st) { return st.invalidate_cache(rare, "", 100); }).removed == 0);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("cache: no limit on its size leaves every entry that lives", Place, OnFile,
                   InMemory) {
  World<Place> world;
  fill(world, 3);
  CHECK(world.write([&](Store& st) { return st.evict_cache(world.now, 0, 100); }) == 0);
  CHECK(world.write([&](Store& st) { return st.evict_cache(world.now, 1, 100); }) == 3);
  fill(world, 1);
  world.now += 2 * kHour;
  CHECK(world.write([&](Store& st) { return st.evict_cache(world.now, 0, 100); }) == 1);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("cache: what makes a job's key is kept with it", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("one");
  s.cache_owner = "group:g";
  s.scope = "today";
  s.locale = "de";
  s.safety = "strict";
  const JobId id = world.submit(s).job_id;
  const auto question = world.store().cache_question(id);
  REQUIRE(question.has_value());
  CHECK(question->cache_key == s.keys.cache_key);
  CHECK(question->owner == "group:g");
  CHECK(question->scope == "today");
  CHECK(question->locale == "de");
  CHECK(question->safety == "strict");
  CHECK_FALSE(world.store().cache_question(id + 1).has_value());
}

TEST_CASE_TEMPLATE("cache: only an answer makes an entry", Place, OnFile, InMemory) {
  World<Place> world;
  const NewSubmission s = request("one");
  const JobId id = world.submit(s).job_id;
  for (const Outcome outcome : {Outcome::server_error, Outcome::bad_response,
                                Outcome::empty_response, Outcome::network, Outcome::rate_limited}) {
    CAPTURE(to_string(outcome));
    AttemptClose c =
        failed(world.lease_only("t" + std::string(to_string(outcome))), world.now, world.now);
    c.result.outcome = outcome;
    c.result.body = "{}";  // also when a body came, and when it was paid for
    c.result.usage_state = UsageState::ok;
    c.result.usage[Meter::input] = 10;
    world.close(c);
    CHECK_FALSE(world.store().cache_entry(s.keys.cache_key).has_value());
  }
  SUBCASE("one that came too late makes none") {
    const LeasedJob job = world.lease_only("late");
    world.write([&](Store& st) { return st.cancel(id, world.now); });
    CHECK_FALSE(world.close(answered(job, world.now)).held);
    CHECK_FALSE(world.store().cache_entry(s.keys.cache_key).has_value());
  }
  SUBCASE("one that was cut at its limit is kept, and says so to each") {
    AttemptClose c = answered(world.lease_only("cut"), world.now);
    c.result.truncated = true;
    world.close(c);
    const SubmitReceipt hit = world.submit(s);
    CHECK(hit.outcome == SubmitReceipt::Outcome::cached);
    CHECK(world.job(hit.job_id).truncated);
  }
  world.expect_sound();
}

}  // namespace
}  // namespace aiq::test
