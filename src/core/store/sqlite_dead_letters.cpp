// dead_letters: jobs that were given up, with what they died of.

#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kInsert =
    "INSERT INTO dead_letters (job_id, generation, lane_id, reason, error_class, http_status, "
    "error_code, error_message, attempts, state, dead_at, correlation_id, idempotency_key) "
    "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'open', ?10, ?11, idempotency_key "
    "FROM jobs WHERE job_id = ?1";
// Never earlier than it is: another job may have renewed the entry meanwhile.
constexpr const char* kSpareEntry =
    "UPDATE cache_entries SET soft_until = max(soft_until, min(hard_until, ?3 + "
    "(SELECT soft_ttl FROM jobs WHERE job_id = ?2))) WHERE cache_key = ?1";

#define AIQ_LETTER_COLUMNS                                                            \
  "SELECT d.dlq_id, d.job_id, l.tenant, l.vendor, l.model, d.reason, d.error_class, " \
  "d.error_code, d.error_message, d.state, d.http_status, d.attempts, d.generation, " \
  "d.dead_at, d.resolved_at, d.resolved_by, d.note, d.correlation_id "
#define AIQ_LETTER_FILTERS                                                                    \
  "AND (?2 IS NULL OR d.state = ?2) AND (?3 IS NULL OR l.tenant = ?3) "                       \
  "AND (?4 IS NULL OR l.model = ?4) AND (?5 IS NULL OR l.vendor = ?5) "                       \
  "AND (?6 IS NULL OR d.reason = ?6) AND (?7 IS NULL OR d.error_class = ?7) "                 \
  "AND (?8 IS NULL OR d.correlation_id = ?8) "                                                \
  "AND (?9 IS NULL OR EXISTS (SELECT 1 FROM job_labels b WHERE b.key = ?9 AND b.value = ?10 " \
  "AND b.job_id = d.job_id)) "                                                                \
  "AND (?11 IS NULL OR d.dead_at >= ?11) AND (?12 IS NULL OR d.dead_at < ?12) "               \
  "ORDER BY d.dlq_id DESC LIMIT ?13"

constexpr const char* kOne = AIQ_LETTER_COLUMNS
    "FROM dead_letters d JOIN lanes l ON l.lane_id = d.lane_id WHERE d.dlq_id = ?1";
constexpr const char* kList = AIQ_LETTER_COLUMNS
    "FROM dead_letters d CROSS JOIN lanes l ON l.lane_id = d.lane_id "
    "WHERE d.dlq_id < ?1 " AIQ_LETTER_FILTERS;
// Few among many that were seen to.
constexpr const char* kListOpen = AIQ_LETTER_COLUMNS
    "FROM dead_letters d INDEXED BY dead_letters_open "
    "CROSS JOIN lanes l ON l.lane_id = d.lane_id "
    "WHERE d.state = 'open' AND d.dlq_id < ?1 " AIQ_LETTER_FILTERS;

DeadLetter dead_letter_row(const Query& query) {
  DeadLetter row;
  row.dlq_id = query.i64(0);
  row.job_id = query.i64(1);
  row.tenant = query.text(2);
  row.vendor = query.text(3);
  row.model = query.text(4);
  row.reason = query.text(5);
  row.error_class = query.text(6);
  row.error_code = query.text(7);
  row.error_message = query.text(8);
  row.state = query.text(9);
  row.http_status = query.opt_i32(10);
  row.attempts = query.i32(11);
  row.generation = query.i32(12);
  row.dead_at = query.i64(13);
  row.resolved_at = query.opt_i64(14);
  row.resolved_by = query.text(15);
  row.note = query.text(16);
  row.correlation_id = query.text(17);
  return row;
}

}  // namespace

void SqliteStore::write_dead_letter(const JobCore& job, DeadReason reason, UnixMs now) {
  run(db_, kInsert, job.job_id, job.generation, job.lane_id, to_string(reason),
      TextOrNull{job.error_class}, job.error_status, TextOrNull{job.error_code},
      TextOrNull{job.error_message}, job.attempt, now, job.correlation_id);
  if (job.kind == JobKind::refresh) run(db_, kSpareEntry, job.cache_key, job.job_id, now);
}

std::optional<DeadLetter> SqliteQueries::dead_letter(std::int64_t dlq_id) {
  Query query(db_, kOne, dlq_id);
  if (!query.step()) return std::nullopt;
  return dead_letter_row(query);
}

std::vector<DeadLetter> SqliteQueries::list_dead_letters(const DeadLetterFilter& f,
                                                         const Page& page) {
  Query query(db_, f.state == "open" ? kListOpen : kList, first_id_below(page), TextOrNull{f.state},
              TextOrNull{f.tenant}, TextOrNull{f.model}, TextOrNull{f.vendor}, TextOrNull{f.reason},
              TextOrNull{f.error_class}, TextOrNull{f.correlation_id}, TextOrNull{f.label_key},
              f.label_value, f.since, f.until, page.limit);
  std::vector<DeadLetter> rows;
  while (query.step())
    rows.push_back(dead_letter_row(query));
  return rows;
}

}  // namespace aiq
