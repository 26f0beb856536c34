// submit(): jobs, requests, job_labels, submissions, client_keys.

#include <algorithm>

#include "core/base/check.h"
#include "core/store/sqlite_labels.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kInsertJob =
    "INSERT INTO jobs (lane_id, kind, endpoint, state, wait, live, priority, rank, created_at, "
    "run_at, deadline, finished_at, max_attempts, idempotency_key, cache_key, cache_owner, "
    "cache_read, cache_store, coalesce, cache_max_age, soft_ttl, hard_ttl, client_key, "
    "correlation_id, result_id, result_source, stale, truncated, prompt_tokens, output_tokens) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, "
    "?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30)";
constexpr const char* kInsertRequest =
    "INSERT INTO requests (job_id, body, labels, scope, locale, safety) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
constexpr const char* kInsertLabel =
    "INSERT INTO job_labels (key, value, job_id) VALUES (?1, ?2, ?3)";
constexpr const char* kInsertSubmission =
    "INSERT INTO submissions (job_id, tenant, outcome, priority, run_at, deadline, created_at, "
    "correlation_id, actor, batch_id, line) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
constexpr const char* kInsertClientKey =
    "INSERT INTO client_keys (tenant, client_key, fingerprint, job_id, submission_id, created_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
constexpr const char* kJobForReceipt =
    "SELECT state, correlation_id, generation FROM jobs WHERE job_id = ?1";
constexpr const char* kIsRejected =
    "SELECT 1 FROM dead_letters WHERE job_id = ?1 AND generation = ?2 AND state = 'open' "
    "AND reason = 'rejected'";
constexpr const char* kFindRefresh =
    "SELECT job_id FROM jobs INDEXED BY jobs_live_refresh "
    "WHERE cache_key = ?1 AND live = 1 AND kind = 'refresh'";
// A time that a retry or a release set is a wait that a vendor or a backoff asked for; only a job
// that was not sent yet in this generation may be brought forward.
constexpr const char* kWishes =
    "SELECT priority, run_at, deadline, attempt, wait, state FROM jobs WHERE job_id = ?1";
// A job stores when one of its submissions wants it to, for the times that one asked for; it is
// answered from the cache only when all of them allow it.
constexpr const char* kCacheWishes =
    "SELECT cache_read, cache_store AND hard_ttl > 0, coalesce, cache_max_age, soft_ttl, hard_ttl "
    "FROM jobs WHERE job_id = ?1 AND attempt = 0";
constexpr const char* kSetCacheWishes =
    "UPDATE jobs SET cache_read = ?2, cache_store = ?3, coalesce = ?4, cache_max_age = ?5, "
    "soft_ttl = ?6, hard_ttl = ?7 WHERE job_id = ?1";

// Nobody is to wait for an answer that will not be there for him.
bool keeps_answer(const NewSubmission& s) {
  return s.cache.store && s.hard_ttl_ms > 0;
}

}  // namespace

SubmitReceipt SqliteStore::submit(const NewSubmission& s, UnixMs now) {
  using Kind = SubmitDecision::Kind;
  const SubmitDecision decision = queries_.decide(s, now);
  const bool counted_as_miss =
      s.cache.read && (decision.kind == Kind::live || decision.kind == Kind::rejected ||
                       decision.kind == Kind::create);
  if (counted_as_miss) ++pending_.misses;
  switch (decision.kind) {
    case Kind::known_key:
      return receipt_for_existing(decision, false);
    case Kind::key_conflict: {
      SubmitReceipt receipt;
      receipt.outcome = SubmitReceipt::Outcome::key_conflict;
      receipt.job_id = decision.job_id;
      return receipt;
    }
    case Kind::not_cached: {
      SubmitReceipt receipt;
      receipt.outcome = SubmitReceipt::Outcome::not_cached;
      return receipt;
    }
    case Kind::fresh:
    case Kind::stale:
      return answer_from_cache(s, decision, now);
    case Kind::live:
    case Kind::rejected:
      return join_job(s, decision, now);
    case Kind::create:
      break;
  }
  return create_job(s, now);
}

SubmitReceipt SqliteStore::receipt_for_existing(const SubmitDecision& decision, bool rejected) {
  SubmitReceipt receipt;
  receipt.outcome = SubmitReceipt::Outcome::existing;
  receipt.job_id = decision.job_id;
  receipt.submission_id = decision.submission_id;
  receipt.rejected_before = rejected;
  int generation = 0;
  {
    Query query(db_, kJobForReceipt, decision.job_id);
    if (!query.step()) {
      // A client key outlives its job; only jobs that ended are pruned.
      receipt.status = JobState::completed;
      return receipt;
    }
    receipt.status = parse_job_state(query.view(0)).value();
    receipt.correlation_id = query.text(1);
    generation = query.i32(2);
  }
  if (!rejected && receipt.status == JobState::dead_lettered) {
    Query query(db_, kIsRejected, decision.job_id, generation);
    receipt.rejected_before = query.step();
  }
  return receipt;
}

SubmitReceipt SqliteStore::join_job(const NewSubmission& s, const SubmitDecision& decision,
                                    UnixMs now) {
  const bool rejected = decision.kind == SubmitDecision::Kind::rejected;
  SubmitReceipt receipt = receipt_for_existing(decision, rejected);
  if (!rejected) {
    raise_job(s, decision.job_id, now);
    join_cache_wishes(s, decision.job_id);
  }
  receipt.submission_id = add_submission(s, decision.job_id, "existing", now);
  remember_client_key(s, decision.job_id, receipt.submission_id, now);
  return receipt;
}

void SqliteStore::raise_job(const NewSubmission& s, JobId job_id, UnixMs now) {
  int priority = 0;
  UnixMs run_at = 0;
  std::optional<UnixMs> deadline;
  std::string wait;
  {
    Query query(db_, kWishes, job_id);
    AIQ_CHECK(query.step());
    priority = std::max(query.i32(0), s.priority);
    run_at = query.i64(1);
    if (query.i32(3) == 0) run_at = std::min(run_at, std::max(s.run_at, now));
    deadline = query.opt_i64(2);
    if (deadline)
      deadline = s.deadline ? std::optional(std::max(*deadline, *s.deadline)) : std::nullopt;
    wait = query.text(4);
    const bool same =
        priority == query.i32(0) && run_at == query.i64(1) && deadline == query.opt_i64(2);
    if (same) return;
  }
  if (wait == "time" && run_at <= now) wait = "ready";
  set_wishes(job_id, priority, run_at, deadline, wait);
}

void SqliteStore::join_cache_wishes(const NewSubmission& s, JobId job_id) {
  bool read = s.cache.read;
  bool store = keeps_answer(s);
  bool coalesce = store && s.cache.coalesce;
  auto max_age = s.cache.max_age;
  DurationMs soft_ttl = s.soft_ttl_ms;
  DurationMs hard_ttl = s.hard_ttl_ms;
  {
    Query query(db_, kCacheWishes, job_id);
    if (!query.step()) return;  // sent already: it is what it was
    const auto age = query.opt_i64(3);
    const bool stores = query.flag(1);
    if (stores || !store) {
      soft_ttl = query.i64(4);
      hard_ttl = query.i64(5);
    }
    read = read && query.flag(0);
    store = store || stores;
    coalesce = coalesce || query.flag(2);
    if (age) max_age = max_age ? std::min(*max_age, *age) : *age;
    const bool same =
        read == query.flag(0) && store == stores && coalesce == query.flag(2) && max_age == age;
    if (same) return;
  }
  run(db_, kSetCacheWishes, job_id, read, store, coalesce, max_age, soft_ttl, hard_ttl);
}

SubmitReceipt SqliteStore::answer_from_cache(const NewSubmission& s, const SubmitDecision& decision,
                                             UnixMs now) {
  const bool stale = decision.kind == SubmitDecision::Kind::stale;
  SubmitReceipt receipt;
  receipt.outcome = SubmitReceipt::Outcome::cached;
  receipt.status = JobState::completed;
  receipt.stale = stale;
  receipt.correlation_id = s.correlation_id;
  receipt.job_id = insert_job(s, JobKind::request, &decision.hit, stale, now);
  receipt.submission_id = add_submission(s, receipt.job_id, "cached", now);
  remember_client_key(s, receipt.job_id, receipt.submission_id, now);
  count_hit(key_blob(s.keys.cache_key), decision.hit, stale, now);
  // Who does not want an answer stored gives no reason to pay for one that only would be stored.
  if (stale && keeps_answer(s)) receipt.refresh_job = start_refresh(s, now);
  return receipt;
}

std::optional<JobId> SqliteStore::start_refresh(const NewSubmission& s, UnixMs now) {
  {
    Query query(db_, kFindRefresh, key_blob(s.keys.cache_key));
    if (query.step()) return std::nullopt;
  }
  return insert_job(s, JobKind::refresh, nullptr, false, now);
}

SubmitReceipt SqliteStore::create_job(const NewSubmission& s, UnixMs now) {
  SubmitReceipt receipt;
  receipt.outcome = SubmitReceipt::Outcome::created;
  receipt.status = JobState::queued;
  receipt.correlation_id = s.correlation_id;
  receipt.job_id = insert_job(s, JobKind::request, nullptr, false, now);
  receipt.submission_id = add_submission(s, receipt.job_id, "created", now);
  remember_client_key(s, receipt.job_id, receipt.submission_id, now);
  return receipt;
}

JobId SqliteStore::insert_job(const NewSubmission& s, JobKind kind, const CacheHit* hit, bool stale,
                              UnixMs now) {
  const bool refresh = kind == JobKind::refresh;
  const UnixMs run_at = refresh ? now : std::max(s.run_at, now);
  const int priority = refresh ? kPriorityMin : s.priority;
  const JobState state = hit != nullptr ? JobState::completed : JobState::queued;
  const std::string_view wait = hit != nullptr ? "" : run_at > now ? "time" : "ready";
  std::optional<KeyBlob> derived;
  if (!refresh && s.cache.coalesce) derived = key_blob(s.keys.idempotency_key);
  const std::string_view client_key = refresh ? std::string_view() : s.client_key;
  std::optional<std::int64_t> result_id;
  std::optional<UnixMs> deadline;
  if (hit != nullptr) result_id = hit->result_id;
  if (!refresh) deadline = s.deadline;

  run(db_, kInsertJob, lane_for(s.tenant, s.vendor, s.model), to_string(kind),
      to_string(s.endpoint), to_string(state), TextOrNull{wait}, hit == nullptr, priority,
      run_at - priority * options_.age_step_ms, now, run_at, deadline,
      hit != nullptr ? std::optional(now) : std::nullopt, s.max_attempts, derived,
      key_blob(s.keys.cache_key), s.cache_owner, !refresh && s.cache.read, refresh || s.cache.store,
      keeps_answer(s) && (refresh || s.cache.coalesce), refresh ? std::nullopt : s.cache.max_age,
      s.soft_ttl_ms, s.hard_ttl_ms, TextOrNull{client_key}, s.correlation_id, result_id,
      TextOrNull{hit != nullptr ? "cache" : ""}, stale, hit != nullptr && hit->truncated,
      s.prompt_tokens, s.output_tokens);
  const JobId id = db_.last_id();
  const Labels none;
  const Labels& labels = refresh ? none : s.labels;
  run(db_, kInsertRequest, id, BlobView{s.body}, print_labels(labels), s.scope, s.locale, s.safety);
  for (const auto& [key, value] : labels)
    run(db_, kInsertLabel, key, value, id);
  if (hit != nullptr) share_result(hit->result_id, id);
  note_change(id, std::nullopt, state, now, hit != nullptr ? "cache" : refresh ? "refresh" : "");
  return id;
}

SubmissionId SqliteStore::add_submission(const NewSubmission& s, JobId job_id,
                                         std::string_view outcome, UnixMs now) {
  run(db_, kInsertSubmission, job_id, s.tenant, outcome, s.priority, std::max(s.run_at, now),
      s.deadline, now, s.correlation_id, s.actor, s.batch_id, s.line);
  return db_.last_id();
}

void SqliteStore::remember_client_key(const NewSubmission& s, JobId job_id, SubmissionId id,
                                      UnixMs now) {
  if (s.client_key.empty()) return;
  run(db_, kInsertClientKey, s.tenant, s.client_key, key_blob(s.keys.idempotency_key), job_id, id,
      now);
}

}  // namespace aiq
