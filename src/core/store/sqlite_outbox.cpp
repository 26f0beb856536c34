// Reading the outbox: what happened to jobs. And a waiting job's place in its lane.

#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

#define AIQ_EVENT_COLUMNS "SELECT event_id, at, job_id, from_state, to_state, detail FROM outbox "

constexpr const char* kEvents = AIQ_EVENT_COLUMNS "WHERE event_id > ?1 ORDER BY event_id LIMIT ?2";
constexpr const char* kOfJob =
    AIQ_EVENT_COLUMNS "INDEXED BY outbox_job WHERE job_id = ?1 ORDER BY event_id LIMIT ?2";
constexpr const char* kLastEvent = "SELECT seq FROM sqlite_sequence WHERE name = 'outbox'";
constexpr const char* kReadyBefore =
    "SELECT count(*) FROM (SELECT 1 FROM jobs j JOIN jobs b INDEXED BY jobs_ready "
    "ON b.lane_id = j.lane_id AND b.wait = 'ready' AND b.rank <= j.rank "
    "AND (b.rank, b.job_id) < (j.rank, j.job_id) WHERE j.job_id = ?1 LIMIT ?2)";

std::vector<OutboxRow> event_rows(Query& query) {
  std::vector<OutboxRow> rows;
  while (query.step())
    rows.push_back(
        {query.i64(0), query.i64(1), query.i64(2), query.text(3), query.text(4), query.text(5)});
  return rows;
}

}  // namespace

std::vector<OutboxRow> SqliteQueries::events_after(std::int64_t after, int limit) {
  Query query(db_, kEvents, after, limit);
  return event_rows(query);
}

std::vector<OutboxRow> SqliteQueries::events_of(JobId job_id, int limit) {
  Query query(db_, kOfJob, job_id, limit);
  return event_rows(query);
}

std::int64_t SqliteQueries::last_event_id() {
  Query query(db_, kLastEvent);
  return query.step() ? query.i64(0) : 0;
}

int SqliteQueries::ready_before(JobId job_id, int limit) {
  Query query(db_, kReadyBefore, job_id, limit);
  return query.step() ? query.i32(0) : 0;
}

}  // namespace aiq
