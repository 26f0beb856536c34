#pragma once
// What reads: one set of queries, run by a read-only connection (SqliteReader) and by the
// writer's own (SqliteStore).

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/store/rows.h"
#include "core/store/sqlite_audit.h"
#include "core/store/sqlite_batches.h"
#include "core/store/sqlite_db.h"
#include "core/store/sqlite_ledger.h"
#include "core/store/sqlite_prices.h"
#include "core/store/sqlite_prune.h"
#include "core/store/store.h"

namespace aiq {

// An entry as submit, lease and followers look at it.
struct CacheHit {
  std::int64_t result_id = 0;
  bool truncated = false;
  UnixMs created_at = 0, soft_until = 0, hard_until = 0;
  std::int64_t tokens = 0;
};

// What a submission comes to (contract 4.1, in its order), before anything is written.
struct SubmitDecision {
  enum class Kind {
    known_key,  // its client key is known with the same request
    key_conflict,
    fresh,  // answered by an entry
    stale,  // answered by an entry past its soft TTL
    not_cached,
    live,      // a live job has its derived key
    rejected,  // an open dead letter of class rejected has it
    create,
  };
  Kind kind = Kind::create;
  JobId job_id = 0;                // known_key, live, rejected
  SubmissionId submission_id = 0;  // known_key
  CacheHit hit;                    // fresh, stale
};

// Lists go from the newest id down.
[[nodiscard]] inline std::int64_t first_id_below(const Page& page) {
  return page.after > 0 ? page.after : std::numeric_limits<std::int64_t>::max();
}

class SqliteQueries {
 public:
  explicit SqliteQueries(SqliteDb& db) : db_(db) {}

  // As Reader says.
  std::optional<JobRow> job(JobId id);
  std::vector<JobRow> list_jobs(const JobFilter& filter, const Page& page);
  std::vector<AttemptRow> attempts_of(JobId id);
  std::optional<std::string> request_body(JobId id);
  std::optional<std::string> result_body(std::int64_t result_id);
  bool lane_exists(const std::string& vendor, const std::string& model, const std::string& tenant);
  SubmitPreview preview(const NewSubmission& submission, UnixMs now);
  StoreStats stats(UnixMs now);
  std::vector<StatsGroup> stats_by(std::string_view by, UnixMs since);
  std::vector<CacheEntry> list_cache(const Page& page);
  std::optional<CacheEntry> cache_entry(const std::string& cache_key);
  std::optional<CacheQuestion> cache_question(JobId id);
  std::vector<LockRow> list_locks();
  std::vector<Pause> list_pauses();
  std::vector<DeadLetter> list_dead_letters(const DeadLetterFilter& filter, const Page& page);
  std::optional<DeadLetter> dead_letter(std::int64_t dlq_id);
  std::optional<LetterPayload> letter_payload(std::int64_t dlq_id);
  std::vector<DeadLetterGroup> dead_letter_groups();
  ReplayOutcome preview_replay(std::int64_t dlq_id);
  PruneSlice prunable(const PruneRules& rules, const PruneCursor& from) {
    return count_prunable(db_, rules, from);
  }
  std::vector<OutboxRow> events_after(std::int64_t after, int limit);
  std::vector<OutboxRow> events_of(JobId job_id, int limit);
  int ready_before(JobId job_id, int limit);
  std::int64_t last_event_id();
  DbInfo info();
  std::vector<std::string> check();

  // Shared with what writes.
  SubmitDecision decide(const NewSubmission& submission, UnixMs now);
  std::optional<CacheHit> find_entry(const KeyBlob& cache_key);
  const Lane& lane(LaneId id);
  // Lanes that a rolled-back transaction made are not there any more.
  void forget_lanes() { lanes_.clear(); }
  std::vector<LaneHead> ready_heads();
  std::vector<LaneHead> running();
  // See AdmissionView.
  std::map<std::string, UnixMs> oldest_start(const std::vector<VendorRow>& vendors,
                                             const std::vector<LaneHead>& running);
  std::vector<Pause> pauses_in_force(UnixMs now);
  std::vector<RateHold> holds_in_force(UnixMs now);
  std::vector<VendorRow> vendors();
  std::vector<RateHold> holds_and_spreads(UnixMs now);
  // Jobs of a lane that may start by then, counted up to about `limit`.
  int waiting_in(LaneId lane, UnixMs until, int limit);
  std::vector<RateRow> rates();
  std::vector<PaceRow> paces();
  std::vector<BreakerRow> breakers();
  // Of the tenants of these lanes, and the clock.
  std::vector<ShareRow> shares(const std::vector<LaneHead>& lanes);

 private:
  JobRow job_row(Query& query, std::optional<std::int64_t> batch_id = std::nullopt);
  CacheStats cache_stats();

  SqliteDb& db_;
  std::unordered_map<LaneId, Lane> lanes_;
};

// Forwards the reading half of an interface to the queries, each call with its deadline.
template <class Interface>
class SqliteReads : public Interface {
 public:
  std::optional<JobRow> job(JobId id) override { return limited()->job(id); }
  std::vector<JobRow> list_jobs(const JobFilter& filter, const Page& page) override {
    return limited()->list_jobs(filter, page);
  }
  std::vector<AttemptRow> attempts_of(JobId id) override { return limited()->attempts_of(id); }
  std::optional<std::string> request_body(JobId id) override { return limited()->request_body(id); }
  std::optional<std::string> result_body(std::int64_t result_id) override {
    return limited()->result_body(result_id);
  }
  bool lane_exists(const std::string& vendor, const std::string& model,
                   const std::string& tenant) override {
    return limited()->lane_exists(vendor, model, tenant);
  }
  SubmitPreview preview(const NewSubmission& submission, UnixMs now) override {
    return limited()->preview(submission, now);
  }
  StoreStats stats(UnixMs now) override { return limited()->stats(now); }
  std::vector<StatsGroup> stats_by(std::string_view by, UnixMs since) override {
    return limited()->stats_by(by, since);
  }
  std::vector<CacheEntry> list_cache(const Page& page) override {
    return limited()->list_cache(page);
  }
  std::optional<CacheEntry> cache_entry(const std::string& cache_key) override {
    return limited()->cache_entry(cache_key);
  }
  std::optional<CacheQuestion> cache_question(JobId id) override {
    return limited()->cache_question(id);
  }
  std::vector<LockRow> list_locks() override { return limited()->list_locks(); }
  std::vector<Pause> list_pauses() override { return limited()->list_pauses(); }
  std::vector<DeadLetter> list_dead_letters(const DeadLetterFilter& filter,
                                            const Page& page) override {
    return limited()->list_dead_letters(filter, page);
  }
  std::optional<DeadLetter> dead_letter(std::int64_t dlq_id) override {
    return limited()->dead_letter(dlq_id);
  }
  std::optional<LetterPayload> letter_payload(std::int64_t dlq_id) override {
    return limited()->letter_payload(dlq_id);
  }
  std::vector<DeadLetterGroup> dead_letter_groups() override {
    return limited()->dead_letter_groups();
  }
  ReplayOutcome preview_replay(std::int64_t dlq_id) override {
    return limited()->preview_replay(dlq_id);
  }
  PriceBook& prices() override { return prices_; }
  CostLedger& ledger() override { return ledger_; }
  CostAudit& audit() override { return audit_; }
  PruneSlice prunable(const PruneRules& rules, const PruneCursor& from) override {
    return limited()->prunable(rules, from);
  }
  BatchReader& batches() override { return batches_; }
  std::vector<OutboxRow> events_after(std::int64_t after, int limit) override {
    return limited()->events_after(after, limit);
  }
  std::vector<OutboxRow> events_of(JobId job_id, int limit) override {
    return limited()->events_of(job_id, limit);
  }
  int ready_before(JobId job_id, int limit) override {
    return limited()->ready_before(job_id, limit);
  }
  std::int64_t last_event_id() override { return limited()->last_event_id(); }
  DbInfo info() override { return limited()->info(); }
  std::vector<std::string> check() override {
    prepare_read();
    return queries_.check();
  }

  // For tests of the connection itself.
  [[nodiscard]] SqliteDb& db() { return db_; }

 protected:
  static constexpr DurationMs kReadLimitMs = 2'000;

  SqliteReads(const std::string& path, SqliteMode mode, DurationMs busy_ms)
      : db_(path, mode, busy_ms),
        queries_(db_),
        prices_(db_),
        ledger_(db_),
        audit_(db_),
        batches_(db_) {}

  // Called before every read.
  virtual void prepare_read() {}

  SqliteDb db_;
  SqliteQueries queries_;
  SqlitePrices prices_;
  SqliteLedger ledger_;
  SqliteAudit audit_;
  SqliteBatches batches_;
  DurationMs read_limit_ms_ = kReadLimitMs;

 private:
  // Lives to the end of the full expression, that is, of the call.
  class Limited {
   public:
    Limited(SqliteQueries& queries, SqliteDb& db, DurationMs ms)
        : queries_(queries), deadline_(db, ms) {}
    SqliteQueries* operator->() { return &queries_; }

   private:
    SqliteQueries& queries_;
    SqliteDeadline deadline_;
  };
  Limited limited() {
    prepare_read();
    return Limited(queries_, db_, read_limit_ms_);
  }
};

}  // namespace aiq
