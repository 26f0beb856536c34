// Reading batches, batch_lines, batch_errors.

#include "core/store/sqlite_batches.h"

#include <algorithm>
#include <limits>

namespace aiq {
namespace {

constexpr DurationMs kReadLimitMs = 2'000;

#define AIQ_BATCH_COLUMNS                                                                         \
  "SELECT batch_id, tenant, client_key, correlation_id, state, stage_id, created_at, loaded_at, " \
  "read_to, lines, created, existing, cached, rejected FROM batches "

constexpr const char* kFind = AIQ_BATCH_COLUMNS "WHERE batch_id = ?1";
constexpr const char* kByKey = AIQ_BATCH_COLUMNS "WHERE tenant = ?1 AND client_key = ?2";
constexpr const char* kUnfinished = AIQ_BATCH_COLUMNS
    "INDEXED BY batches_unfinished WHERE fingerprint = ?1 AND state <> 'loaded' "
    "AND client_key IS NULL ORDER BY batch_id LIMIT 1";
constexpr const char* kList =
    AIQ_BATCH_COLUMNS "WHERE batch_id < ?1 AND state <> 'staging' ORDER BY batch_id DESC LIMIT ?2";

constexpr const char* kErrors =
    "SELECT line, code, message FROM batch_errors WHERE batch_id = ?1 AND line > ?2 "
    "ORDER BY line LIMIT ?3";
constexpr const char* kLines =
    "SELECT b.line, b.custom_id, b.job_id, b.submission_id, j.state, s.withdrawn_at IS NOT NULL, "
    "j.result_id, j.error_class, j.error_code, j.error_message, j.error_status "
    "FROM batch_lines b LEFT JOIN jobs j ON j.job_id = b.job_id "
    "LEFT JOIN submissions s ON s.submission_id = b.submission_id "
    "WHERE b.batch_id = ?1 AND b.line > ?2 ORDER BY b.line LIMIT ?3";
constexpr const char* kCount =
    "SELECT CASE WHEN b.job_id IS NULL THEN 'queued' "
    "WHEN s.withdrawn_at IS NOT NULL THEN 'cancelled' ELSE j.state END AS of_line, count(*), "
    "max(b.line) FROM (SELECT line, job_id, submission_id FROM batch_lines "
    "WHERE batch_id = ?1 AND line > ?2 ORDER BY line LIMIT ?3) b "
    "LEFT JOIN jobs j ON j.job_id = b.job_id "
    "LEFT JOIN submissions s ON s.submission_id = b.submission_id GROUP BY of_line";

constexpr const char* kBody = "SELECT body FROM results WHERE result_id = ?1";
constexpr const char* kCompletedBy =
    "SELECT vendor_request_id FROM attempts WHERE job_id = ?1 AND outcome = 'completed' "
    "ORDER BY generation DESC, attempt DESC LIMIT 1";
constexpr const char* kFailedBy =
    "SELECT vendor_request_id, excerpt, http_status FROM attempts "
    "WHERE job_id = ?1 AND outcome NOT IN ('completed', 'cancelled', 'released', 'lease_lost') "
    "ORDER BY generation DESC, attempt DESC LIMIT 1";
constexpr const char* kDeadReason =
    "SELECT reason FROM dead_letters WHERE job_id = ?1 ORDER BY generation DESC LIMIT 1";

BatchState parse_state(std::string_view name) {
  if (name == "staging") return BatchState::staging;
  return name == "loaded" ? BatchState::loaded : BatchState::loading;
}

BatchRow batch_row(Query& query) {
  BatchRow row;
  row.batch_id = query.i64(0);
  row.tenant = query.text(1);
  row.client_key = query.text(2);
  row.correlation_id = query.text(3);
  row.state = parse_state(query.view(4));
  row.stage_id = query.opt_i64(5);
  row.created_at = query.i64(6);
  row.loaded_at = query.opt_i64(7);
  row.read_to = query.i64(8);
  row.lines = query.i64(9);
  row.created = query.i64(10);
  row.existing = query.i64(11);
  row.cached = query.i64(12);
  row.rejected = query.i64(13);
  return row;
}

template <class... Values>
std::optional<BatchRow> first_row(SqliteDb& db, const char* sql, const Values&... values) {
  Query query(db, sql, values...);
  if (!query.step()) return std::nullopt;
  return batch_row(query);
}

BatchLineRow line_row(Query& query) {
  BatchLineRow row;
  row.line = query.i64(0);
  row.custom_id = query.text(1);
  row.job_id = query.opt_i64(2);
  row.submission_id = query.i64(3);
  row.state = parse_job_state(query.view(4));
  row.withdrawn = query.flag(5);
  return row;
}

bool is_final(const BatchLineRow& row) {
  if (!row.job_id) return false;
  return row.withdrawn || !row.state || !is_live(*row.state);
}

}  // namespace

std::string_view to_string(BatchState state) {
  switch (state) {
    case BatchState::staging:
      return "staging";
    case BatchState::loading:
      return "loading";
    case BatchState::loaded:
      break;
  }
  return "loaded";
}

std::optional<BatchRow> SqliteBatches::row(std::int64_t batch_id) {
  return first_row(db_, kFind, batch_id);
}

std::optional<BatchRow> SqliteBatches::by_key(const std::string& tenant,
                                              const std::string& client_key) {
  return first_row(db_, kByKey, tenant, client_key);
}

std::optional<BatchRow> SqliteBatches::unfinished(const KeyBlob& fingerprint) {
  return first_row(db_, kUnfinished, fingerprint);
}

std::optional<BatchRow> SqliteBatches::find(std::int64_t batch_id) {
  const SqliteDeadline deadline(db_, kReadLimitMs);
  return row(batch_id);
}

std::vector<BatchRow> SqliteBatches::list(const Page& page) {
  const SqliteDeadline deadline(db_, kReadLimitMs);
  const std::int64_t below = page.after > 0 ? page.after : std::numeric_limits<std::int64_t>::max();
  std::vector<BatchRow> rows;
  Query query(db_, kList, below, page.limit);
  while (query.step())
    rows.push_back(batch_row(query));
  return rows;
}

std::vector<BatchError> SqliteBatches::errors(std::int64_t batch_id, std::int64_t after,
                                              int limit) {
  const SqliteDeadline deadline(db_, kReadLimitMs);
  std::vector<BatchError> rows;
  Query query(db_, kErrors, batch_id, after, limit);
  while (query.step())
    rows.push_back({query.i64(0), query.text(1), query.text(2)});
  return rows;
}

std::vector<BatchLineRow> SqliteBatches::lines(std::int64_t batch_id, std::int64_t after,
                                               int limit) {
  const SqliteDeadline deadline(db_, kReadLimitMs);
  std::vector<BatchLineRow> rows;
  Query query(db_, kLines, batch_id, after, limit);
  while (query.step())
    rows.push_back(line_row(query));
  return rows;
}

BatchCounts SqliteBatches::count(std::int64_t batch_id, std::int64_t after, int limit) {
  const SqliteDeadline deadline(db_, kReadLimitMs);
  BatchCounts counts;
  std::int64_t seen = 0;
  std::int64_t last = 0;
  Query query(db_, kCount, batch_id, after, limit);
  while (query.step()) {
    const std::int64_t n = query.i64(1);
    if (const auto state = parse_job_state(query.view(0))) {
      counts.lines[static_cast<std::size_t>(*state)] += n;
    } else {
      counts.pruned += n;
    }
    seen += n;
    last = std::max(last, query.i64(2));
  }
  if (seen == limit) counts.next_after = last;
  return counts;
}

void SqliteBatches::read_answer(BatchResult& result, std::int64_t result_id) {
  if (Query body(db_, kBody, result_id); body.step()) result.body = body.text(0);
  Query attempt(db_, kCompletedBy, *result.line.job_id);
  if (attempt.step()) result.vendor_request_id = attempt.text(0);
}

void SqliteBatches::explain_failure(BatchResult& result) {
  if (Query attempt(db_, kFailedBy, *result.line.job_id); attempt.step()) {
    result.vendor_request_id = attempt.text(0);
    result.excerpt = attempt.text(1);
    result.http_status = attempt.opt_i32(2);
  }
  Query letter(db_, kDeadReason, *result.line.job_id);
  if (letter.step()) result.dead_reason = letter.text(0);
}

BatchReader::Results SqliteBatches::results(std::int64_t batch_id, std::int64_t after, int limit,
                                            std::int64_t max_bytes) {
  const SqliteDeadline deadline(db_, kReadLimitMs);
  Results out;
  int seen = 0;
  std::int64_t last = after;
  std::int64_t bytes = 0;
  Query query(db_, kLines, batch_id, after, limit);
  while (bytes < max_bytes && query.step()) {
    ++seen;
    BatchResult result;
    result.line = line_row(query);
    last = result.line.line;
    if (!is_final(result.line)) {
      ++out.open;
      continue;
    }
    const auto result_id = query.opt_i64(6);
    result.error_class = query.text(7);
    result.error_code = query.text(8);
    result.error_message = query.text(9);
    result.http_status = query.opt_i32(10);
    if (!result.line.withdrawn && result.line.state) {
      if (result_id) {
        read_answer(result, *result_id);
      } else if (*result.line.state != JobState::cancelled) {
        explain_failure(result);
      }
    }
    bytes += static_cast<std::int64_t>(result.body.size());
    out.rows.push_back(std::move(result));
  }
  if (seen == limit || bytes >= max_bytes) out.next_after = last;
  return out;
}

}  // namespace aiq
