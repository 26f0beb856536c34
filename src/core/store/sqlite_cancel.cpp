// withdraw() and cancel(): submissions that are no longer wanted, and the jobs that nobody wants.

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kFindSubmission = "SELECT job_id FROM submissions WHERE submission_id = ?1";
constexpr const char* kWithdraw =
    "UPDATE submissions SET withdrawn_at = ?2 WHERE submission_id = ?1 AND withdrawn_at IS NULL";
constexpr const char* kWithdrawAll =
    "UPDATE submissions SET withdrawn_at = ?2 WHERE job_id = ?1 AND withdrawn_at IS NULL";
constexpr const char* kWithdrawIn =
    "UPDATE submissions SET withdrawn_at = ?2 WHERE job_id = ?1 AND withdrawn_at IS NULL "
    "AND (?3 IS NULL OR batch_id = ?3) AND (?4 IS NULL OR correlation_id = ?4)";
constexpr const char* kAnyLeft =
    "SELECT 1 FROM submissions WHERE job_id = ?1 AND withdrawn_at IS NULL LIMIT 1";
constexpr const char* kCancelAttempt =
    "UPDATE attempts SET ended_at = ?2, outcome = 'cancelled', billed = 'maybe', counts = 0, "
    "usage_state = 'none' WHERE attempt_id = ?1 AND ended_at IS NULL";
constexpr const char* kCancelJob =
    "UPDATE jobs SET state = 'cancelled', wait = NULL, live = 0, finished_at = ?2, "
    "lease_token = NULL, lease_until = NULL, leased_at = NULL, open_attempt_id = NULL "
    "WHERE job_id = ?1 AND live = 1";

// The highest priority, the earliest due time, the latest deadline (none is later than any).
constexpr const char* kWishesLeft =
    "SELECT max(priority), min(run_at), "
    "CASE WHEN count(deadline) = count(*) THEN max(deadline) END "
    "FROM submissions WHERE job_id = ?1 AND withdrawn_at IS NULL";
constexpr const char* kJobWishes = "SELECT run_at, attempt, wait FROM jobs WHERE job_id = ?1";
constexpr const char* kSetWishes =
    "UPDATE jobs SET priority = ?2, run_at = ?3, deadline = ?4, rank = ?5, wait = ?6 "
    "WHERE job_id = ?1";

}  // namespace

Store::CancelOutcome SqliteStore::withdraw(SubmissionId id, UnixMs now) {
  JobId job_id = 0;
  {
    Query query(db_, kFindSubmission, id);
    if (!query.step()) return {};
    job_id = query.i64(0);
  }
  const auto job = job_core(job_id);
  AIQ_CHECK(job.has_value());
  if (!is_live(job->state)) {
    return {CancelOutcome::Kind::already_final, job_id, job->state, {}};
  }
  run(db_, kWithdraw, id, now);
  return after_withdrawal(*job, now);
}

Store::CancelOutcome SqliteStore::withdraw_in(JobId id, const SubmissionScope& scope, UnixMs now) {
  const auto job = job_core(id);
  if (!job) return {};
  if (!is_live(job->state)) return {CancelOutcome::Kind::already_final, id, job->state, {}};
  run(db_, kWithdrawIn, id, now, scope.batch_id, TextOrNull{scope.correlation_id});
  return after_withdrawal(*job, now);
}

// Stops the job that nobody asks for any more.
Store::CancelOutcome SqliteStore::after_withdrawal(const JobCore& job, UnixMs now) {
  bool any_left = false;
  {
    Query query(db_, kAnyLeft, job.job_id);
    any_left = query.step();
  }
  if (!any_left) return cancel_live(job, now);
  recompute_wishes(job.job_id, now);
  return {CancelOutcome::Kind::withdrawn, job.job_id, job.state, {}};
}

Store::CancelOutcome SqliteStore::cancel(JobId id, UnixMs now) {
  const auto job = job_core(id);
  if (!job) return {};
  if (!is_live(job->state)) return {CancelOutcome::Kind::already_final, id, job->state, {}};
  run(db_, kWithdrawAll, id, now);
  return cancel_live(*job, now);
}

Store::CancelOutcome SqliteStore::cancel_live(const JobCore& job, UnixMs now) {
  if (job.state == JobState::processing) {
    AIQ_CHECK(run(db_, kCancelAttempt, job.open_attempt_id, now) == 1);
  }
  AIQ_CHECK(run(db_, kCancelJob, job.job_id, now) == 1);
  if (job.state == JobState::processing) end_flight(job, false);
  note_change(job.job_id, job.state, JobState::cancelled, now, "");
  return {CancelOutcome::Kind::cancelled, job.job_id, JobState::cancelled, job.token};
}

void SqliteStore::recompute_wishes(JobId job_id, UnixMs now) {
  int priority = 0;
  UnixMs wanted_at = 0;
  std::optional<UnixMs> deadline;
  {
    Query query(db_, kWishesLeft, job_id);
    AIQ_CHECK(query.step());
    priority = query.i32(0);
    wanted_at = query.i64(1);
    deadline = query.opt_i64(2);
  }
  UnixMs run_at = 0;
  std::string wait;
  {
    Query query(db_, kJobWishes, job_id);
    AIQ_CHECK(query.step());
    // Once sent, the time is that of a retry and not of a wish.
    run_at = query.i32(1) == 0 ? wanted_at : query.i64(0);
    wait = query.text(2);
  }
  if (wait == "ready" || wait == "time") wait = run_at > now ? "time" : "ready";
  set_wishes(job_id, priority, run_at, deadline, wait);
}

void SqliteStore::set_wishes(JobId job_id, int priority, UnixMs run_at,
                             std::optional<UnixMs> deadline, std::string_view wait) {
  run(db_, kSetWishes, job_id, priority, run_at, deadline, run_at - priority * options_.age_step_ms,
      TextOrNull{wait});
}

}  // namespace aiq
