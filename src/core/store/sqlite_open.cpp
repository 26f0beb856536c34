// open_store() and open_reader(): from a path to a database that is there, ours and current.

#include <sys/stat.h>

#include <cerrno>

#include "core/store/sqlite_files.h"
#include "core/store/sqlite_migrate.h"
#include "core/store/sqlite_reader.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr DurationMs kReaderBusyMs = 2'000;  // while another connection recovers the log

constexpr const char* kGetMeta = "SELECT value FROM meta WHERE key = 'age_step_ms'";
constexpr const char* kSetMeta = "UPDATE meta SET value = ?1 WHERE key = 'age_step_ms'";
constexpr const char* kRankAgain =
    "UPDATE jobs SET rank = run_at - priority * ?1 WHERE job_id IN ("
    "SELECT job_id FROM jobs INDEXED BY jobs_ready WHERE wait = 'ready' UNION ALL "
    "SELECT job_id FROM jobs INDEXED BY jobs_due WHERE wait = 'time' UNION ALL "
    "SELECT job_id FROM jobs INDEXED BY jobs_locked WHERE wait = 'lock' UNION ALL "
    "SELECT job_id FROM jobs INDEXED BY jobs_serve WHERE wait = 'serve' UNION ALL "
    "SELECT job_id FROM jobs INDEXED BY jobs_leased WHERE state = 'processing')";

[[noreturn]] void throw_missing(const std::string& path) {
  throw StoreError(StoreError::Kind::missing, path + ": there is no database yet");
}

[[noreturn]] void throw_older(const std::string& path) {
  throw StoreError(StoreError::Kind::version,
                   path +
                       ": its schema is older than this program's; `aiq db migrate` or a start "
                       "of aiqd brings it up to date");
}

const std::string& existing(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw_missing(path);
    throw_file_error(path, "open", errno);
  }
  if (S_ISREG(info.st_mode) && info.st_size == 0) throw_missing(path);
  return path;
}

}  // namespace

SqliteReader::SqliteReader(const std::string& path, DurationMs read_limit_ms)
    : SqliteReads(existing(path), SqliteMode::read, kReaderBusyMs) {
  read_limit_ms_ = read_limit_ms;
  switch (schema_state(db_)) {
    case SchemaState::absent:
      throw_missing(path);
    case SchemaState::older:
      throw_older(path);
    case SchemaState::current:
      break;
  }
}

void SqliteStore::prepare_schema(UnixMs now, bool migrate) {
  switch (schema_state(db_)) {
    case SchemaState::absent:
      create_schema(db_, now, options_.age_step_ms);
      return;
    case SchemaState::older:
      if (!migrate) throw_older(db_.path());
      migrate_schema(db_, migration_steps());
      break;
    case SchemaState::current:
      break;
  }
  use_wal(db_);
  std::string stored;
  if (Query query(db_, kGetMeta); query.step()) stored = query.text(0);
  const std::string wanted = std::to_string(options_.age_step_ms);
  if (stored == wanted) return;
  // The setting changed: what waits is ordered anew, as if it had always been so.
  begin();
  try {
    run(db_, kRankAgain, options_.age_step_ms);
    run(db_, kSetMeta, wanted);
    commit();
  } catch (...) {
    rollback();
    throw;
  }
}

std::unique_ptr<Store> open_store(const std::string& path, const StoreOptions& options, UnixMs now,
                                  bool migrate) {
  if (path != ":memory:") prepare_files(path, options);
  auto store = std::make_unique<SqliteStore>(path, options, now, migrate);
  if (path != ":memory:") secure_files(path, options);  // the log is there now
  return store;
}

std::unique_ptr<Reader> open_reader(const std::string& path) {
  try {
    return std::make_unique<SqliteReader>(path);
  } catch (const StoreError& error) {
    if (error.kind() != StoreError::Kind::readonly) throw;
    throw StoreError(StoreError::Kind::readonly,
                     std::string(error.what()) +
                         "; reading needs the folder to be writable or its -wal and -shm files "
                         "to be there, else ask the daemon");
  }
}

}  // namespace aiq
