// Who may run next, and the lease: jobs in their ready sets, attempts.

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kPromoteDue =
    "UPDATE jobs SET wait = 'ready' WHERE job_id IN (SELECT job_id FROM jobs INDEXED BY jobs_due "
    "WHERE wait = 'time' AND run_at <= ?1 ORDER BY run_at LIMIT ?2)";
constexpr const char* kPastDeadline =
    "SELECT job_id FROM jobs INDEXED BY jobs_deadline "
    "WHERE deadline IS NOT NULL AND wait IS NOT NULL AND deadline <= ?1 ORDER BY deadline LIMIT ?2";
constexpr const char* kExpire =
    "UPDATE jobs SET state = 'dead_lettered', wait = NULL, live = 0, finished_at = ?2 "
    "WHERE job_id = ?1 AND wait IS NOT NULL";
constexpr const char* kNextDue =
    "SELECT run_at FROM jobs INDEXED BY jobs_due WHERE wait = 'time' AND run_at > ?1 "
    "ORDER BY run_at LIMIT 1";
constexpr const char* kNextDeadline =
    "SELECT deadline FROM jobs INDEXED BY jobs_deadline "
    "WHERE deadline IS NOT NULL AND wait IS NOT NULL ORDER BY deadline LIMIT 1";

// The index is named: with another plan this costs by queued jobs.
constexpr const char* kHead =
    "SELECT job_id, kind, endpoint, state, generation, attempt, counted, maybes, crashes, "
    "uncounted, limited_since, max_attempts, created_at, run_at, deadline, correlation_id, "
    "idempotency_key, cache_key, cache_read, coalesce, cache_max_age, prompt_tokens, output_tokens "
    "FROM jobs INDEXED BY jobs_ready WHERE wait = 'ready' AND lane_id = ?1 "
    "ORDER BY rank, job_id LIMIT 1";
constexpr const char* kLaneHead =
    "SELECT rank, job_id, priority, run_at, prompt_tokens, output_tokens "
    "FROM jobs INDEXED BY jobs_ready WHERE wait = 'ready' AND lane_id = ?1 "
    "ORDER BY rank, job_id LIMIT 1";
constexpr const char* kExplicitAnswers =
    "SELECT count(*) FROM attempts WHERE job_id = ?1 AND generation = ?2 AND attempt < ?3 "
    "AND billed IN ('no', 'yes') AND http_status IS NOT NULL";
constexpr const char* kWaitForLock = "UPDATE jobs SET wait = 'lock' WHERE job_id = ?1";
constexpr const char* kInsertAttempt =
    "INSERT INTO attempts (job_id, generation, attempt, lane_id, started_at, counts, worker) "
    "VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6)";
constexpr const char* kLease =
    "UPDATE jobs SET state = 'processing', wait = NULL, attempt = ?2, lease_token = ?3, "
    "lease_until = ?4, leased_at = ?5, open_attempt_id = ?6, "
    "started_at = coalesce(started_at, ?5) WHERE job_id = ?1 AND wait = 'ready'";
constexpr const char* kBody = "SELECT body FROM requests WHERE job_id = ?1";

constexpr const char* kRenew =
    "UPDATE jobs SET lease_until = ?3 WHERE job_id = ?1 AND lease_token = ?2 "
    "RETURNING CASE WHEN jobs.coalesce = 1 THEN 'cache:' || lower(hex(cache_key)) END";
constexpr const char* kRenewLock =
    "UPDATE locks SET expires_at = ?3 WHERE name = ?1 AND owner = ?2";
constexpr const char* kOpenLeases =
    "SELECT job_id, kind, endpoint, lane_id, generation, attempt, counted, maybes, crashes, "
    "uncounted, limited_since, max_attempts, created_at, run_at, deadline, correlation_id, "
    "idempotency_key, lease_token, lease_until, leased_at, open_attempt_id "
    "FROM jobs INDEXED BY jobs_leased WHERE state = 'processing' AND job_id > ?1 "
    "ORDER BY job_id LIMIT ?2";

AttemptCounters counters_of(const Query& query, int first) {
  AttemptCounters counters;
  counters.counted = query.i32(first);
  counters.maybes = query.i32(first + 1);
  counters.crashes = query.i32(first + 2);
  counters.uncounted = query.i32(first + 3);
  counters.limited_since = query.opt_i64(first + 4);
  return counters;
}

}  // namespace

struct SqliteStore::LeaseHead {
  LeasedJob job;
  JobState state = JobState::queued;
  KeyBlob cache_key;
  bool cache_read = false, coalesce = false;
  std::optional<DurationMs> max_age;
};

int SqliteStore::promote_due(UnixMs now, int limit) {
  return run(db_, kPromoteDue, now, limit);
}

std::vector<JobId> SqliteStore::expire_deadlines(UnixMs now, int limit) {
  std::vector<JobId> ids;
  {
    Query query(db_, kPastDeadline, now, limit);
    while (query.step())
      ids.push_back(query.i64(0));
  }
  for (const JobId id : ids)
    expire(id, now);
  return ids;
}

void SqliteStore::expire(JobId job_id, UnixMs now) {
  const auto job = job_core(job_id);
  AIQ_CHECK(job.has_value());
  AIQ_CHECK(run(db_, kExpire, job_id, now) == 1);
  write_dead_letter(*job, DeadReason::deadline, now);
  note_change(job_id, job->state, JobState::dead_lettered, now, to_string(DeadReason::deadline));
}

AdmissionView SqliteStore::admission_view(UnixMs now) {
  AdmissionView view;
  view.lanes = queries_.ready_heads();
  view.running = queries_.running();
  std::unordered_map<LaneId, int> in_flight;
  for (const LaneHead& lane : view.running)
    in_flight.emplace(lane.lane.lane_id, lane.in_flight);
  for (LaneHead& head : view.lanes) {
    const auto found = in_flight.find(head.lane.lane_id);
    if (found != in_flight.end()) head.in_flight = found->second;
  }
  view.pauses = queries_.pauses_in_force(now);
  view.holds = queries_.holds_and_spreads(now);
  count_waiting(view, now);
  view.rates = queries_.rates();
  view.paces = queries_.paces();
  view.breakers = queries_.breakers();
  view.shares = queries_.shares(view.lanes);
  view.vendors = queries_.vendors();
  view.oldest_start = queries_.oldest_start(view.vendors, view.running);
  if (Query query(db_, kNextDue, now); query.step()) view.next_due = query.i64(0);
  if (Query query(db_, kNextDeadline); query.step()) view.next_deadline = query.i64(0);
  return view;
}

std::optional<LaneHead> SqliteStore::lane_head(LaneId lane_id) {
  Query query(db_, kLaneHead, lane_id);
  if (!query.step()) return std::nullopt;
  return LaneHead{.lane = queries_.lane(lane_id),
                  .rank = query.i64(0),
                  .job_id = query.i64(1),
                  .in_flight = 0,
                  .priority = query.i32(2),
                  .run_at = query.i64(3),
                  .prompt_tokens = query.i64(4),
                  .output_tokens = query.opt_i64(5)};
}

LeaseOutcome SqliteStore::lease(const LeaseRequest& request) {
  LeaseHead head;
  {
    Query query(db_, kHead, request.lane_id);
    if (!query.step()) return {};
    LeasedJob& job = head.job;
    job.job_id = query.i64(0);
    job.kind = parse_job_kind(query.view(1));
    job.endpoint = parse_endpoint(query.view(2)).value();
    head.state = parse_job_state(query.view(3)).value();
    job.generation = query.i32(4);
    job.attempt = query.i32(5) + 1;
    job.counters = counters_of(query, 6);
    job.max_attempts = query.i32(11);
    job.created_at = query.i64(12);
    job.run_at = query.i64(13);
    job.deadline = query.opt_i64(14);
    job.correlation_id = query.text(15);
    job.idempotency_key = query.hex(16);
    head.cache_key = query.key(17);
    head.cache_read = query.flag(18);
    head.coalesce = query.flag(19);
    head.max_age = query.opt_i64(20);
    job.prompt_tokens = query.i64(21);
    job.output_tokens = query.opt_i64(22);
  }
  const JobId id = head.job.job_id;
  if (head.job.deadline && *head.job.deadline <= request.now) {
    expire(id, request.now);
    return {LeaseOutcome::Kind::dead, id, std::nullopt};
  }
  if (head.cache_read || head.job.kind == JobKind::refresh) {
    const auto hit = queries_.find_entry(head.cache_key);
    if (hit && answers(*hit, head, request.now)) {
      complete_from_cache(id, head.state, head.cache_key, *hit, false, request.now);
      return {LeaseOutcome::Kind::served, id, std::nullopt};
    }
  }
  if (head.coalesce && !take_lock(cache_lock_name(head.cache_key), request.token, id, request.now,
                                  request.lease_until)) {
    run(db_, kWaitForLock, id);
    return {LeaseOutcome::Kind::waits, id, std::nullopt};
  }
  return start_attempt(request, head);
}

LeaseOutcome SqliteStore::start_attempt(const LeaseRequest& request, LeaseHead& head) {
  LeasedJob& job = head.job;
  job.explicit_answers = explicit_answers(job);
  run(db_, kInsertAttempt, job.job_id, job.generation, job.attempt, request.lane_id, request.now,
      request.worker);
  job.attempt_id = db_.last_id();
  job.token = request.token;
  job.started_at = request.now;
  job.lane = queries_.lane(request.lane_id);
  AIQ_CHECK(run(db_, kLease, job.job_id, job.attempt, request.token, request.lease_until,
                request.now, job.attempt_id) == 1);
  {
    Query query(db_, kBody, job.job_id);
    AIQ_CHECK(query.step());
    job.body = query.text(0);
  }
  note_change(job.job_id, head.state, JobState::processing, request.now, "lease");
  return {LeaseOutcome::Kind::leased, job.job_id, std::move(job)};
}

int SqliteStore::explicit_answers(const LeasedJob& job) {
  if (job.attempt == 1) return 0;
  Query query(db_, kExplicitAnswers, job.job_id, job.generation, job.attempt);
  AIQ_CHECK(query.step());
  return query.i32(0);
}

std::vector<std::string> SqliteStore::renew(
    const std::vector<std::pair<JobId, std::string>>& leases, UnixMs lease_until) {
  std::vector<std::string> lost;
  for (const auto& [job_id, token] : leases) {
    bool held = false;
    std::string lock;
    {
      Query query(db_, kRenew, job_id, token, lease_until);
      while (query.step()) {
        held = true;
        lock = query.text(0);
      }
    }
    if (!held) lost.push_back(token);
    if (!lock.empty()) run(db_, kRenewLock, lock, token, lease_until);
  }
  return lost;
}

bool SqliteStore::answers(const CacheHit& hit, const LeaseHead& head, UnixMs now) {
  if (hit.soft_until <= now || hit.hard_until <= now) return false;
  // A refresh wants a newer answer than the one that made it; another job may have brought it.
  if (head.job.kind == JobKind::refresh) return hit.created_at >= head.job.created_at;
  // By age alone: who asks for a young answer may have joined the job long after it was made.
  return head.cache_read && (!head.max_age || now - hit.created_at <= *head.max_age);
}

std::vector<OpenLease> SqliteStore::open_leases(JobId after, int limit) {
  std::vector<OpenLease> leases;
  Query query(db_, kOpenLeases, after, limit);
  while (query.step()) {
    OpenLease& lease = leases.emplace_back();
    LeasedJob& job = lease.job;
    job.job_id = query.i64(0);
    job.kind = parse_job_kind(query.view(1));
    job.endpoint = parse_endpoint(query.view(2)).value();
    job.lane = queries_.lane(query.i64(3));
    job.generation = query.i32(4);
    job.attempt = query.i32(5);
    job.counters = counters_of(query, 6);
    job.max_attempts = query.i32(11);
    job.created_at = query.i64(12);
    job.run_at = query.i64(13);
    job.deadline = query.opt_i64(14);
    job.correlation_id = query.text(15);
    job.idempotency_key = query.hex(16);
    job.token = query.text(17);
    lease.lease_until = query.i64(18);
    job.started_at = query.i64(19);
    job.attempt_id = query.i64(20);
    job.explicit_answers = explicit_answers(job);
  }
  return leases;
}

}  // namespace aiq
