// What goes with a job beyond what the store's interface shows: lines of batches, edits, old dead
// letters; and batches, which go with their last line.

#include "core/store/sqlite_store.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

constexpr UnixMs kOld = kStart + 1;

// Three cancelled jobs; the first two are lines 1 and 3 of a batch of which line 2 was refused.
std::unique_ptr<SqliteStore> with_a_batch() {
  auto store = std::make_unique<SqliteStore>(":memory:", StoreOptions{}, kStart, false);
  store->begin();
  for (const char* name : {"one", "two", "three"}) {
    const JobId id = store->submit(request(name), kStart).job_id;
    (void)store->cancel(id, kStart);
  }
  store->db().exec(
      "INSERT INTO batches (tenant, fingerprint, state, created_at, loaded_at, lines, created, "
      "rejected, correlation_id, actor) VALUES ('default', zeroblob(32), 'loaded', 1, 1, 3, 2, 1, "
      "'c', 'a');"
      "UPDATE submissions SET batch_id = 1, line = submission_id * 2 - 1 WHERE job_id < 3;"
      "INSERT INTO batch_lines SELECT 1, line, 'id' || line, job_id, submission_id "
      "FROM submissions WHERE batch_id = 1;"
      "INSERT INTO batch_errors VALUES (1, 2, 'invalid_json', 'no')");
  store->commit();
  REQUIRE(store->check() == std::vector<std::string>{});
  return store;
}

PruneCounts prune_all(SqliteStore& store, const PruneRules& rules) {
  PruneCounts total;
  for (PruneCursor from; from.phase != PruneCursor::Phase::done;) {
    store.begin();
    const PruneSlice slice = store.prune(rules, from);
    store.commit();
    total += slice.counts;
    from = slice.next;
  }
  CHECK(store.check() == std::vector<std::string>{});
  return total;
}

std::string rows_of(SqliteStore& store, const std::string& table) {
  static std::vector<std::unique_ptr<std::string>> texts;  // statements are kept by address
  texts.push_back(std::make_unique<std::string>("SELECT count(*) FROM " + table));
  return store.db().pragma(texts.back()->c_str());
}

TEST_CASE("prune: a batch goes with its last line, and what was refused with it") {
  const auto store = with_a_batch();
  PruneRules rules;
  rules.cancelled = kOld;
  store->db().exec("UPDATE jobs SET finished_at = finished_at + 5 WHERE job_id = 2");
  CHECK(prune_all(*store, rules).batches == 0);
  CHECK(rows_of(*store, "batch_lines") == "1");
  CHECK(rows_of(*store, "batch_errors") == "1");
  CHECK(rows_of(*store, "batches") == "1");

  rules.cancelled = kOld + 5;
  CHECK(prune_all(*store, rules).batches == 1);
  for (const char* table : {"batch_lines", "batch_errors", "batches", "submissions", "jobs"}) {
    INFO(table);
    CHECK(rows_of(*store, table) == "0");
  }
}

TEST_CASE("prune: what a job used keeps the labels that it is grouped by") {
  SqliteStore store(":memory:", StoreOptions{}, kStart, false);
  store.begin();
  for (const char* name : {"used", "cancelled"}) {
    NewSubmission s = request(name);
    s.labels = {{"team", name}};
    (void)store.submit(s, kStart);
  }
  (void)store.cancel(2, kStart);
  store.db().exec(
      "INSERT INTO usage_events (tenant, event_id, vendor, model, meter, units, occurred_at, "
      "received_at, job_id) VALUES ('default', 'e', 'v', 'm', 'input', 1, 1, 1, 1)");
  (void)store.cancel(1, kStart);
  store.commit();
  PruneRules rules;
  rules.cancelled = kOld;
  CHECK(prune_all(store, rules).jobs == 2);
  CHECK(rows_of(store, "job_labels") == "1");
  CHECK(store.db().pragma("SELECT value FROM job_labels") == "used");
}

TEST_CASE("prune: a batch that is still being read stays, one without a line goes as failed") {
  const auto store = with_a_batch();
  store->db().exec("UPDATE batches SET state = 'loading', loaded_at = NULL");
  PruneRules rules;
  rules.cancelled = kOld;
  CHECK(prune_all(*store, rules).jobs == 3);
  CHECK(rows_of(*store, "batches") == "1");

  store->db().exec(
      "UPDATE batches SET state = 'loaded', loaded_at = 10, lines = 2500, created = 0, "
      "rejected = 2500; DELETE FROM batch_errors;"
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) "
      "INSERT INTO batch_errors SELECT 1, i, 'invalid_json', 'no' FROM n");
  rules.failed = 10;
  CHECK(prune_all(*store, rules).batches == 0);
  rules.failed = 11;
  store->begin();
  CHECK(store->prune(rules, {.phase = PruneCursor::Phase::batches}).counts.batches == 0);
  store->commit();
  CHECK(rows_of(*store, "batch_errors") == "1500");  // in slices
  CHECK(prune_all(*store, rules).batches == 1);
  CHECK(rows_of(*store, "batch_errors") == "0");
}

TEST_CASE("prune: edits and closed dead letters go with their job, an open one keeps it") {
  const auto store = with_a_batch();
  store->db().exec(
      "INSERT INTO request_edits (job_id, generation, lane_id, endpoint, body, edited_at, actor) "
      "VALUES (3, 1, 1, 'chat', x'7b7d', 1, 'a');"
      "INSERT INTO dead_letters (job_id, generation, lane_id, reason, attempts, state, dead_at, "
      "correlation_id) VALUES (3, 1, 1, 'deadline', 0, 'replayed', 1, ''), "
      "(1, 1, 1, 'deadline', 0, 'open', 1, '')");
  PruneRules rules;
  rules.cancelled = rules.attempts = kOld;
  CHECK(prune_all(*store, rules).jobs == 2);
  CHECK(rows_of(*store, "request_edits") == "0");
  CHECK(store->db().pragma("SELECT group_concat(job_id) FROM dead_letters") == "1");
  CHECK(store->job(1).has_value());
}

}  // namespace
}  // namespace aiq::test
