#pragma once
// The store over one SQLite file. One writing connection; every method runs in the transaction
// that begin() opened. The methods stand in one file per group of tables (sqlite_submit.cpp, ...).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/store/sqlite_queries.h"

namespace aiq {

// Counts that are kept in rows but changed in memory during a transaction, and written once, just
// before its commit: a group of 256 operations then updates each count once.
struct PendingCounts {
  std::array<std::int64_t, kJobStateCount> jobs{};
  std::int64_t entries = 0, bytes = 0, hits = 0, stale_hits = 0, misses = 0, avoided_tokens = 0;

  bool operator==(const PendingCounts&) const = default;
};

// A leased or waiting job as the methods that end it look at it.
struct JobCore {
  JobId job_id = 0;
  LaneId lane_id = 0;
  JobKind kind = JobKind::request;
  JobState state = JobState::queued;
  int generation = 1, attempt = 0;
  bool coalesce = false;
  KeyBlob cache_key;
  std::string token;                                   // "" unless processing
  AttemptId open_attempt_id = 0;                       // 0 unless processing
  UnixMs leased_at = 0;                                // likewise
  std::string error_class, error_code, error_message;  // of the last failed attempt
  std::optional<int> error_status;
  std::string correlation_id;
  std::optional<UnixMs> deadline;
};

// 'cache:<hex>', the lock of a cache key.
[[nodiscard]] std::string cache_lock_name(const KeyBlob& key);

// The attempt that a usage event names.
struct AttemptRef {
  AttemptId attempt_id = 0;
  JobId job_id = 0;
  int generation = 1, attempt = 1;
  LaneId lane_id = 0;
  UnixMs started_at = 0;
};

class SqliteStore final : public SqliteReads<Store> {
 public:
  // The file is there; its schema is made or brought up to date here.
  SqliteStore(const std::string& path, const StoreOptions& options, UnixMs now, bool migrate);

  void begin() override;
  void commit() override;
  void rollback() noexcept override;
  void savepoint() override;
  void release() override;
  void rollback_to() override;
  std::int64_t checkpoint(std::int64_t min_frames) override;

  SubmitReceipt submit(const NewSubmission& submission, UnixMs now) override;
  CancelOutcome withdraw(SubmissionId id, UnixMs now) override;
  CancelOutcome cancel(JobId id, UnixMs now) override;
  CancelOutcome withdraw_in(JobId id, const SubmissionScope& scope, UnixMs now) override;

  int promote_due(UnixMs now, int limit) override;
  std::vector<JobId> expire_deadlines(UnixMs now, int limit) override;
  int serve_followers(UnixMs now, int limit) override;
  AdmissionView admission_view(UnixMs now) override;
  std::optional<LaneHead> lane_head(LaneId lane_id) override;
  LeaseOutcome lease(const LeaseRequest& request) override;
  std::vector<std::string> renew(const std::vector<std::pair<JobId, std::string>>& leases,
                                 UnixMs lease_until) override;
  std::vector<OpenLease> open_leases(JobId after, int limit) override;
  CloseOutcome close_attempt(const AttemptClose& close) override;

  ReplayOutcome replay(const ReplayRequest& request) override;
  DiscardOutcome discard(std::int64_t dlq_id, const std::string& actor, const std::string& note,
                         UnixMs now) override;
  EditOutcome edit_dead_letter(const DeadLetterEdit& edit) override;

  void set_pause(const Pause& pause) override;
  int clear_pause(const std::string& vendor, const std::string& model,
                  const std::string& tenant) override;
  int clear_expired_pauses(UnixMs now) override;
  void register_vendor(const std::string& vendor, const std::string& section,
                       bool restart) override;
  void mark_proven(const std::string& vendor) override;
  void set_back_waits(DurationMs by, UnixMs now) override;
  std::optional<RateRow> rate(const std::string& scope, const std::string& name,
                              const std::string& unit) override;
  void save_rate(const RateRow& row) override;
  std::optional<PaceRow> pace(const std::string& vendor, const std::string& model) override;
  void save_pace(const PaceRow& row) override;
  std::optional<BreakerRow> breaker(const std::string& vendor, const std::string& model) override;
  void save_breaker(const BreakerRow& row) override;
  void drop_breaker(const std::string& vendor, const std::string& model) override;
  void save_share(const ShareRow& row) override;
  void forget_idle(UnixMs now) override;
  void save_spread(const RateHold& hold) override;
  void note_rate(const std::string& vendor, const std::string& rate_json, UnixMs now) override;

  bool acquire_lock(const std::string& name, const std::string& owner, UnixMs now,
                    UnixMs expires_at) override;
  bool release_lock(const std::string& name, const std::string& owner) override;
  bool break_lock(const std::string& name) override;
  int clear_locks() override;

  CacheRemoval invalidate_cache(const CacheFilter& filter, const std::string& after,
                                int limit) override;
  int evict_cache(UnixMs now, std::int64_t max_bytes, int limit) override;

  PruneSlice prune(const PruneRules& rules, const PruneCursor& from) override;
  BatchOpened batch_begin(const NewBatch& batch, UnixMs now) override;
  std::optional<BatchRow> batch_append(const BatchSlice& slice, UnixMs now) override;
  std::optional<BatchRow> batch_finish(std::int64_t batch_id, UnixMs now) override;
  std::optional<std::int64_t> batch_to_load() override;
  std::optional<BatchRow> batch_load(std::int64_t batch_id, const std::vector<BatchLine>& lines,
                                     UnixMs now) override;
  bool batch_drop(std::int64_t batch_id, int limit) override;
  bool drop_staging_batches(int limit) override;

  std::int64_t stage_begin(const std::string& purpose, UnixMs now) override;
  void stage_append(std::int64_t stage_id, const std::vector<std::string>& rows) override;
  void stage_publish(std::int64_t stage_id, UnixMs now) override;
  std::vector<std::pair<std::int64_t, std::string>> stage_rows(std::int64_t stage_id,
                                                               std::int64_t after,
                                                               int limit) override;
  bool stage_drop(std::int64_t stage_id, int limit) override;
  bool drop_unpublished_stages(int limit) override;

 private:
  struct LeaseHead;  // sqlite_lease.cpp

  void prepare_schema(UnixMs now, bool migrate);
  void prepare_read() override { flush_counts(); }
  void flush_counts();
  void count(JobState state, int change) {
    pending_.jobs[static_cast<std::size_t>(state)] += change;
  }

  // ---- shared by the groups
  LaneId lane_for(const std::string& tenant, const std::string& vendor, const std::string& model);
  // Counts and the outbox row of a change; the caller changes the job's row. `from` empty: new.
  void note_change(JobId job_id, std::optional<JobState> from, JobState to, UnixMs now,
                   std::string_view detail);
  std::optional<JobCore> job_core(JobId id);
  void write_dead_letter(const JobCore& job, DeadReason reason, UnixMs now);
  // A waiting job becomes a dead letter without having been sent.
  void expire(JobId job_id, UnixMs now);
  // Completes a waiting job with what an entry holds.
  void complete_from_cache(JobId job_id, JobState from, const KeyBlob& cache_key,
                           const CacheHit& hit, bool stale, UnixMs now);
  void count_hit(const KeyBlob& cache_key, const CacheHit& hit, bool stale, UnixMs now);
  void count_avoided(const KeyBlob& cache_key, UnixMs now);
  void remove_entry(const KeyBlob& cache_key, std::int64_t bytes);
  // Notes that a job was answered by the result of another one.
  void share_result(std::int64_t result_id, JobId job_id);
  // Removes a result when neither its own job, nor one that shares it, nor the entry needs it.
  bool drop_unneeded_result(std::int64_t result_id, const KeyBlob& cache_key);
  void drop_job(const PrunableJob& job, PruneCounts& counts);
  // False: it has more errors than go at once; again.
  bool drop_batch(std::int64_t batch_id, PruneCounts& counts);
  // `job_id` 0: not of a lease.
  bool take_lock(const std::string& name, const std::string& owner, JobId job_id, UnixMs now,
                 UnixMs expires_at);
  static std::optional<KeyBlob> key_of_cache_lock(std::string_view name);
  // Ends the single flight of a job that is no longer leased: frees its lock, wakes who waits.
  void end_flight(const JobCore& job, bool answer_stored);
  int wake_followers(const KeyBlob& cache_key, bool answer_stored);

  // ---- submit
  SubmitReceipt receipt_for_existing(const SubmitDecision& decision, bool rejected);
  SubmitReceipt join_job(const NewSubmission& s, const SubmitDecision& decision, UnixMs now);
  SubmitReceipt answer_from_cache(const NewSubmission& s, const SubmitDecision& decision,
                                  UnixMs now);
  SubmitReceipt create_job(const NewSubmission& s, UnixMs now);
  JobId insert_job(const NewSubmission& s, JobKind kind, const CacheHit* hit, bool stale,
                   UnixMs now);
  std::optional<JobId> start_refresh(const NewSubmission& s, UnixMs now);
  SubmissionId add_submission(const NewSubmission& s, JobId job_id, std::string_view outcome,
                              UnixMs now);
  void remember_client_key(const NewSubmission& s, JobId job_id, SubmissionId id, UnixMs now);
  void raise_job(const NewSubmission& s, JobId job_id, UnixMs now);
  void join_cache_wishes(const NewSubmission& s, JobId job_id);

  // ---- batches
  void take_line(BatchRow& batch, const BatchLine& line, UnixMs now,
                 std::vector<std::string>& staged);
  std::optional<SubmitReceipt> submit_line(BatchRow& batch, const BatchLine& line, UnixMs now);
  void refuse_line(BatchRow& batch, std::int64_t line, std::string_view code,
                   std::string_view message);

  // ---- withdraw
  CancelOutcome after_withdrawal(const JobCore& job, UnixMs now);
  CancelOutcome cancel_live(const JobCore& job, UnixMs now);
  void recompute_wishes(JobId job_id, UnixMs now);
  // `wait`: of a live job, "" while it is processing.
  void set_wishes(JobId job_id, int priority, UnixMs run_at, std::optional<UnixMs> deadline,
                  std::string_view wait);

  // ---- lease and close
  static bool answers(const CacheHit& hit, const LeaseHead& head, UnixMs now);
  LeaseOutcome start_attempt(const LeaseRequest& request, LeaseHead& head);
  int explicit_answers(const LeasedJob& job);
  bool serve_follower(JobId job_id, UnixMs now);
  CloseOutcome keep_late_answer(const AttemptClose& close, const std::optional<JobCore>& job);
  void end_attempt_row(const AttemptClose& close);
  // `next`: close.next as the row's present deadline has it.
  void end_job(const AttemptClose& close, const Next& next, JobCore& job,
               std::optional<std::int64_t> result_id);
  void add_usage(const AttemptRef& attempt, const Usage& usage, const std::string& correlation_id,
                 UnixMs now);
  // False: the job does not want its answer kept.
  bool store_entry(const AttemptClose& close, std::int64_t result_id);
  void count_waiting(AdmissionView& view, UnixMs now);
  void apply_to_vendor(const AttemptClose& close, const Lane& lane);

  const StoreOptions options_;
  PendingCounts pending_;
  std::vector<PendingCounts> saved_;                  // by open savepoint
  std::unordered_map<std::string, LaneId> lane_ids_;  // by tenant\0vendor\0model
  std::int64_t wal_frames_ = 0;                       // in the log
  std::int64_t wal_checkpointed_ = 0;                 // of these already in the file
  std::int64_t wal_frames_tried_ = 0;  // at the last checkpoint that could not finish
};

}  // namespace aiq
