// Equal work is paid once: who leads, who waits, who is served, over a file and in memory.

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

using Kind = LeaseOutcome::Kind;

// Three tenants of one cache group ask the same.
template <class Place>
std::vector<JobId> submit_shared(World<Place>& world, int n) {
  std::vector<JobId> ids;
  for (int i = 0; i < n; ++i) {
    NewSubmission s = request("same", "t" + std::to_string(i));
    s.keys.cache_key = sha256_hex("shared");
    s.cache_owner = "group:g";
    ids.push_back(world.submit(s).job_id);
  }
  return ids;
}

template <class Place>
std::vector<LeaseOutcome> lease_all(World<Place>& world, const std::string& prefix) {
  std::vector<LeaseOutcome> outcomes;
  const auto view = world.write([&](Store& st) { return st.admission_view(world.now); });
  for (const LaneHead& head : view.lanes) {
    outcomes.push_back(world.lease(head.lane.lane_id, prefix + std::to_string(head.lane.lane_id)));
  }
  return outcomes;
}

TEST_CASE_TEMPLATE("single flight: one asks, the others are served", Place, OnFile, InMemory) {
  World<Place> world;
  const auto ids = submit_shared(world, 3);
  const auto outcomes = lease_all(world, "t");
  REQUIRE(outcomes.size() == 3);
  REQUIRE(outcomes[0].kind == Kind::leased);
  CHECK(outcomes[1].kind == Kind::waits);
  CHECK(outcomes[2].kind == Kind::waits);
  CHECK(world.job(ids[1]).wait == "lock");
  CHECK(world.state(ids[1]) == JobState::queued);
  const auto locks = world.store().list_locks();
  REQUIRE(locks.size() == 1);
  CHECK(locks[0].name == "cache:" + sha256_hex("shared"));
  CHECK(locks[0].owner == outcomes[0].job->token);
  CHECK(locks[0].job_id == ids[0]);
  CHECK(lease_all(world, "u").empty());

  world.close(answered(*outcomes[0].job, world.now, "for all"));
  CHECK(world.job(ids[1]).wait == "serve");
  CHECK(world.write([&](Store& st) { return st.serve_followers(world.now, 1); }) == 1);
  CHECK(world.write([&](Store& st) { return st.serve_followers(world.now, 10); }) == 1);
  CHECK(world.write([&](Store& st) { return st.serve_followers(world.now, 10); }) == 0);
  for (const JobId id : ids) {
    CHECK(world.state(id) == JobState::completed);
    CHECK(world.store().result_body(*world.job(id).result_id) == "for all");
  }
  CHECK(world.job(ids[2]).result_source == "cache");
  CHECK_FALSE(world.job(ids[2]).stale);
  CHECK(world.store().list_locks().empty());
  CHECK(world.store().stats(world.now).cache.hits == 2);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("single flight: when the leader fails another leads", Place, OnFile, InMemory) {
  World<Place> world;
  const auto ids = submit_shared(world, 3);
  const auto outcomes = lease_all(world, "t");
  SUBCASE("by an error") {
    world.close(failed(*outcomes[0].job, world.now, world.now + kHour));
    CHECK(world.state(ids[0]) == JobState::retrying);
  }
  SUBCASE("by a cancel") {
    world.write([&](Store& st) { return st.cancel(ids[0], world.now); });
  }
  SUBCASE("by an answer that is not to be kept") {
    AttemptClose c = refused(*outcomes[0].job, world.now);
    world.close(c);
  }
  CHECK(world.job(ids[1]).wait == "ready");
  const auto again = lease_all(world, "u");
  REQUIRE(again.size() == 2);
  CHECK(again[0].kind == Kind::leased);
  CHECK(again[0].job->job_id == ids[1]);
  CHECK(again[1].kind == Kind::waits);
  world.close(answered(*again[0].job, world.now));
  world.write([&](Store& st) { return st.serve_followers(world.now, 10); });
  CHECK(world.state(ids[2]) == JobState::completed);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("single flight: an answer that lives shortly still serves who waited for it",
                   Place, OnFile, InMemory) {
  World<Place> world;
  std::vector<JobId> ids;
  for (const char* tenant : {"a", "b"}) {
    NewSubmission s = request("same", tenant);
    s.keys.cache_key = sha256_hex("shared");
    s.soft_ttl_ms = 0;
    ids.push_back(world.submit(s).job_id);
  }
  const auto outcomes = lease_all(world, "t");
  world.now += kSecond;
  world.close(answered(*outcomes[0].job, world.now));
  world.write([&](Store& st) { return st.serve_followers(world.now, 10); });
  CHECK(world.state(ids[1]) == JobState::completed);
}

TEST_CASE_TEMPLATE("single flight: who wants an answer of its own waits and then asks", Place,
                   OnFile, InMemory) {
  World<Place> world;
  NewSubmission a = request("same", "a");
  NewSubmission b = request("same", "b");
  a.keys.cache_key = b.keys.cache_key = sha256_hex("shared");
  b.cache.read = false;
  world.submit(a);
  const JobId own = world.submit(b).job_id;
  const auto outcomes = lease_all(world, "t");
  CHECK(outcomes[1].kind == Kind::waits);
  world.close(answered(*outcomes[0].job, world.now));
  world.write([&](Store& st) { return st.serve_followers(world.now, 10); });
  CHECK(world.job(own).wait == "ready");
  CHECK(lease_all(world, "u").at(0).kind == Kind::leased);
}

TEST_CASE_TEMPLATE("single flight: nobody waits for an answer that will not be kept", Place, OnFile,
                   InMemory) {
  World<Place> world;
  bool no_store = false;
  SUBCASE("because it is not wanted") {
    no_store = true;
  }
  SUBCASE("because it would live for no time") {
    no_store = false;
  }
  for (const char* tenant : {"a", "b"}) {
    NewSubmission s = request("same", tenant);
    s.keys.cache_key = sha256_hex("shared");
    if (no_store)
      s.cache.store = false;
    else
      s.soft_ttl_ms = s.hard_ttl_ms = 0;
    world.submit(s);
  }
  for (const LeaseOutcome& outcome : lease_all(world, "t"))
    CHECK(outcome.kind == Kind::leased);
  CHECK(world.store().list_locks().empty());
}

TEST_CASE_TEMPLATE("lease: a fresh entry serves a waiting job instead", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission a = request("same", "a");
  NewSubmission b = request("same", "b");
  a.keys.cache_key = b.keys.cache_key = sha256_hex("shared");
  b.run_at = kStart + kHour / 2;
  world.submit(a);
  const JobId waiting = world.submit(b).job_id;
  world.close(answered(world.lease_only("t1"), world.now));
  world.now = b.run_at;
  world.write([&](Store& st) { return st.promote_due(world.now, 10); });
  const auto outcomes = lease_all(world, "u");
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].kind == Kind::served);
  CHECK(outcomes[0].job_id == waiting);
  CHECK(world.state(waiting) == JobState::completed);
  CHECK(world.store().attempts_of(waiting).empty());
  world.expect_sound();
}

TEST_CASE_TEMPLATE("refresh: is not paid when another job brought a newer answer", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const NewSubmission s = request("one");
  world.submit(s);
  world.close(answered(world.lease_only("t1"), world.now, "old"));
  world.now += kHour;  // its soft TTL
  const SubmitReceipt stale = world.submit(s);
  REQUIRE(stale.refresh_job.has_value());
  const JobId refresh = *stale.refresh_job;
  NewSubmission own = s;
  own.cache.read = false;
  const JobId other = world.submit(own).job_id;
  world.now += kSecond;
  const LeasedJob leader = world.lease_only("t2");
  REQUIRE(leader.job_id == other);
  bool paid = false;
  SUBCASE("before its turn came") {
    world.close(answered(leader, world.now, "new"));
    const auto outcomes = lease_all(world, "u");
    REQUIRE(outcomes.size() == 1);
    CHECK(outcomes[0].kind == Kind::served);
  }
  SUBCASE("while it waited for it") {
    CHECK(lease_all(world, "u").at(0).kind == Kind::waits);
    world.close(answered(leader, world.now, "new"));
    CHECK(world.write([&](Store& st) { return st.serve_followers(world.now, 10); }) == 1);
  }
  SUBCASE("but is when that one is stale again") {
    CHECK(lease_all(world, "u").at(0).kind == Kind::waits);
    world.close(answered(leader, world.now, "new"));
    world.now += kHour;
    CHECK(world.write([&](Store& st) { return st.serve_followers(world.now, 10); }) == 1);
    CHECK(lease_all(world, "v").at(0).kind == Kind::leased);
    paid = true;
  }
  CHECK(world.state(refresh) == (paid ? JobState::processing : JobState::completed));
  CHECK(world.store().attempts_of(refresh).size() == (paid ? 1 : 0));
  world.expect_sound();
}

TEST_CASE_TEMPLATE("join: a job keeps its answer when one of those who wait wants it kept", Place,
                   OnFile, InMemory) {
  World<Place> world;
  NewSubmission first = request("one");
  NewSubmission second = request("one");
  first.cache.store = false;
  first.soft_ttl_ms = first.hard_ttl_ms = kSecond;
  bool kept = true;
  SUBCASE("joined before it is sent") {
    const JobId id = world.submit(first).job_id;
    CHECK(world.submit(second).job_id == id);
  }
  SUBCASE("the other way round") {
    const JobId id = world.submit(second).job_id;
    CHECK(world.submit(first).job_id == id);
  }
  SUBCASE("not once it is sent") {
    world.submit(first);
    kept = false;
  }
  const LeasedJob job = world.lease_only("t1");
  if (!kept) world.submit(second);
  CHECK(world.store().list_locks().size() == (kept ? 1 : 0));
  world.close(answered(job, world.now));
  const auto entry = world.store().cache_entry(first.keys.cache_key);
  REQUIRE(entry.has_value() == kept);
  if (kept) CHECK(entry->hard_until == world.now + second.hard_ttl_ms);
  CHECK(world.store().list_locks().empty());
  world.expect_sound();
}

TEST_CASE_TEMPLATE("join: the strictest of those who wait decides what may answer", Place, OnFile,
                   InMemory) {
  World<Place> world;
  NewSubmission paid = request("same", "a");
  NewSubmission later = request("same", "b");
  paid.keys.cache_key = later.keys.cache_key = sha256_hex("shared");
  later.run_at = kStart + 100 * kSecond;
  const JobId id = world.submit(later).job_id;
  world.submit(paid);
  world.close(answered(world.lease_only("t1"), world.now));
  world.now += 90 * kSecond;
  NewSubmission strict = later;
  Kind expected = Kind::leased;
  SUBCASE("nobody joined") {
    expected = Kind::served;
  }
  SUBCASE("one that wants an answer of its own") {
    strict.cache.read = false;
  }
  SUBCASE("one that wants a young answer") {
    strict.cache.max_age = 5 * kSecond;
  }
  if (expected == Kind::leased) CHECK(world.submit(strict).job_id == id);
  world.now = later.run_at;
  world.write([&](Store& st) { return st.promote_due(world.now, 10); });
  CHECK(lease_all(world, "u").at(0).kind == expected);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("single flight: an answer newer than the question is young enough for anybody",
                   Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission a = request("same", "a");
  NewSubmission b = request("same", "b");
  a.keys.cache_key = b.keys.cache_key = sha256_hex("shared");
  b.cache.max_age = 0;
  world.submit(a);
  const JobId strict = world.submit(b).job_id;
  const auto outcomes = lease_all(world, "t");
  world.now += kSecond;
  world.close(answered(*outcomes[0].job, world.now));
  world.now += kSecond;
  world.write([&](Store& st) { return st.serve_followers(world.now, 10); });
  CHECK(world.state(strict) == JobState::completed);
  CHECK(world.job(strict).result_source == "cache");
}

}  // namespace
}  // namespace aiq::test
