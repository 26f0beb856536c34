// back_up_database(), migrate_database(), summarize_database().

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/store/keeping.h"
#include "core/store/sqlite_copy.h"
#include "core/store/sqlite_files.h"
#include "core/store/sqlite_migrate.h"

namespace aiq {
namespace {

// Of every version.
constexpr const char* kJobs = "SELECT sum(n) FROM job_counts";
constexpr const char* kNewestJob = "SELECT created_at FROM jobs ORDER BY job_id DESC LIMIT 1";

DatabaseSummary summary_of(SqliteDb& db) {
  DatabaseSummary summary;
  summary.schema_version = std::stoll(db.pragma("PRAGMA user_version"));
  if (Query query(db, kJobs); query.step()) summary.jobs = query.i64(0);
  if (Query query(db, kNewestJob); query.step()) summary.newest_job = query.i64(0);
  return summary;
}

[[noreturn]] void throw_missing(const std::string& path) {
  throw StoreError(StoreError::Kind::missing, path + ": there is no database yet");
}

}  // namespace

std::optional<DatabaseSummary> summarize_database(const std::string& path, DurationMs busy_ms) {
  if (!has_content(path)) return std::nullopt;
  SqliteDb db(path, SqliteMode::read, busy_ms);
  if (schema_state(db) == SchemaState::absent) return std::nullopt;
  return summary_of(db);
}

MigrationReport migrate_database(const std::string& path, const StoreOptions& options, UnixMs now) {
  const auto before = summarize_database(path, options.busy_ms);
  if (!before) throw_missing(path);
  MigrationReport report{before->schema_version, kSchemaVersion, ""};
  if (report.from < report.to) report.copy = migration_backup_path(path, report.to);
  (void)open_store(path, options, now, /*migrate=*/true);
  return report;
}

std::optional<BackupReport> back_up_database(const std::string& path, const std::string& target,
                                             bool replace, DurationMs busy_ms) {
  if (!replace && ::access(target.c_str(), F_OK) == 0) return std::nullopt;
  if (!has_content(path)) throw_missing(path);
  const std::string part = target + ".part";
  BackupReport report;
  Fd held;
  {
    SqliteDb db(path, SqliteMode::read, busy_ms);
    if (schema_state(db) == SchemaState::absent) throw_missing(path);
    held = copy_database(db, part);
  }
  try {
    struct stat info {};
    if (fstat(held.get(), &info) != 0) throw_file_error(part, "read", errno);
    report.bytes = info.st_size;
    SqliteDb copy(part, SqliteMode::read, 0);
    const DatabaseSummary summary = summary_of(copy);
    report.schema_version = summary.schema_version;
    report.jobs = summary.jobs;
  } catch (...) {
    (void)unlink(part.c_str());
    throw;
  }
  if (put_in_place(part, target, replace)) return report;
  (void)unlink(part.c_str());  // somebody was quicker
  return std::nullopt;
}

}  // namespace aiq
