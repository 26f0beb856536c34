#pragma once
// The store: everything durable, as operations of the domain. No SQL, no connection, no database
// type is visible here, so that a second implementation (PostgreSQL, for many hosts) can pass the
// same conformance suite (tests/store/conformance_*.cpp).
//
// Reader reads; Store also writes. A Store belongs to one thread. Its operations run inside a
// transaction that begin() opened; nothing is visible to others or durable before commit().
// Writer (writer.h) owns the Store in a process and groups operations into transactions.
//
// Errors: StoreError when the database can't (store_error.h). What a caller decides on - a lost
// lease, a key conflict - is a value. An operation finds such cases before it writes, so a value
// that means "not done" has written nothing.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/store/rows.h"
#include "core/store/store_error.h"

namespace aiq {

class PriceBook;    // price_book.h
class CostLedger;   // cost_ledger.h
class CostAudit;    // cost_audit.h
struct PruneRules;  // prune.h
struct PruneCursor;
struct PruneSlice;

// batches.h
class BatchReader;
struct NewBatch;
struct BatchOpened;
struct BatchSlice;
struct BatchLine;
struct BatchRow;

// Thread-compatible: one Reader per thread. Every call is one short read; a call that runs longer
// than 2 s is interrupted (StoreError busy).
class Reader {
 public:
  virtual ~Reader() = default;

  virtual std::optional<JobRow> job(JobId id) = 0;
  // Newest first.
  virtual std::vector<JobRow> list_jobs(const JobFilter& filter, const Page& page) = 0;
  // In order of generation, attempt.
  virtual std::vector<AttemptRow> attempts_of(JobId id) = 0;
  virtual std::optional<std::string> request_body(JobId id) = 0;
  virtual std::optional<std::string> result_body(std::int64_t result_id) = 0;

  // Whether a job of this scope was ever submitted; "" = any. Costs by lanes, not by jobs.
  virtual bool lane_exists(const std::string& vendor, const std::string& model,
                           const std::string& tenant) = 0;

  virtual SubmitPreview preview(const NewSubmission& submission, UnixMs now) = 0;

  virtual StoreStats stats(UnixMs now) = 0;
  // by: "tenant" | "vendor" | "model"; attempts that ended at or after `since`.
  virtual std::vector<StatsGroup> stats_by(std::string_view by, UnixMs since) = 0;

  virtual std::vector<CacheEntry> list_cache(
      const Page& page) = 0;  // last used first; after: rows to skip
  virtual std::optional<CacheEntry> cache_entry(const std::string& cache_key) = 0;
  virtual std::optional<CacheQuestion> cache_question(JobId id) = 0;
  virtual std::vector<LockRow> list_locks() = 0;
  virtual std::vector<Pause> list_pauses() = 0;
  virtual std::vector<DeadLetter> list_dead_letters(const DeadLetterFilter& filter,
                                                    const Page& page) = 0;
  virtual std::optional<DeadLetter> dead_letter(std::int64_t dlq_id) = 0;
  virtual std::optional<LetterPayload> letter_payload(std::int64_t dlq_id) = 0;
  // Open ones, each property by itself, the largest groups first.
  virtual std::vector<DeadLetterGroup> dead_letter_groups() = 0;
  // What replay() would do now, without writing.
  virtual ReplayOutcome preview_replay(std::int64_t dlq_id) = 0;

  // The parts that deal with money, each an interface of its own. Their calls have no time limit
  // of their own.
  virtual PriceBook& prices() = 0;
  virtual CostLedger& ledger() = 0;
  virtual CostAudit& audit() = 0;

  // What Store::prune() would do in this slice, if all before it had been done.
  virtual PruneSlice prunable(const PruneRules& rules, const PruneCursor& from) = 0;

  virtual BatchReader& batches() = 0;

  // What happened to jobs after event `after`, oldest first. 0: from the oldest that is kept.
  virtual std::vector<OutboxRow> events_after(std::int64_t after, int limit) = 0;
  // What happened to one job, oldest first; at most `limit`.
  virtual std::vector<OutboxRow> events_of(JobId job_id, int limit) = 0;
  // How many ready jobs of its lane go before this ready job, counted up to `limit`.
  virtual int ready_before(JobId job_id, int limit) = 0;
  virtual std::int64_t last_event_id() = 0;  // 0: there was none yet

  virtual DbInfo info() = 0;
  // Faults found, one sentence each: integrity, foreign keys, kept counts, dangling pointers.
  // Exempt from the 2 s limit.
  virtual std::vector<std::string> check() = 0;
};

class Store : public Reader {
 public:
  // ---- transactions
  virtual void begin() = 0;   // takes the write lock at once; StoreError busy after a wait
  virtual void commit() = 0;  // durable when it returns (synchronous FULL); may throw
  virtual void rollback() noexcept = 0;
  // Nested: what happened since savepoint() is undone by rollback_to(), kept by release().
  virtual void savepoint() = 0;
  virtual void release() = 0;
  virtual void rollback_to() = 0;
  // Moves committed pages from the log into the file, outside any transaction, when at least
  // `min_frames` are there. Returns the frames left in the log.
  virtual std::int64_t checkpoint(std::int64_t min_frames) = 0;

  // ---- submit (contract, section 4.1, in its order; each step within this transaction)
  virtual SubmitReceipt submit(const NewSubmission& submission, UnixMs now) = 0;

  // ---- withdraw
  // Withdraws one submission. The job is cancelled when none is left. Outcomes: see CancelOutcome.
  struct CancelOutcome {
    enum class Kind { cancelled, withdrawn, already_final, not_found } kind = Kind::not_found;
    JobId job_id = 0;
    JobState status = JobState::cancelled;
    std::string lost_token;  // of a running request that is now to be aborted; "" = none
  };
  virtual CancelOutcome withdraw(SubmissionId id, UnixMs now) = 0;
  // Withdraws all submissions of a job.
  virtual CancelOutcome cancel(JobId id, UnixMs now) = 0;
  // Withdraws those of a job's submissions that are in `scope`.
  virtual CancelOutcome withdraw_in(JobId id, const SubmissionScope& scope, UnixMs now) = 0;

  // ---- admission and lease
  // Moves jobs whose time has come into the ready set, at most `limit`; returns how many.
  virtual int promote_due(UnixMs now, int limit) = 0;
  // Dead-letters waiting jobs whose deadline passed, at most `limit`; returns them.
  virtual std::vector<JobId> expire_deadlines(UnixMs now, int limit) = 0;
  // Completes jobs whose leader finished from the cache, at most `limit`; those that find no
  // entry go back to the ready set. Returns how many it looked at.
  virtual int serve_followers(UnixMs now, int limit) = 0;
  virtual AdmissionView admission_view(UnixMs now) = 0;
  // The first ready job of one lane, nullopt when it has none. One index seek;
  // its in_flight is not counted (0).
  virtual std::optional<LaneHead> lane_head(LaneId lane_id) = 0;
  // Takes the first ready job of a lane: lock of its cache key, attempt row, token, in one step.
  virtual LeaseOutcome lease(const LeaseRequest& request) = 0;

  // Renews leases and their locks, each conditional on its token. Returns the tokens that are lost.
  virtual std::vector<std::string> renew(const std::vector<std::pair<JobId, std::string>>& leases,
                                         UnixMs lease_until) = 0;
  // Leases in the order of job id after `after`.
  virtual std::vector<OpenLease> open_leases(JobId after, int limit) = 0;

  // Ends an attempt and its lease in one step: attempt row, result, usage events, cache entry,
  // lock and followers, job state, dead letter, hold and pause, outbox. When the token is lost:
  // the late answer and its usage are kept with the attempt, and nothing else changes. A refresh
  // that becomes a dead letter lets its entry count as fresh for one more soft TTL (at most to its
  // hard end): what can't be renewed now is not asked for again with every stale answer.
  virtual CloseOutcome close_attempt(const AttemptClose& close) = 0;

  // ---- dead letters
  // Fresh attempts, no deadline unless one is given; what its submissions wished is replaced by the
  // times given here. Conditional on the letter being open: of two at once, one replays.
  virtual ReplayOutcome replay(const ReplayRequest& request) = 0;
  // The job becomes `failed`. Kinds: discarded, already_resolved, not_found.
  enum class DiscardOutcome { discarded, already_resolved, not_found };
  virtual DiscardOutcome discard(std::int64_t dlq_id, const std::string& actor,
                                 const std::string& note, UnixMs now) = 0;
  // Replaces the request of an open letter's job; the old one is kept. A bypassing job gets no
  // derived key. From then on an equal submit of what failed is not answered by this letter.
  // not_found also when its job is a refresh: that can only ask what its entry answers.
  enum class EditOutcome { edited, already_resolved, not_found };
  virtual EditOutcome edit_dead_letter(const DeadLetterEdit& edit) = 0;

  // ---- limits and pauses
  // Replaces one of the same scope. An operator's that ends by itself does not end a pause that
  // waits for a person (auth, vendor_quota): it then has no end, and both reasons.
  virtual void set_pause(const Pause& pause) = 0;
  // Removes the pause of exactly this scope; with `vendor` alone also those of its models.
  // Returns how many. The vendor becomes unproven when there was one: only an attempt that is
  // leased later can prove it.
  virtual int clear_pause(const std::string& vendor, const std::string& model,
                          const std::string& tenant) = 0;
  virtual int clear_expired_pauses(UnixMs now) = 0;
  // Registers a configured vendor. `section`: fingerprint of its settings and secret; when it
  // differs from the stored one an `auth` pause of the vendor and its models is lifted. Unproven
  // afterwards in any case when `restart`, else only when the section changed.
  virtual void register_vendor(const std::string& vendor, const std::string& section,
                               bool restart) = 0;
  virtual void mark_proven(const std::string& vendor) = 0;
  // The wall clock was set back by `by` and is now `now`: what waits for some time, and not for a
  // date, waits no longer for it: holds, retries, breakers.
  virtual void set_back_waits(DurationMs by, UnixMs now) = 0;
  virtual void note_rate(const std::string& vendor, const std::string& rate_json, UnixMs now) = 0;

  // ---- what limits have given out and what vendors have taught (engine/admission.h)
  virtual std::optional<RateRow> rate(const std::string& scope, const std::string& name,
                                      const std::string& unit) = 0;
  virtual void save_rate(const RateRow& row) = 0;
  virtual std::optional<PaceRow> pace(const std::string& vendor, const std::string& model) = 0;
  virtual void save_pace(const PaceRow& row) = 0;
  virtual std::optional<BreakerRow> breaker(const std::string& vendor,
                                            const std::string& model) = 0;
  virtual void save_breaker(const BreakerRow& row) = 0;
  virtual void drop_breaker(const std::string& vendor, const std::string& model) = 0;
  virtual void save_share(const ShareRow& row) = 0;
  // Removes what says nothing more: limits of which nothing was taken for an hour, and the shares
  // of tenants that are behind the clock and were not served for a day.
  virtual void forget_idle(UnixMs now) = 0;
  // Of a hold that is over: how many waited, when the next may start.
  virtual void save_spread(const RateHold& hold) = 0;

  // ---- locks
  // Takes a lock or renews the owner's own; false when another holds it and it has not expired.
  virtual bool acquire_lock(const std::string& name, const std::string& owner, UnixMs now,
                            UnixMs expires_at) = 0;
  virtual bool release_lock(const std::string& name, const std::string& owner) = 0;
  // Frees a lock whoever holds it; followers of a cache lock become ready. False: no such lock.
  virtual bool break_lock(const std::string& name) = 0;
  // At start: the old owner is dead, its locks are free; every waiting follower becomes ready.
  virtual int clear_locks() = 0;

  // ---- cache
  // Looks at the next `limit` entries in the order of their keys, from behind `after` ("" = from
  // the first), and removes those that match. So a slice costs by `limit`, whatever matches.
  virtual CacheRemoval invalidate_cache(const CacheFilter& filter, const std::string& after,
                                        int limit) = 0;
  // Removes entries past their hard TTL, then the least recently used until `max_bytes` hold
  // (0 = no limit); at most `limit`. Returns how many.
  virtual int evict_cache(UnixMs now, std::int64_t max_bytes, int limit) = 0;

  // ---- what is over (prune.h)
  // The slice that begins at `from`.
  virtual PruneSlice prune(const PruneRules& rules, const PruneCursor& from) = 0;

  // ---- batches (batches.h)
  // With a client key: the batch that has it. Without: an unfinished one of the same file and the
  // same kind. Else a new one.
  virtual BatchOpened batch_begin(const NewBatch& batch, UnixMs now) = 0;
  // Takes in those lines of a slice that are not in yet: as jobs, or while staging as rows of the
  // stage. Nothing when the slice begins behind read_to + 1 or the batch takes no more lines.
  // nullopt: no such batch.
  virtual std::optional<BatchRow> batch_append(const BatchSlice& slice, UnixMs now) = 0;
  // All lines are in. Staging without a refused line: published, its lines are still to be loaded;
  // with one: nothing. Loading: loaded.
  virtual std::optional<BatchRow> batch_finish(std::int64_t batch_id, UnixMs now) = 0;
  // A published batch whose lines are not all jobs yet.
  virtual std::optional<std::int64_t> batch_to_load() = 0;
  // Makes jobs of the next lines of a published batch, which are the first rows of its stage in
  // their order, and removes these rows. No lines: it is loaded.
  virtual std::optional<BatchRow> batch_load(std::int64_t batch_id,
                                             const std::vector<BatchLine>& lines, UnixMs now) = 0;
  // Removes a staging batch in slices; true when it is gone, or is not staging.
  virtual bool batch_drop(std::int64_t batch_id, int limit) = 0;
  // At start: those that a dead process left staging, in slices; true when none is left.
  virtual bool drop_staging_batches(int limit) = 0;

  // ---- staging of long all-or-nothing work
  virtual std::int64_t stage_begin(const std::string& purpose, UnixMs now) = 0;
  virtual void stage_append(std::int64_t stage_id, const std::vector<std::string>& rows) = 0;
  virtual void stage_publish(std::int64_t stage_id, UnixMs now) = 0;
  // Rows after `after` in order, at most `limit`, only of a published stage.
  virtual std::vector<std::pair<std::int64_t, std::string>> stage_rows(std::int64_t stage_id,
                                                                       std::int64_t after,
                                                                       int limit) = 0;
  // Removes rows of a stage in slices; true when the stage is gone.
  virtual bool stage_drop(std::int64_t stage_id, int limit) = 0;
  // Removes what a dead process left unpublished, in slices; true when nothing is left.
  virtual bool drop_unpublished_stages(int limit) = 0;
};

struct StoreOptions {
  DurationMs age_step_ms = 60'000;  // one step of priority is worth this much waiting
  DurationMs busy_ms = 10'000;      // how long begin() waits for a foreign lock
  std::string group;                // socket_group: folder 0750, files 0640 for it; "" = 0700, 0600
};

// Opens the database for writing, makes it when absent. ":memory:" for tests. The caller holds
// the OwnerLock of the path. Throws StoreError. `migrate`: bring an older schema up to date
// (after a backup beside the file); false: StoreError version instead.
[[nodiscard]] std::unique_ptr<Store> open_store(const std::string& path,
                                                const StoreOptions& options, UnixMs now,
                                                bool migrate);

// Opens read-only; needs no lock. Throws StoreError (missing when there is no file).
[[nodiscard]] std::unique_ptr<Reader> open_reader(const std::string& path);

// The schema version that this program writes.
inline constexpr std::int64_t kSchemaVersion = 3;

}  // namespace aiq
