#include "core/store/sqlite_store.h"

#include <algorithm>

#include "core/base/check.h"

namespace aiq {
namespace {

constexpr const char* kBegin = "BEGIN IMMEDIATE";
constexpr const char* kCommit = "COMMIT";
constexpr const char* kSavepoint = "SAVEPOINT nested";
constexpr const char* kRelease = "RELEASE nested";
constexpr const char* kRollbackTo = "ROLLBACK TO nested";

constexpr const char* kCountJobs = "UPDATE job_counts SET n = n + ?2 WHERE state = ?1";
constexpr const char* kCountCache = "UPDATE cache_counters SET n = n + ?2 WHERE name = ?1";

constexpr const char* kFindLane =
    "SELECT lane_id FROM lanes WHERE tenant = ?1 AND vendor = ?2 AND model = ?3";
constexpr const char* kInsertLane = "INSERT INTO lanes (tenant, vendor, model) VALUES (?1, ?2, ?3)";

constexpr const char* kInsertOutbox =
    "INSERT INTO outbox (at, job_id, from_state, to_state, detail) VALUES (?1, ?2, ?3, ?4, ?5)";

constexpr const char* kJobCore =
    "SELECT lane_id, state, generation, attempt, coalesce, cache_key, lease_token, "
    "open_attempt_id, leased_at, error_class, error_code, error_message, error_status, "
    "correlation_id, deadline, kind FROM jobs WHERE job_id = ?1";

// SQLite tells after each commit how many frames the log has. Its own hook of this kind is the
// automatic checkpoint, which must not be.
int on_commit(void* frames, sqlite3*, const char*, int count) {
  *static_cast<std::int64_t*>(frames) = count;
  return SQLITE_OK;
}

}  // namespace

SqliteStore::SqliteStore(const std::string& path, const StoreOptions& options, UnixMs now,
                         bool migrate)
    : SqliteReads(path, SqliteMode::write, options.busy_ms), options_(options) {
  prepare_schema(now, migrate);
  sqlite3_wal_hook(db_.handle(), on_commit, &wal_frames_);
  if (!db_.in_memory()) {
    db_.exec("PRAGMA journal_size_limit = 67108864");
    AIQ_CHECK(db_.pragma("PRAGMA wal_autocheckpoint") == "0");
    const DbInfo info = queries_.info();
    wal_frames_ = info.wal_bytes / (info.page_size + 24);  // what an earlier owner left
  }
}

void SqliteStore::begin() {
  AIQ_CHECK(!db_.in_transaction());
  run(db_, kBegin);
}

void SqliteStore::commit() {
  AIQ_CHECK(saved_.empty());
  flush_counts();
  run(db_, kCommit);
  wal_checkpointed_ = wal_frames_ < wal_checkpointed_ ? 0 : wal_checkpointed_;
}

void SqliteStore::rollback() noexcept {
  // After some errors SQLite has rolled back by itself.
  if (db_.in_transaction()) {
    sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    AIQ_CHECK(!db_.in_transaction());
  }
  pending_ = {};
  saved_.clear();
  lane_ids_.clear();
  queries_.forget_lanes();
}

void SqliteStore::savepoint() {
  run(db_, kSavepoint);
  saved_.push_back(pending_);
}

void SqliteStore::release() {
  AIQ_CHECK(!saved_.empty());
  run(db_, kRelease);
  saved_.pop_back();
}

void SqliteStore::rollback_to() {
  AIQ_CHECK(!saved_.empty());
  run(db_, kRollbackTo);
  run(db_, kRelease);
  pending_ = saved_.back();
  saved_.pop_back();
  lane_ids_.clear();
  queries_.forget_lanes();
}

std::int64_t SqliteStore::checkpoint(std::int64_t min_frames) {
  AIQ_CHECK(!db_.in_transaction());
  const std::int64_t left = wal_frames_ - wal_checkpointed_;
  if (db_.in_memory() || left < min_frames) return left;
  // While a reader holds an old snapshot nothing can be moved, but each try sorts the whole log.
  if (wal_frames_tried_ > 0 && wal_frames_ >= wal_frames_tried_ &&
      wal_frames_ < wal_frames_tried_ + min_frames) {
    return left;
  }
  int frames = 0;
  int moved = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(db_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
  if (code == SQLITE_BUSY) return left;
  if (code != SQLITE_OK) db_.fail(code);
  wal_frames_ = std::max(frames, 0);
  wal_checkpointed_ = std::max(moved, 0);
  const std::int64_t rest = wal_frames_ - wal_checkpointed_;
  wal_frames_tried_ = rest >= min_frames && rest > 0 ? wal_frames_ : 0;
  return rest;
}

void SqliteStore::flush_counts() {
  if (pending_ == PendingCounts{}) return;
  for (std::size_t i = 0; i < pending_.jobs.size(); ++i) {
    if (pending_.jobs[i] == 0) continue;
    run(db_, kCountJobs, to_string(static_cast<JobState>(i)), pending_.jobs[i]);
  }
  const std::pair<std::string_view, std::int64_t> counters[] = {
      {"entries", pending_.entries}, {"bytes", pending_.bytes},
      {"hits", pending_.hits},       {"stale_hits", pending_.stale_hits},
      {"misses", pending_.misses},   {"avoided_tokens", pending_.avoided_tokens}};
  for (const auto& [name, change] : counters) {
    if (change != 0) run(db_, kCountCache, name, change);
  }
  pending_ = {};
}

LaneId SqliteStore::lane_for(const std::string& tenant, const std::string& vendor,
                             const std::string& model) {
  std::string key;
  key.reserve(tenant.size() + vendor.size() + model.size() + 2);
  key.append(tenant).push_back('\0');
  key.append(vendor).push_back('\0');
  key.append(model);
  if (const auto found = lane_ids_.find(key); found != lane_ids_.end()) return found->second;
  LaneId id = 0;
  {
    Query query(db_, kFindLane, tenant, vendor, model);
    if (query.step()) id = query.i64(0);
  }
  if (id == 0) {
    run(db_, kInsertLane, tenant, vendor, model);
    id = db_.last_id();
  }
  lane_ids_.emplace(std::move(key), id);
  return id;
}

void SqliteStore::note_change(JobId job_id, std::optional<JobState> from, JobState to, UnixMs now,
                              std::string_view detail) {
  if (from) {
    AIQ_CHECK(is_legal_change(*from, to));
    count(*from, -1);
  }
  count(to, 1);
  const std::string_view from_name = from ? to_string(*from) : std::string_view();
  run(db_, kInsertOutbox, now, job_id, TextOrNull{from_name}, to_string(to), detail);
}

std::optional<JobCore> SqliteStore::job_core(JobId id) {
  Query query(db_, kJobCore, id);
  if (!query.step()) return std::nullopt;
  JobCore job;
  job.job_id = id;
  job.lane_id = query.i64(0);
  job.state = parse_job_state(query.view(1)).value();
  job.generation = query.i32(2);
  job.attempt = query.i32(3);
  job.coalesce = query.flag(4);
  job.cache_key = query.key(5);
  job.token = query.text(6);
  job.open_attempt_id = query.i64(7);
  job.leased_at = query.i64(8);
  job.error_class = query.text(9);
  job.error_code = query.text(10);
  job.error_message = query.text(11);
  job.error_status = query.opt_i32(12);
  job.correlation_id = query.text(13);
  job.deadline = query.opt_i64(14);
  job.kind = parse_job_kind(query.view(15));
  return job;
}

}  // namespace aiq
