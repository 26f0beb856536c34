// Costs that must not grow with what is finished or not due: by the plans of all statements that
// the operations run, and by counting SQLite's steps.

#include <sqlite3.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "core/store/sqlite_store.h"
#include "store/sqlite_bulk.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

std::unique_ptr<SqliteStore> in_memory() {
  return std::make_unique<SqliteStore>(":memory:", StoreOptions{}, kStart, false);
}

// A turn of the daemon: everything that it does again and again.
void work_a_turn(SqliteStore& store, const std::string& name) {
  const UnixMs now = kStart;
  NewSubmission a = request(name, "a");
  NewSubmission b = request(name, "b");
  b.keys.cache_key = a.keys.cache_key;
  a.client_key = b.client_key = name;
  a.deadline = now + kHour;
  store.submit(a, now);
  store.submit(b, now);
  store.submit(a, now);
  store.promote_due(now, 100);
  store.expire_deadlines(now, 100);
  AdmissionView view = store.admission_view(now);
  REQUIRE(view.lanes.size() == 2);
  const LaneId first = view.lanes[0].lane.lane_id;
  const LaneId second = view.lanes[1].lane.lane_id;
  REQUIRE(store.lane_head(first).has_value());
  const LeaseOutcome one = store.lease({first, name + "-1", now, now + 60 * kSecond, "pid:7"});
  REQUIRE(one.kind == LeaseOutcome::Kind::leased);
  REQUIRE(store.lease({second, name + "-2", now, now + 60 * kSecond, "pid:7"}).kind ==
          LeaseOutcome::Kind::waits);
  REQUIRE(store.renew({{one.job_id, one.job->token}}, now + 90 * kSecond).empty());
  store.close_attempt(failed(*one.job, now, now));
  const LeaseOutcome two = store.lease({first, name + "-3", now, now + 60 * kSecond, "pid:7"});
  REQUIRE(two.kind == LeaseOutcome::Kind::leased);
  REQUIRE(store.lease({second, name + "-4", now, now + 60 * kSecond, "pid:7"}).kind ==
          LeaseOutcome::Kind::waits);
  REQUIRE(store.open_leases(0, 10).size() == 1);
  store.close_attempt(answered(*two.job, now));
  REQUIRE(store.serve_followers(now, 10) == 1);
  REQUIRE(store.submit(request(name, "a"), now).outcome == SubmitReceipt::Outcome::cached);
  const SubmitReceipt unwanted = store.submit(request(name + "x", "a"), now);
  store.submit(request(name + "x", "a"), now);
  store.withdraw(unwanted.submission_id, now);
  store.cancel(unwanted.job_id, now);
  store.evict_cache(now, 1'000'000'000, 10);
  store.clear_locks();
  store.stats(now);
}

// The statements that the connection has prepared.
std::set<std::string> statements_of(SqliteDb& db) {
  std::set<std::string> texts;
  for (sqlite3_stmt* s = sqlite3_next_stmt(db.handle(), nullptr); s != nullptr;
       s = sqlite3_next_stmt(db.handle(), s)) {
    texts.emplace(sqlite3_sql(s));
  }
  return texts;
}

// What EXPLAIN QUERY PLAN says about each of them, but those of `before`.
std::map<std::string, std::vector<std::string>> plans_of(SqliteDb& db,
                                                         const std::set<std::string>& before) {
  std::map<std::string, std::vector<std::string>> plans;
  for (const std::string& text : statements_of(db)) {
    if (before.count(text) != 0) continue;
    sqlite3_stmt* explain = nullptr;
    REQUIRE(sqlite3_prepare_v2(db.handle(), ("EXPLAIN QUERY PLAN " + text).c_str(), -1, &explain,
                               nullptr) == SQLITE_OK);
    auto& lines = plans[text];
    while (sqlite3_step(explain) == SQLITE_ROW) {
      lines.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(explain, 3)));
    }
    sqlite3_finalize(explain);
  }
  return plans;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("plans: no statement of the daemon's turn walks a table that grows") {
  const auto store = in_memory();
  store->begin();
  add_finished_jobs(store->db(), 2'000);
  add_later_jobs(store->db(), 500);
  const auto bulk = statements_of(store->db());
  store->db().exec("ANALYZE");  // the planner must not be tempted by what it knows either
  store->commit();
  store->begin();
  work_a_turn(*store, "w");
  store->commit();

  const auto plans = plans_of(store->db(), bulk);
  CHECK(plans.size() > 50);
  std::map<std::string, int> used;
  for (const auto& [text, lines] : plans) {
    for (const std::string& line : lines) {
      INFO(text << "\n  " << line);
      for (const char* index : {"jobs_ready", "jobs_due", "jobs_locked", "jobs_serve",
                                "jobs_leased", "jobs_deadline", "jobs_live_key"}) {
        if (contains(line, std::string("INDEX ") + index)) ++used[index];
      }
      for (const char* table :
           {"jobs", "j", "attempts", "results", "requests", "usage_events", "submissions", "outbox",
            "client_keys", "dead_letters", "job_labels"}) {
        const std::string scan = std::string("SCAN ") + table;
        const bool scans = line == scan || contains(line, scan + " ");
        // Walking the whole of a small partial index is its purpose.
        CHECK_FALSE((scans && !contains(line, "INDEX jobs_") &&
                     !contains(line, "INDEX dead_letters_open")));
      }
    }
  }
  for (const char* index : {"jobs_ready", "jobs_due", "jobs_locked", "jobs_serve", "jobs_leased",
                            "jobs_deadline", "jobs_live_key"}) {
    INFO(index);
    CHECK(used[index] > 0);
  }
}

std::int64_t steps_since_last(SqliteDb& db) {
  std::int64_t steps = 0;
  for (sqlite3_stmt* s = sqlite3_next_stmt(db.handle(), nullptr); s != nullptr;
       s = sqlite3_next_stmt(db.handle(), s)) {
    steps += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
  }
  return steps;
}

TEST_CASE("plans: lists of few rows do not walk all that is finished") {
  const auto store = in_memory();
  store->begin();
  add_finished_jobs(store->db(), 20'000);
  store->db().exec("UPDATE jobs SET created_at = created_at - 1000000 + job_id");
  // Ids with a gap, as after pruning or a restore.
  store->submit(request("gap"), kStart);
  store->db().exec("UPDATE sqlite_sequence SET seq = seq + 1000000 WHERE name = 'jobs'");
  NewSubmission wanted = request("wanted");
  const JobId id = store->submit(wanted, kStart + kHour).job_id;
  const AdmissionView view = store->admission_view(kStart + kHour);
  for (int i = 0; i < 2; ++i) {
    const LeaseOutcome leased =
        store->lease({view.lanes.at(0).lane.lane_id, "t" + std::to_string(i), kStart + kHour,
                      kStart + 2 * kHour, "pid:7"});
    REQUIRE(leased.kind == LeaseOutcome::Kind::leased);
    store->close_attempt(refused(*leased.job, kStart + kHour));
  }
  store->db().exec(
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
      "INSERT INTO dead_letters (job_id, generation, lane_id, reason, attempts, state, dead_at, "
      "correlation_id) SELECT i, 1, 1, 'deadline', 0, 'discarded', 0, '' FROM n");
  store->commit();

  const auto cost = [&](auto list) {
    steps_since_last(store->db());
    list();
    return steps_since_last(store->db());
  };
  JobFilter since;
  since.since = kStart + kHour;
  CHECK(cost([&] { CHECK(store->list_jobs(since, {}).at(0).job_id == id); }) < 2'000);
  CHECK(store->list_jobs(since, {}).size() == 1);
  since.since = kStart;
  CHECK(store->list_jobs(since, {}).size() == 2);
  since.since = kStart + kHour + 1;
  CHECK(store->list_jobs(since, {}).empty());
  since.since = 0;
  std::size_t all = 0;
  std::int64_t after = 0;
  for (auto page = store->list_jobs(since, {after, 1'000}); !page.empty();
       page = store->list_jobs(since, {after, 1'000})) {
    all += page.size();
    after = page.back().job_id;
  }
  CHECK(all == 20'002);
  JobFilter correlated;
  correlated.correlation_id = "c-wanted";
  CHECK(cost([&] { CHECK(store->list_jobs(correlated, {}).at(0).job_id == id); }) < 2'000);
  CHECK(cost([&] { CHECK(store->list_dead_letters({}, {}).size() == 2); }) < 2'000);
}

TEST_CASE("growth: removing one entry costs the same beside many") {
  const auto store = in_memory();
  store->begin();
  store->submit(request("one"), kStart);
  const LaneId lane = store->admission_view(kStart).lanes.at(0).lane.lane_id;
  const LeaseOutcome leased = store->lease({lane, "t", kStart, kStart + kHour, "pid:7"});
  REQUIRE(leased.kind == LeaseOutcome::Kind::leased);
  store->close_attempt(answered(*leased.job, kStart));
  store->db().exec(
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
      "INSERT INTO cache_entries (cache_key, cache_owner, lane_id, job_id, result_id, truncated, "
      "created_at, soft_until, hard_until, last_used_at, bytes, tokens) SELECT randomblob(32), "
      "cache_owner, lane_id, job_id, result_id, truncated, created_at, soft_until, hard_until, "
      "last_used_at, bytes, tokens FROM n, cache_entries");
  CacheFilter filter;
  filter.cache_key = request("one").keys.cache_key;
  filter.model = "gpt-4o";
  steps_since_last(store->db());
  CHECK(store->invalidate_cache(filter, "", 100).removed == 1);
  CHECK(steps_since_last(store->db()) < 1'000);

  // A slice costs by itself, also where it begins late and finds nothing.
  CacheFilter nothing;
  nothing.tenant = "nobody";
  nothing.label_key = "team";
  const std::string late = "f" + std::string(63, '0');
  for (const std::string& after : {std::string(), late}) {
    steps_since_last(store->db());
    const CacheRemoval slice = store->invalidate_cache(nothing, after, 100);
    CHECK(slice.removed == 0);
    CHECK_FALSE(slice.next.empty());
    CHECK(steps_since_last(store->db()) < 10'000);
  }
  store->db().exec("UPDATE cache_counters SET n = 20000 WHERE name IN ('entries', 'bytes')");
  steps_since_last(store->db());
  CHECK(store->evict_cache(kStart, 1, 10) == 10);
  CHECK(steps_since_last(store->db()) < 10'000);
  store->rollback();
}

double steps_to_remove_a_job(int finished) {
  const auto store = in_memory();
  store->begin();
  add_finished_jobs(store->db(), finished);
  store->db().exec("INSERT INTO job_labels SELECT 'n', job_id, job_id FROM jobs");
  store->commit();
  store->begin();
  PruneRules rules;
  rules.completed = kStart + kHour;
  steps_since_last(store->db());
  const PruneSlice slice = store->prune(rules, {});
  const std::int64_t steps = steps_since_last(store->db());
  store->commit();
  REQUIRE(slice.counts.jobs > 0);
  return static_cast<double>(steps) / static_cast<double>(slice.counts.jobs);
}

TEST_CASE("growth: removing a job costs the same beside a thousand and beside many") {
  const double small = steps_to_remove_a_job(1'000);
  const double large = steps_to_remove_a_job(50'000);
  INFO(small << " steps beside 1000 jobs, " << large << " beside 50000");
  CHECK(large <= small * 2);  // a slice that the time ended early has read more for less
}

std::int64_t steps_of_a_turn(int finished, int later) {
  const auto store = in_memory();
  store->begin();
  add_finished_jobs(store->db(), finished);
  add_later_jobs(store->db(), later);
  store->commit();
  store->begin();
  work_a_turn(*store, "first");
  steps_since_last(store->db());
  work_a_turn(*store, "second");
  store->commit();
  return steps_since_last(store->db());
}

TEST_CASE("growth: a turn costs the same beside a thousand and beside very many jobs") {
  const char* wanted = std::getenv("AIQ_GROWTH_ROWS");
  const int finished = wanted != nullptr ? std::atoi(wanted) : 200'000;
  const std::int64_t small = steps_of_a_turn(1'000, 250);
  const std::int64_t large = steps_of_a_turn(finished, finished / 4);
  INFO(small << " steps beside 1000 jobs, " << large << " beside " << finished);
  CHECK(small > 1'000);
  CHECK(large <= small + small / 5);
}

}  // namespace
}  // namespace aiq::test
