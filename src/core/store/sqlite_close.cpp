// close_attempt(): the one transaction in which an attempt ends: attempts, results, usage_events,
// jobs, and what the other groups of tables make of it.

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kEndAttempt =
    "UPDATE attempts SET ended_at = ?2, outcome = ?3, billed = ?4, counts = ?5, usage_state = ?6, "
    "http_status = ?7, vendor_request_id = ?8, connect_ms = ?9, first_byte_ms = ?10, "
    "total_ms = ?11, retry_after_ms = ?12, error_code = ?13, error_message = ?14, excerpt = ?15 "
    "WHERE attempt_id = ?1 AND ended_at IS NULL";
constexpr const char* kInsertResult = "INSERT INTO results (job_id, body) VALUES (?1, ?2)";
constexpr const char* kInsertUsage =
    "INSERT INTO usage_events (tenant, event_id, vendor, model, meter, units, occurred_at, "
    "received_at, attempt_id, job_id, correlation_id, context_tokens) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) "
    "ON CONFLICT (tenant, event_id, source) DO NOTHING";

// Conditional on the token: the row is what decides, not what was read before.
constexpr const char* kFinishJob =
    "UPDATE jobs SET state = ?3, live = 0, finished_at = ?4, lease_token = NULL, "
    "lease_until = NULL, leased_at = NULL, open_attempt_id = NULL, counted = ?5, maybes = ?6, "
    "crashes = ?7, uncounted = ?8, limited_since = ?9, result_id = ?10, result_source = ?11, "
    "truncated = ?12, error_class = ?13, error_code = ?14, error_message = ?15, "
    "error_status = ?16 WHERE job_id = ?1 AND lease_token = ?2";
// `live` is not named: its unique index stays untouched.
constexpr const char* kReturnJob =
    "UPDATE jobs SET state = ?3, wait = ?4, run_at = ?5, rank = ?5 - priority * ?6, "
    "lease_token = NULL, lease_until = NULL, leased_at = NULL, open_attempt_id = NULL, "
    "counted = ?7, maybes = ?8, crashes = ?9, uncounted = ?10, limited_since = ?11, "
    "error_class = ?12, error_code = ?13, error_message = ?14, error_status = ?15 "
    "WHERE job_id = ?1 AND lease_token = ?2";

constexpr const char* kLateAttempt =
    "SELECT generation, attempt, lane_id, started_at FROM attempts "
    "WHERE attempt_id = ?1 AND job_id = ?2 AND ended_at IS NOT NULL AND late_result_id IS NULL";
// The outcome stays as it was recorded; a measurement that is there stays too. ?9: it is known now
// to have cost nothing, as of a cancelled request that was not sent yet.
constexpr const char* kKeepLate =
    "UPDATE attempts SET billed = CASE WHEN ?2 THEN 'yes' "
    "WHEN ?9 AND outcome = 'cancelled' AND billed = 'maybe' THEN 'no' ELSE billed END, "
    "usage_state = CASE WHEN ?2 THEN 'ok' ELSE usage_state END, "
    "late_result_id = ?3, http_status = coalesce(http_status, ?4), "
    "vendor_request_id = coalesce(vendor_request_id, ?5), connect_ms = coalesce(connect_ms, ?6), "
    "first_byte_ms = coalesce(first_byte_ms, ?7), total_ms = coalesce(total_ms, ?8) "
    "WHERE attempt_id = ?1";

std::string event_id(const AttemptRef& attempt, Meter meter) {
  std::string id = "job:";
  id.append(std::to_string(attempt.job_id)).push_back(':');
  id.append(std::to_string(attempt.generation)).push_back('.');
  id.append(std::to_string(attempt.attempt)).push_back(':');
  id.append(to_string(meter));
  return id;
}

JobState state_after(NextStep step) {
  switch (step) {
    case NextStep::complete:
      return JobState::completed;
    case NextStep::retry:
      return JobState::retrying;
    case NextStep::requeue:
      return JobState::queued;
    case NextStep::dead_letter:
      break;
  }
  return JobState::dead_lettered;
}

// A submission that joined while the request ran may have moved the deadline.
Next judge_again(const Next& next, const std::optional<UnixMs>& deadline) {
  Next judged = next;
  const bool by_deadline =
      next.step == NextStep::dead_letter && next.reason == DeadReason::deadline;
  if (by_deadline && (!deadline || *deadline > next.run_at)) judged.step = NextStep::retry;
  return judged;
}

}  // namespace

CloseOutcome SqliteStore::close_attempt(const AttemptClose& close) {
  const bool complete = close.next.step == NextStep::complete;
  AIQ_CHECK(complete == (close.result.outcome == Outcome::completed));
  AIQ_CHECK(!close.token.empty());
  auto job = job_core(close.job_id);
  if (!job || job->token != close.token) return keep_late_answer(close, job);
  AIQ_CHECK(job->open_attempt_id == close.attempt_id);

  end_attempt_row(close);
  std::optional<std::int64_t> result_id;
  if (complete) {
    run(db_, kInsertResult, close.job_id, BlobView{close.result.body});
    result_id = db_.last_id();
  }
  if (close.result.usage_state == UsageState::ok) {
    add_usage({close.attempt_id, job->job_id, job->generation, job->attempt, job->lane_id,
               job->leased_at},
              close.result.usage, job->correlation_id, close.now);
  }
  const bool stored = complete && store_entry(close, *result_id);
  const Next next = judge_again(close.next, job->deadline);
  end_job(close, next, *job, result_id);
  end_flight(*job, stored);
  apply_to_vendor(close, queries_.lane(job->lane_id));
  return {true, state_after(next.step)};
}

void SqliteStore::end_attempt_row(const AttemptClose& close) {
  const AttemptResult& r = close.result;
  const int changed = run(db_, kEndAttempt, close.attempt_id, close.now, to_string(r.outcome),
                          to_string(r.billed), counts(r.outcome), to_string(r.usage_state),
                          r.http_status, TextOrNull{r.vendor_request_id}, r.connect_ms,
                          r.first_byte_ms, r.total_ms, r.retry_after_ms, TextOrNull{r.error_code},
                          TextOrNull{r.error_message}, TextOrNull{r.excerpt});
  AIQ_CHECK(changed == 1);
}

void SqliteStore::add_usage(const AttemptRef& attempt, const Usage& usage,
                            const std::string& correlation_id, UnixMs now) {
  const Lane& lane = queries_.lane(attempt.lane_id);
  for (int i = 0; i < kMeterCount; ++i) {
    const auto meter = static_cast<Meter>(i);
    if (usage[meter] == 0) continue;
    run(db_, kInsertUsage, lane.tenant, event_id(attempt, meter), lane.vendor, lane.model,
        to_string(meter), usage[meter], attempt.started_at, now, attempt.attempt_id, attempt.job_id,
        correlation_id, usage.prompt());
  }
}

void SqliteStore::end_job(const AttemptClose& close, const Next& next, JobCore& job,
                          std::optional<std::int64_t> result_id) {
  const AttemptResult& r = close.result;
  const AttemptCounters& c = next.counters;
  const bool complete = next.step == NextStep::complete;
  job.error_class = complete ? std::string() : std::string(to_string(r.outcome));
  job.error_code = complete ? std::string() : r.error_code;
  job.error_message = complete ? std::string() : r.error_message;
  job.error_status = complete ? std::nullopt : r.http_status;

  const JobState to = state_after(next.step);
  int changed = 0;
  if (is_live(to)) {
    changed = run(db_, kReturnJob, close.job_id, close.token, to_string(to),
                  next.run_at > close.now ? "time" : "ready", next.run_at, options_.age_step_ms,
                  c.counted, c.maybes, c.crashes, c.uncounted, c.limited_since,
                  TextOrNull{job.error_class}, TextOrNull{job.error_code},
                  TextOrNull{job.error_message}, job.error_status);
  } else {
    changed = run(db_, kFinishJob, close.job_id, close.token, to_string(to), close.now, c.counted,
                  c.maybes, c.crashes, c.uncounted, c.limited_since, result_id,
                  TextOrNull{complete ? "vendor" : ""}, complete && r.truncated,
                  TextOrNull{job.error_class}, TextOrNull{job.error_code},
                  TextOrNull{job.error_message}, job.error_status);
  }
  AIQ_CHECK(changed == 1);
  std::string_view detail = to_string(r.outcome);
  if (next.step == NextStep::dead_letter) {
    write_dead_letter(job, next.reason, close.now);
    detail = to_string(next.reason);
  }
  note_change(close.job_id, JobState::processing, to, close.now, detail);
}

// What was paid for is kept beside, whoever holds the job now. Doing it twice adds nothing: usage
// has its event ids, an answer is kept once.
CloseOutcome SqliteStore::keep_late_answer(const AttemptClose& close,
                                           const std::optional<JobCore>& job) {
  CloseOutcome outcome{false, job ? job->state : JobState::completed};
  const AttemptResult& r = close.result;
  AttemptRef attempt{close.attempt_id, close.job_id, 0, 0, 0, 0};
  {
    Query query(db_, kLateAttempt, close.attempt_id, close.job_id);
    if (!query.step()) return outcome;
    attempt.generation = query.i32(0);
    attempt.attempt = query.i32(1);
    attempt.lane_id = query.i64(2);
    attempt.started_at = query.i64(3);
  }
  std::optional<std::int64_t> result_id;
  if (!r.body.empty()) {
    run(db_, kInsertResult, close.job_id, BlobView{r.body});
    result_id = db_.last_id();
  }
  const bool used = r.usage_state == UsageState::ok;
  if (used) {
    add_usage(attempt, r.usage, job ? job->correlation_id : std::string(), close.now);
  }
  run(db_, kKeepLate, close.attempt_id, used, result_id, r.http_status,
      TextOrNull{r.vendor_request_id}, r.connect_ms, r.first_byte_ms, r.total_ms,
      r.billed == Billed::no);
  return outcome;
}

}  // namespace aiq
