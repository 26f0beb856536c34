// What lists, statistics and the check of a store say, over a file and in memory.

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

std::vector<JobId> ids_of(const std::vector<JobRow>& rows) {
  std::vector<JobId> ids;
  for (const JobRow& row : rows)
    ids.push_back(row.job_id);
  return ids;
}

using Ids = std::vector<JobId>;

// 1 completed, 2 dead, 3 retrying at once, 4 processing, 5 queued (tenant acme, labelled), 6 later.
template <class Place>
void fill(World<Place>& world) {
  world.submit(request("1"));
  world.close(answered(world.lease_only("t1"), world.now));
  world.submit(request("2"));
  world.close(refused(world.lease_only("t2"), world.now));
  world.submit(request("3"));
  const LeasedJob third = world.lease_only("t3");
  world.submit(request("4"));
  world.lease_only("t4");
  world.close(failed(third, world.now, world.now));
  world.now += kSecond;
  NewSubmission five = request("5", "acme");
  five.model = "claude";
  five.vendor = "anthropic";
  five.labels = {{"team", "x"}};
  five.correlation_id = "trace-5";
  world.submit(five);
  NewSubmission six = request("6");
  six.run_at = world.now + kHour;
  six.labels = {{"team", "x"}, {"run", "2"}};
  world.submit(six);
}

TEST_CASE_TEMPLATE("list: every filter, newest first, in pages", Place, OnFile, InMemory) {
  World<Place> world;
  fill(world);
  Store& store = world.store();
  const auto list = [&](const JobFilter& f, const Page& page = {}) {
    return ids_of(store.list_jobs(f, page));
  };
  CHECK(list({}) == Ids{6, 5, 4, 3, 2, 1});
  CHECK(list({}, {0, 2}) == Ids{6, 5});
  CHECK(list({}, {5, 2}) == Ids{4, 3});
  CHECK(list({}, {1, 2}).empty());
  JobFilter f;
  const std::pair<JobState, Ids> by_state[] = {
      {JobState::completed, {1}},  {JobState::dead_lettered, {2}}, {JobState::retrying, {3}},
      {JobState::processing, {4}}, {JobState::queued, {6, 5}},     {JobState::failed, {}},
      {JobState::cancelled, {}}};
  for (const auto& [state, expected] : by_state) {
    f.status = state;
    CHECK(list(f) == expected);
    CHECK(world.count(state) == static_cast<std::int64_t>(expected.size()));
  }
  f.status = JobState::queued;
  CHECK(list(f, {6, 10}) == Ids{5});
  f = {};
  f.tenant = "acme";
  CHECK(list(f) == Ids{5});
  f = {};
  f.model = "gpt-4o";
  f.until = kStart + kSecond;
  CHECK(list(f) == Ids{4, 3, 2, 1});
  f = {};
  f.vendor = "anthropic";
  CHECK(list(f) == Ids{5});
  f = {};
  f.correlation_id = "trace-5";
  CHECK(list(f) == Ids{5});
  f = {};
  f.label_key = "team";
  f.label_value = "x";
  CHECK(list(f) == Ids{6, 5});
  f.status = JobState::queued;
  f.tenant = "acme";
  CHECK(list(f) == Ids{5});
  f = {};
  f.since = kStart + kSecond;
  CHECK(list(f) == Ids{6, 5});
}

TEST_CASE_TEMPLATE("lanes: are known from the first submit on, by every part", Place, OnFile,
                   InMemory) {
  World<Place> world;
  Store& store = world.store();
  CHECK_FALSE(store.lane_exists("", "", ""));
  fill(world);
  CHECK(store.lane_exists("", "", ""));
  CHECK(store.lane_exists("anthropic", "", ""));
  CHECK(store.lane_exists("", "claude", ""));
  CHECK(store.lane_exists("", "", "acme"));
  CHECK(store.lane_exists("anthropic", "claude", "acme"));
  CHECK_FALSE(store.lane_exists("anthropic", "gpt-4o", ""));
  CHECK_FALSE(store.lane_exists("openai", "", "acme"));
  CHECK_FALSE(store.lane_exists("other", "", ""));
}

TEST_CASE_TEMPLATE("list: dead letters by every filter", Place, OnFile, InMemory) {
  World<Place> world;
  fill(world);
  world.submit(request("7", "zeta"));
  const auto view = world.write([&](Store& st) { return st.admission_view(world.now); });
  for (const LaneHead& head : view.lanes) {
    if (head.lane.tenant != "zeta") continue;
    const LeaseOutcome leased = world.lease(head.lane.lane_id, "z");
    AttemptClose c = refused(*leased.job, world.now);
    c.result.outcome = Outcome::server_error;
    c.next.reason = DeadReason::attempts_exhausted;
    world.close(c);
  }
  const auto list = [&](const DeadLetterFilter& f) {
    std::vector<JobId> jobs;
    for (const DeadLetter& d : world.store().list_dead_letters(f, {}))
      jobs.push_back(d.job_id);
    return jobs;
  };
  CHECK(list({}) == Ids{7, 2});
  DeadLetterFilter f;
  f.tenant = "zeta";
  CHECK(list(f) == Ids{7});
  f = {};
  f.reason = "rejected";
  CHECK(list(f) == Ids{2});
  f = {};
  f.error_class = "server_error";
  CHECK(list(f) == Ids{7});
  f = {};
  f.state = "replayed";
  CHECK(list(f).empty());
  f.state.clear();
  CHECK(list(f).size() == 2);
  f.since = kStart + kSecond;
  CHECK(list(f) == Ids{7});
  f.since.reset();
  f.until = kStart + kSecond;
  CHECK(list(f) == Ids{2});
}

TEST_CASE_TEMPLATE("stats: say how long heads wait and what runs", Place, OnFile, InMemory) {
  World<Place> world;
  CHECK_FALSE(world.store().stats(world.now).oldest_due.has_value());
  fill(world);
  const StoreStats stats = world.store().stats(world.now);
  CHECK(stats.oldest_due == kStart);
  REQUIRE(stats.running.size() == 1);
  CHECK(stats.running[0].in_flight == 1);
  CHECK(stats.dlq_open == 1);
  CHECK(stats.cache.entries == 1);
}

TEST_CASE_TEMPLATE("stats: percentiles by group, of what ended since", Place, OnFile, InMemory) {
  World<Place> world;
  for (int i = 1; i <= 20; ++i) {
    world.submit(request("p" + std::to_string(i)));
    world.now += 10;  // each waits 10 ms
    AttemptClose c = answered(world.lease_only("t" + std::to_string(i)), world.now);
    c.result.total_ms = i * 100;
    world.close(c);
  }
  world.submit(request("bad"));
  world.close(refused(world.lease_only("tb"), world.now));
  for (const char* by : {"tenant", "vendor", "model"}) {
    const auto groups = world.store().stats_by(by, kStart);
    REQUIRE(groups.size() == 1);
    CHECK(groups[0].attempts == 21);
    CHECK(groups[0].errors == 1);
    CHECK(groups[0].latency_p50_ms == 1000);
    CHECK(groups[0].latency_p95_ms == 1900);
    CHECK(groups[0].latency_p99_ms == 2000);
    CHECK(groups[0].wait_p50_ms == 10);
    CHECK(groups[0].wait_p99_ms == 10);
  }
  CHECK(world.store().stats_by("tenant", kStart)[0].name == "default");
  CHECK(world.store().stats_by("vendor", kStart)[0].name == "openai");
  CHECK(world.store().stats_by("model", world.now - 10).at(0).attempts == 3);
  CHECK(world.store().stats_by("model", world.now + 1).empty());
}

TEST_CASE_TEMPLATE("info: names the file and its schema", Place, OnFile, InMemory) {
  World<Place> world;
  const DbInfo info = world.store().info();
  CHECK(info.schema_version == kSchemaVersion);
  CHECK(info.created_at == kStart);
  CHECK(info.page_size == 8192);
  CHECK(info.page_count > 10);
  CHECK_FALSE(info.sqlite_version.empty());
}

TEST_CASE_TEMPLATE("read: what is not there is nothing", Place, OnFile, InMemory) {
  World<Place> world;
  Store& store = world.store();
  CHECK_FALSE(store.job(1).has_value());
  CHECK(store.attempts_of(1).empty());
  CHECK_FALSE(store.request_body(1).has_value());
  CHECK_FALSE(store.result_body(1).has_value());
  CHECK_FALSE(store.cache_entry(sha256_hex("x")).has_value());
  CHECK_FALSE(store.cache_entry("x").has_value());
}

}  // namespace
}  // namespace aiq::test
