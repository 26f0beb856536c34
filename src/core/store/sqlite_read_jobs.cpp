// Reading jobs, their attempts, requests and results.

#include "core/base/check.h"
#include "core/store/sqlite_labels.h"
#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

// Pieces of constant statements, joined by the compiler.
#define AIQ_JOB_COLUMNS                                                                         \
  "SELECT j.job_id, j.kind, j.state, j.wait, l.tenant, l.vendor, l.model, j.endpoint, "         \
  "j.priority, r.labels, j.idempotency_key, j.client_key, j.cache_key, j.correlation_id, "      \
  "j.generation, j.attempt, j.max_attempts, j.created_at, j.run_at, j.deadline, j.started_at, " \
  "j.finished_at, j.result_source, j.stale, j.truncated, j.error_class, j.error_code, "         \
  "j.error_message, j.error_status, j.result_id, j.prompt_tokens, j.output_tokens "
#define AIQ_JOB_JOINS \
  "CROSS JOIN lanes l ON l.lane_id = j.lane_id CROSS JOIN requests r ON r.job_id = j.job_id "
#define AIQ_JOB_FILTERS                                                                      \
  "AND (?2 IS NULL OR j.state = ?2) AND (?3 IS NULL OR l.tenant = ?3) "                      \
  "AND (?4 IS NULL OR l.model = ?4) AND (?5 IS NULL OR l.vendor = ?5) "                      \
  "AND (?6 IS NULL OR j.correlation_id = ?6) "                                               \
  "AND (?7 IS NULL OR EXISTS (SELECT 1 FROM job_labels b WHERE b.key = ?7 AND b.value = ?8 " \
  "AND b.job_id = j.job_id)) "                                                               \
  "AND (?9 IS NULL OR j.created_at >= ?9) AND (?10 IS NULL OR j.created_at < ?10) "          \
  "AND j.job_id >= ?12 AND (?13 IS NULL OR EXISTS (SELECT 1 FROM batch_lines y "             \
  "WHERE y.batch_id = ?13 AND y.job_id = j.job_id)) "
#define AIQ_JOB_ORDER "ORDER BY j.job_id DESC LIMIT ?11"

constexpr const char* kJob = AIQ_JOB_COLUMNS "FROM jobs j " AIQ_JOB_JOINS "WHERE j.job_id = ?1";
constexpr const char* kListJobs = AIQ_JOB_COLUMNS
    "FROM jobs j " AIQ_JOB_JOINS "WHERE j.job_id < ?1 " AIQ_JOB_FILTERS AIQ_JOB_ORDER;
// Few among many finished ones: found by the index of their set.
constexpr const char* kListLabelled =
    AIQ_JOB_COLUMNS "FROM job_labels x CROSS JOIN jobs j ON j.job_id = x.job_id " AIQ_JOB_JOINS
                    "WHERE x.key = ?7 AND x.value = ?8 AND x.job_id < ?1 AND x.job_id >= ?12 AND "
                    "j.job_id < ?1 " AIQ_JOB_FILTERS AIQ_JOB_ORDER;
constexpr const char* kListCorrelated =
    AIQ_JOB_COLUMNS "FROM jobs j INDEXED BY jobs_correlation " AIQ_JOB_JOINS
                    "WHERE j.correlation_id = ?6 AND j.job_id < ?1 " AIQ_JOB_FILTERS AIQ_JOB_ORDER;
constexpr const char* kListWaiting =
    AIQ_JOB_COLUMNS "FROM jobs j " AIQ_JOB_JOINS
                    "WHERE j.job_id IN ("
                    "SELECT job_id FROM jobs INDEXED BY jobs_ready WHERE wait = 'ready' UNION ALL "
                    "SELECT job_id FROM jobs INDEXED BY jobs_due WHERE wait = 'time' UNION ALL "
                    "SELECT job_id FROM jobs INDEXED BY jobs_locked WHERE wait = 'lock' UNION ALL "
                    "SELECT job_id FROM jobs INDEXED BY jobs_serve WHERE wait = 'serve') "
                    "AND j.job_id < ?1 " AIQ_JOB_FILTERS AIQ_JOB_ORDER;
constexpr const char* kListRunning =
    AIQ_JOB_COLUMNS "FROM jobs j INDEXED BY jobs_leased " AIQ_JOB_JOINS
                    "WHERE j.state = 'processing' AND j.job_id < ?1 " AIQ_JOB_FILTERS AIQ_JOB_ORDER;
constexpr const char* kListDead = AIQ_JOB_COLUMNS
    "FROM jobs j " AIQ_JOB_JOINS
    "WHERE j.job_id IN (SELECT job_id FROM dead_letters INDEXED BY dead_letters_open "
    "WHERE state = 'open') AND j.job_id < ?1 " AIQ_JOB_FILTERS AIQ_JOB_ORDER;

// Each job once, at its first line; in the order of the index.
constexpr const char* kListBatch = AIQ_JOB_COLUMNS
    "FROM batch_lines x INDEXED BY batch_lines_job "
    "CROSS JOIN jobs j ON j.job_id = x.job_id " AIQ_JOB_JOINS
    "WHERE x.batch_id = ?13 AND x.job_id < ?1 AND x.job_id >= ?12 "
    "AND NOT EXISTS (SELECT 1 FROM batch_lines z INDEXED BY batch_lines_job "
    "WHERE z.batch_id = x.batch_id AND z.job_id = x.job_id AND z.line < x.line) " AIQ_JOB_FILTERS
    "ORDER BY x.job_id DESC LIMIT ?11";

constexpr const char* kLastJob = "SELECT max(job_id) FROM jobs";
constexpr const char* kJobFrom =
    "SELECT job_id, created_at FROM jobs WHERE job_id >= ?1 ORDER BY job_id LIMIT 1";

constexpr const char* kUsage =
    "SELECT meter, SUM(units) FROM usage_events INDEXED BY usage_events_job "
    "WHERE job_id = ?1 AND job_id IS NOT NULL GROUP BY meter";
constexpr const char* kAttempts =
    "SELECT a.attempt_id, a.generation, a.attempt, a.outcome, a.billed, a.counts, a.started_at, "
    "a.ended_at, a.http_status, l.vendor, l.model, a.vendor_request_id, a.error_code, "
    "a.error_message, a.excerpt, a.worker, a.connect_ms, a.first_byte_ms, a.total_ms, "
    "a.retry_after_ms, a.usage_state FROM attempts a CROSS JOIN lanes l ON l.lane_id = a.lane_id "
    "WHERE a.job_id = ?1 ORDER BY a.generation, a.attempt";
constexpr const char* kRequestBody = "SELECT body FROM requests WHERE job_id = ?1";
constexpr const char* kResultBody = "SELECT body FROM results WHERE result_id = ?1";

// The first batch line that asked for a job.
constexpr const char* kBatchLine =
    "SELECT s.batch_id, b.custom_id FROM submissions s CROSS JOIN batch_lines b "
    "ON b.batch_id = s.batch_id AND b.line = s.line "
    "WHERE s.job_id = ?1 AND s.batch_id IS NOT NULL AND (?2 IS NULL OR s.batch_id = ?2) "
    "ORDER BY s.submission_id LIMIT 1";

const char* list_statement(const JobFilter& filter) {
  if (!filter.correlation_id.empty()) return kListCorrelated;
  if (!filter.label_key.empty()) return kListLabelled;
  const char* all = filter.batch_id ? kListBatch : kListJobs;
  if (!filter.status) return all;
  switch (*filter.status) {
    case JobState::queued:
    case JobState::retrying:
      return kListWaiting;
    case JobState::processing:
      return kListRunning;
    case JobState::dead_lettered:
      return kListDead;
    default:
      return all;
  }
}

std::optional<Billed> parse_billed(std::string_view name) {
  for (const Billed billed : {Billed::no, Billed::yes, Billed::maybe}) {
    if (to_string(billed) == name) return billed;
  }
  return std::nullopt;
}

std::optional<std::string> one_text(SqliteDb& db, const char* sql, std::int64_t id) {
  Query query(db, sql, id);
  if (!query.step()) return std::nullopt;
  return query.text(0);
}

// The first job made at or after `at`, by halving: times grow with ids, and no index is needed for
// it. Ids may have gaps. Past the last id when there is none.
JobId first_job_since(SqliteDb& db, UnixMs at) {
  JobId low = 1;
  JobId high = 1;
  if (Query query(db, kLastJob); query.step()) high = query.i64(0) + 1;
  while (low < high) {
    const JobId middle = low + (high - low) / 2;
    Query query(db, kJobFrom, middle);
    if (!query.step() || query.i64(1) >= at) {
      high = middle;
    } else {
      low = query.i64(0) + 1;
    }
  }
  return low;
}

}  // namespace

JobRow SqliteQueries::job_row(Query& query, std::optional<std::int64_t> batch_id) {
  JobRow row;
  row.job_id = query.i64(0);
  row.kind = parse_job_kind(query.view(1));
  row.status = parse_job_state(query.view(2)).value();
  row.wait = query.text(3);
  row.tenant = query.text(4);
  row.vendor = query.text(5);
  row.model = query.text(6);
  row.endpoint = parse_endpoint(query.view(7)).value();
  row.priority = query.i32(8);
  row.labels = parse_labels(query.view(9));
  row.idempotency_key = query.hex(10);
  row.client_key = query.text(11);
  row.cache_key = query.hex(12);
  row.correlation_id = query.text(13);
  row.generation = query.i32(14);
  row.attempts = query.i32(15);
  row.max_attempts = query.i32(16);
  row.created_at = query.i64(17);
  row.run_at = query.i64(18);
  row.deadline = query.opt_i64(19);
  row.started_at = query.opt_i64(20);
  row.finished_at = query.opt_i64(21);
  row.result_source = query.text(22);
  row.stale = query.flag(23);
  row.truncated = query.flag(24);
  row.error_class = query.text(25);
  row.error_code = query.text(26);
  row.error_message = query.text(27);
  row.error_status = query.opt_i32(28);
  row.result_id = query.opt_i64(29);
  row.prompt_tokens = query.i64(30);
  row.output_tokens = query.opt_i64(31);
  if (Query line(db_, kBatchLine, row.job_id, batch_id); line.step()) {
    row.batch_id = line.i64(0);
    row.custom_id = line.text(1);
  }
  Query usage(db_, kUsage, row.job_id);
  while (usage.step()) {
    if (!row.usage) row.usage.emplace();
    for (int i = 0; i < kMeterCount; ++i) {
      const auto meter = static_cast<Meter>(i);
      if (to_string(meter) == usage.view(0)) (*row.usage)[meter] = usage.i64(1);
    }
  }
  return row;
}

std::optional<JobRow> SqliteQueries::job(JobId id) {
  Query query(db_, kJob, id);
  if (!query.step()) return std::nullopt;
  return job_row(query);
}

std::vector<JobRow> SqliteQueries::list_jobs(const JobFilter& f, const Page& page) {
  const std::string_view status = f.status ? to_string(*f.status) : std::string_view();
  const JobId from = f.since ? first_job_since(db_, *f.since) : 0;
  Query query(db_, list_statement(f), first_id_below(page), TextOrNull{status},
              TextOrNull{f.tenant}, TextOrNull{f.model}, TextOrNull{f.vendor},
              TextOrNull{f.correlation_id}, TextOrNull{f.label_key}, f.label_value, f.since,
              f.until, page.limit, from, f.batch_id);
  std::vector<JobRow> rows;
  while (query.step())
    rows.push_back(job_row(query, f.batch_id));
  return rows;
}

std::vector<AttemptRow> SqliteQueries::attempts_of(JobId id) {
  std::vector<AttemptRow> rows;
  Query query(db_, kAttempts, id);
  while (query.step()) {
    AttemptRow& row = rows.emplace_back();
    row.attempt_id = query.i64(0);
    row.generation = query.i32(1);
    row.attempt = query.i32(2);
    row.outcome = parse_outcome(query.view(3));
    row.billed = parse_billed(query.view(4));
    row.counts = query.flag(5);
    row.started_at = query.i64(6);
    row.ended_at = query.opt_i64(7);
    row.http_status = query.opt_i32(8);
    row.vendor = query.text(9);
    row.model = query.text(10);
    row.vendor_request_id = query.text(11);
    row.error_code = query.text(12);
    row.error_message = query.text(13);
    row.excerpt = query.text(14);
    row.worker = query.text(15);
    row.connect_ms = query.opt_i64(16);
    row.first_byte_ms = query.opt_i64(17);
    row.total_ms = query.opt_i64(18);
    row.retry_after_ms = query.opt_i64(19);
    row.usage_state = query.text(20);
  }
  return rows;
}

std::optional<std::string> SqliteQueries::request_body(JobId id) {
  return one_text(db_, kRequestBody, id);
}

std::optional<std::string> SqliteQueries::result_body(std::int64_t result_id) {
  return one_text(db_, kResultBody, result_id);
}

}  // namespace aiq
