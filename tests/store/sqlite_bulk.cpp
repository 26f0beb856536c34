#include "store/sqlite_bulk.h"

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

constexpr const char* kLane =
    "INSERT INTO lanes (tenant, vendor, model) VALUES ('bulk', 'openai', 'gpt-4o') "
    "ON CONFLICT DO NOTHING";
constexpr const char* kFinished =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) "
    "INSERT INTO jobs (lane_id, kind, endpoint, state, live, priority, rank, created_at, run_at, "
    "started_at, finished_at, attempt, max_attempts, idempotency_key, cache_key, cache_owner, "
    "cache_read, cache_store, coalesce, soft_ttl, hard_ttl, correlation_id, result_source) "
    "SELECT (SELECT lane_id FROM lanes WHERE tenant = 'bulk'), 'request', 'chat', 'completed', 0, "
    "0, ?2, ?2, ?2, ?2, ?2, 1, 5, randomblob(32), randomblob(32), 'tenant:bulk', 1, 1, 1, 1, 1, "
    "'bulk', 'vendor' FROM n";
constexpr const char* kLater =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) "
    "INSERT INTO jobs (lane_id, kind, endpoint, state, wait, live, priority, rank, created_at, "
    "run_at, deadline, max_attempts, idempotency_key, cache_key, cache_owner, cache_read, "
    "cache_store, coalesce, soft_ttl, hard_ttl, correlation_id) "
    "SELECT (SELECT lane_id FROM lanes WHERE tenant = 'bulk'), 'request', 'chat', 'queued', "
    "'time', 1, 0, ?2 + i, ?3, ?2 + i, ?2 + 1000000000 + i, 5, randomblob(32), randomblob(32), "
    "'tenant:bulk', 1, 1, 1, 1, 1, 'bulk' FROM n";
constexpr const char* kResults =
    "INSERT INTO results (job_id, body) SELECT job_id, x'7b7d' FROM jobs "
    "WHERE state = 'completed' AND result_id IS NULL";
// Both ids run without gaps: a job's result is as far from the last as the job is.
constexpr const char* kResultIds =
    "UPDATE jobs SET result_id = job_id - ?1 + ?2 WHERE state = 'completed' AND result_id IS NULL";
constexpr const char* kRequests =
    "INSERT INTO requests (job_id, body) SELECT job_id, x'7b7d' FROM jobs WHERE job_id > "
    "(SELECT coalesce(max(job_id), 0) FROM requests)";
constexpr const char* kAttempts =
    "INSERT INTO attempts (job_id, generation, attempt, lane_id, started_at, ended_at, outcome, "
    "billed, counts, usage_state, worker) SELECT job_id, 1, 1, lane_id, run_at, run_at, "
    "'completed', 'yes', 1, 'ok', 'pid:1' FROM jobs WHERE state = 'completed' AND job_id > "
    "(SELECT coalesce(max(job_id), 0) FROM attempts)";
constexpr const char* kCount = "UPDATE job_counts SET n = n + ?2 WHERE state = ?1";

}  // namespace

void add_finished_jobs(SqliteDb& db, int n) {
  run(db, kLane);
  run(db, kFinished, n, kStart - 1000);
  const JobId last = db.last_id();
  run(db, kResults);
  run(db, kResultIds, last, db.last_id());
  run(db, kRequests);
  run(db, kAttempts);
  run(db, kCount, "completed", n);
}

void add_later_jobs(SqliteDb& db, int n) {
  run(db, kLane);
  run(db, kLater, n, kStart + 365LL * 24 * kHour, kStart - 1000);
  run(db, kRequests);
  run(db, kCount, "queued", n);
}

}  // namespace aiq::test
