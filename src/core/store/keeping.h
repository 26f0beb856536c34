#pragma once
// Whole databases: brought up to date, copied while in use, put back. For one process at a time:
// except for back_up_database() and summarize_database() the caller holds the OwnerLock of `path`
// and has no connection of its own to it open. All throw StoreError.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/store/store.h"

namespace aiq {

// What a file holds, of any version that this program can read.
struct DatabaseSummary {
  std::int64_t schema_version = 0, jobs = 0;
  std::optional<UnixMs> newest_job;  // when its newest job was submitted
};
// nullopt: there is no file, or an empty one.
[[nodiscard]] std::optional<DatabaseSummary> summarize_database(const std::string& path,
                                                                DurationMs busy_ms);

struct MigrationReport {
  std::int64_t from = 0, to = 0;
  std::string copy;  // of the file as it was before; "" = it was up to date
};
// StoreError missing when there is no database.
[[nodiscard]] MigrationReport migrate_database(const std::string& path, const StoreOptions& options,
                                               UnixMs now);

struct BackupReport {
  std::int64_t bytes = 0, schema_version = 0, jobs = 0;
};
// Copies one read snapshot of the database, also while others write, to the file `target`: written
// beside it as TARGET.part, synced, then renamed. The copy needs no other file. nullopt: there is
// such a file already, and it stays unless `replace`. StoreError busy: another process is writing
// TARGET.part.
[[nodiscard]] std::optional<BackupReport> back_up_database(const std::string& path,
                                                           const std::string& target, bool replace,
                                                           DurationMs busy_ms);

// How far apart the ids of a restored database are from those that the lost one may have given out.
inline constexpr std::int64_t kRestoredIdSkip = 1'000'000;

// A restore in two steps, so that the caller can say what is to come before the second.
struct PreparedRestore {
  std::string part;  // PATH.restore.part: the copy, as it will be put in place
  Fd held;           // keeps other processes from it
  std::int64_t migrated_from = 0;
  DatabaseSummary content;
  std::int64_t open_attempts = 0;
  std::vector<std::string> faults;  // of what the tables say about each other; see Reader::check
};
// Copies `source` beside `path`, checks the copy (corrupt: pages are damaged or it is no database
// of aiq; version: a newer one) and prepares it: schema up to date, the whole queue paused with
// cause `restored`, no locks, ids moved on. Attempts stay open: the next start of the daemon takes
// them for unknown, as after a crash. The present database is not touched.
[[nodiscard]] PreparedRestore prepare_restore(const std::string& path, const std::string& source,
                                              const StoreOptions& options, const std::string& actor,
                                              UnixMs now);

// Puts the copy in place. What was there is kept as `aside`, a free name, with what its log held:
// in the file, or, when it is too damaged for that, as `aside`-wal. The file changes in one step
// where the file system can exchange two names; else for a moment there is `aside` alone.
// Returns the name that the previous database has now; "" = there was none.
[[nodiscard]] std::string complete_restore(const std::string& path, PreparedRestore prepared,
                                           const std::string& aside, const StoreOptions& options);

}  // namespace aiq
