// locks, and the jobs that wait for the lock of their cache key.

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kFindLock =
    "SELECT k.owner, k.expires_at, coalesce(j.lease_token = k.owner, 0) "
    "FROM locks k LEFT JOIN jobs j ON j.job_id = k.job_id WHERE k.name = ?1";
constexpr const char* kInsertLock =
    "INSERT INTO locks (name, owner, job_id, acquired_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)";
constexpr const char* kTakeOverLock =
    "UPDATE locks SET owner = ?2, job_id = ?3, acquired_at = ?4, expires_at = ?5 WHERE name = ?1";
constexpr const char* kRenewOwnLock =
    "UPDATE locks SET expires_at = ?3 WHERE name = ?1 AND owner = ?2";
constexpr const char* kReleaseLock = "DELETE FROM locks WHERE name = ?1 AND owner = ?2";
constexpr const char* kBreakLock = "DELETE FROM locks WHERE name = ?1";
constexpr const char* kClearLocks = "DELETE FROM locks";
constexpr const char* kWakeFollowers =
    "UPDATE jobs INDEXED BY jobs_locked SET wait = ?2 WHERE wait = 'lock' AND cache_key = ?1";
constexpr const char* kWakeAll =
    "UPDATE jobs INDEXED BY jobs_locked SET wait = 'ready' WHERE wait = 'lock'";

constexpr std::string_view kCachePrefix = "cache:";

}  // namespace

std::string cache_lock_name(const KeyBlob& key) {
  const std::string_view bytes(reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size());
  return std::string(kCachePrefix) + key_hex(bytes);
}

bool SqliteStore::take_lock(const std::string& name, const std::string& owner, JobId job_id,
                            UnixMs now, UnixMs expires_at) {
  enum class Found { free, own, expired } found = Found::free;
  {
    Query query(db_, kFindLock, name);
    if (query.step()) {
      if (query.view(0) == owner) {
        found = Found::own;
      } else if (query.i64(1) > now || query.flag(2)) {
        // A lease that its process still renews holds its lock, whatever the wall clock did.
        return false;
      } else {
        found = Found::expired;
      }
    }
  }
  const std::optional<JobId> of_job = job_id != 0 ? std::optional(job_id) : std::nullopt;
  switch (found) {
    case Found::free:
      run(db_, kInsertLock, name, owner, of_job, now, expires_at);
      break;
    case Found::own:
      run(db_, kRenewOwnLock, name, owner, expires_at);
      break;
    case Found::expired:
      run(db_, kTakeOverLock, name, owner, of_job, now, expires_at);
      break;
  }
  return true;
}

bool SqliteStore::acquire_lock(const std::string& name, const std::string& owner, UnixMs now,
                               UnixMs expires_at) {
  return take_lock(name, owner, 0, now, expires_at);
}

bool SqliteStore::release_lock(const std::string& name, const std::string& owner) {
  if (run(db_, kReleaseLock, name, owner) == 0) return false;
  if (const auto key = key_of_cache_lock(name)) wake_followers(*key, false);
  return true;
}

bool SqliteStore::break_lock(const std::string& name) {
  if (run(db_, kBreakLock, name) == 0) return false;
  if (const auto key = key_of_cache_lock(name)) wake_followers(*key, false);
  return true;
}

int SqliteStore::clear_locks() {
  const int freed = run(db_, kClearLocks);
  run(db_, kWakeAll);
  return freed;
}

std::optional<KeyBlob> SqliteStore::key_of_cache_lock(std::string_view name) {
  if (name.substr(0, kCachePrefix.size()) != kCachePrefix) return std::nullopt;
  return parse_key(name.substr(kCachePrefix.size()));
}

void SqliteStore::end_flight(const JobCore& job, bool answer_stored) {
  if (!job.coalesce) return;
  // Nobody else's: an operator may have broken it, and another job may lead now.
  if (run(db_, kReleaseLock, cache_lock_name(job.cache_key), job.token) == 0 && !answer_stored) {
    return;
  }
  wake_followers(job.cache_key, answer_stored);
}

int SqliteStore::wake_followers(const KeyBlob& cache_key, bool answer_stored) {
  return run(db_, kWakeFollowers, cache_key, answer_stored ? "serve" : "ready");
}

}  // namespace aiq
