// replay() and discard(): what becomes of a dead letter when a person decides.

#include <algorithm>

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kLetter =
    "SELECT d.job_id, d.generation, d.state, j.kind, j.idempotency_key, j.cache_key, j.priority "
    "FROM dead_letters d JOIN jobs j ON j.job_id = d.job_id WHERE d.dlq_id = ?1";
constexpr const char* kLiveKey =
    "SELECT job_id FROM jobs INDEXED BY jobs_live_key "
    "WHERE idempotency_key = ?1 AND live = 1 AND idempotency_key IS NOT NULL";
constexpr const char* kLiveRefresh =
    "SELECT job_id FROM jobs INDEXED BY jobs_live_refresh "
    "WHERE cache_key = ?1 AND live = 1 AND kind = 'refresh'";

constexpr const char* kResolve =
    "UPDATE dead_letters SET state = ?2, resolved_at = ?3, resolved_by = ?4, note = ?5 "
    "WHERE dlq_id = ?1 AND state = 'open'";
constexpr const char* kNextGeneration =
    "UPDATE jobs SET state = 'queued', wait = ?2, live = 1, generation = generation + 1, "
    "attempt = 0, counted = 0, maybes = 0, crashes = 0, uncounted = 0, limited_since = NULL, "
    "run_at = ?3, rank = ?4, deadline = ?5, started_at = NULL, finished_at = NULL, "
    "error_class = NULL, error_code = NULL, error_message = NULL, error_status = NULL "
    "WHERE job_id = ?1 AND state = 'dead_lettered'";
// The wishes of a job are those of its submissions whenever one of them is withdrawn.
constexpr const char* kSetWishes =
    "UPDATE submissions SET run_at = ?2, deadline = ?3 WHERE job_id = ?1 AND withdrawn_at IS NULL";
constexpr const char* kFail =
    "UPDATE jobs SET state = 'failed', finished_at = ?2 "
    "WHERE job_id = ?1 AND state = 'dead_lettered'";

#define AIQ_GROUP(BY, EXPRESSION)                                                           \
  "SELECT '" BY "', " EXPRESSION                                                            \
  ", count(*) AS n, min(d.dead_at), max(d.dead_at) "                                        \
  "FROM dead_letters d INDEXED BY dead_letters_open JOIN lanes l ON l.lane_id = d.lane_id " \
  "WHERE d.state = 'open' GROUP BY 2 "
constexpr const char* kGroups = AIQ_GROUP("class", "coalesce(d.error_class, '')")
    "UNION ALL " AIQ_GROUP("reason", "d.reason") "UNION ALL " AIQ_GROUP("model", "l.model")
        "UNION ALL " AIQ_GROUP("tenant", "l.tenant") "ORDER BY 1, n DESC, 2";

}  // namespace

ReplayOutcome SqliteQueries::preview_replay(std::int64_t dlq_id) {
  using Kind = ReplayOutcome::Kind;
  ReplayOutcome out;
  std::optional<KeyBlob> key;
  KeyBlob cache_key;
  JobKind kind = JobKind::request;
  {
    Query query(db_, kLetter, dlq_id);
    if (!query.step()) return out;
    out.job_id = query.i64(0);
    out.generation = query.i32(1);
    out.kind = query.view(2) == "open" ? Kind::replayed : Kind::already_resolved;
    kind = parse_job_kind(query.view(3));
    if (!query.null(4)) key = query.key(4);
    cache_key = query.key(5);
  }
  if (out.kind != Kind::replayed) return out;
  if (key) {
    Query query(db_, kLiveKey, *key);
    if (query.step()) out.duplicate_of = query.i64(0);
  } else if (kind == JobKind::refresh) {
    Query query(db_, kLiveRefresh, cache_key);
    if (query.step()) out.duplicate_of = query.i64(0);
  }
  if (out.duplicate_of != 0) {
    out.kind = Kind::duplicate;
  } else {
    ++out.generation;
  }
  return out;
}

ReplayOutcome SqliteStore::replay(const ReplayRequest& r) {
  const ReplayOutcome out = queries_.preview_replay(r.dlq_id);
  if (out.kind != ReplayOutcome::Kind::replayed) return out;
  int priority = 0;
  {
    Query query(db_, kLetter, r.dlq_id);
    AIQ_CHECK(query.step());
    priority = query.i32(6);
  }
  AIQ_CHECK(run(db_, kResolve, r.dlq_id, "replayed", r.now, r.actor, TextOrNull{r.note}) == 1);
  const UnixMs run_at = std::max(r.run_at, r.now);
  AIQ_CHECK(run(db_, kNextGeneration, out.job_id, run_at > r.now ? "time" : "ready", run_at,
                run_at - priority * options_.age_step_ms, r.deadline) == 1);
  run(db_, kSetWishes, out.job_id, run_at, r.deadline);
  note_change(out.job_id, JobState::dead_lettered, JobState::queued, r.now, "replay");
  return out;
}

Store::DiscardOutcome SqliteStore::discard(std::int64_t dlq_id, const std::string& actor,
                                           const std::string& note, UnixMs now) {
  JobId job_id = 0;
  {
    Query query(db_, kLetter, dlq_id);
    if (!query.step()) return DiscardOutcome::not_found;
    if (query.view(2) != "open") return DiscardOutcome::already_resolved;
    job_id = query.i64(0);
  }
  AIQ_CHECK(run(db_, kResolve, dlq_id, "discarded", now, actor, note) == 1);
  AIQ_CHECK(run(db_, kFail, job_id, now) == 1);
  note_change(job_id, JobState::dead_lettered, JobState::failed, now, "discard");
  return DiscardOutcome::discarded;
}

std::vector<DeadLetterGroup> SqliteQueries::dead_letter_groups() {
  std::vector<DeadLetterGroup> groups;
  Query query(db_, kGroups);
  while (query.step()) {
    groups.push_back({query.text(0), query.text(1), query.i64(2), query.i64(3), query.i64(4)});
  }
  return groups;
}

}  // namespace aiq
