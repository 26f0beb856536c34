// prepare_restore(), complete_restore().

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/base/file.h"
#include "core/store/keeping.h"
#include "core/store/sqlite_copy.h"
#include "core/store/sqlite_files.h"
#include "core/store/sqlite_migrate.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kIntegrity = "PRAGMA integrity_check(1)";
constexpr const char* kOpenAttempts = "SELECT count(*) FROM attempts WHERE ended_at IS NULL";
constexpr const char* kSkip = "UPDATE sqlite_sequence SET seq = seq + ?1";
// Of tables that had no row yet when the copy was made.
constexpr const char* kSkipUnused =
    "INSERT INTO sqlite_sequence (name, seq) SELECT name, ?1 FROM sqlite_schema "
    "WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%' "
    "AND name NOT IN (SELECT name FROM sqlite_sequence)";

void remove_part(const std::string& part) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"})
    (void)unlink((part + suffix).c_str());
}

void check_pages(SqliteDb& db, const std::string& source) {
  Query query(db, kIntegrity);
  if (query.step() && query.view(0) == "ok") return;
  throw StoreError(StoreError::Kind::corrupt, source + " is damaged: " + query.text(0));
}

Fd copy_source(const std::string& source, const std::string& part, const StoreOptions& options) {
  switch (kind_of_file(source)) {
    case FileKind::absent:
      throw StoreError(StoreError::Kind::missing, source + ": there is no such file");
    case FileKind::empty:
    case FileKind::foreign:
      throw StoreError(StoreError::Kind::corrupt, source + " is no database of aiq");
    case FileKind::ours:
      break;
  }
  SqliteDb from(source, SqliteMode::read, options.busy_ms);
  if (schema_state(from) == SchemaState::absent) {
    throw StoreError(StoreError::Kind::corrupt, source + " is no database of aiq");
  }
  return copy_database(from, part);
}

void pause_queue(Store& store, const std::string& source, const std::string& actor, UnixMs now) {
  Pause pause;
  pause.cause = "restored";
  pause.reason = "restored from " + source;
  pause.actor = actor;
  pause.created_at = now;
  // It was paused before for a reason that still stands.
  for (const Pause& old : store.list_pauses()) {
    const bool whole = old.vendor.empty() && old.model.empty() && old.tenant.empty();
    if (whole && (!old.until || *old.until > now)) pause.reason += "; before that: " + old.reason;
  }
  store.set_pause(pause);
}

void prepare_content(PreparedRestore& prepared, const std::string& source,
                     const StoreOptions& options, const std::string& actor, UnixMs now) {
  {
    SqliteDb db(prepared.part, SqliteMode::write, 0);
    check_pages(db, source);
    prepared.migrated_from = std::stoll(db.pragma("PRAGMA user_version"));
    if (schema_state(db) == SchemaState::older) {
      migrate_schema(db, migration_steps(), /*keep_copy=*/false);
    }
  }
  SqliteStore store(prepared.part, options, now, /*migrate=*/false);
  prepared.faults = store.check();
  store.begin();
  try {
    pause_queue(store, source, actor, now);
    (void)store.clear_locks();
    run(store.db(), kSkip, kRestoredIdSkip);
    run(store.db(), kSkipUnused, kRestoredIdSkip);
    store.commit();
  } catch (...) {
    store.rollback();
    throw;
  }
  prepared.open_attempts = std::stoll(store.db().pragma(kOpenAttempts));
  fold_log(store.db());
}

// The daemon's user must be able to open it, whoever restores: the owner is that of the file that
// it replaces, else that of the folder.
void set_owner(const PreparedRestore& prepared, const std::string& path,
               const StoreOptions& options) {
  secure_files(prepared.part, options);
  struct stat model {};
  const bool there = stat(path.c_str(), &model) == 0;
  if (!there && (geteuid() != 0 || stat(folder_of(path).c_str(), &model) != 0)) return;
  struct stat own {};
  if (fstat(prepared.held.get(), &own) != 0) throw_file_error(prepared.part, "read", errno);
  if (own.st_uid == model.st_uid && own.st_gid == model.st_gid) return;
  const gid_t group = options.group.empty() ? model.st_gid : static_cast<gid_t>(-1);
  if (fchown(prepared.held.get(), model.st_uid, group) != 0) {
    throw_file_error(prepared.part, "give to the owner of the database", errno);
  }
}

// False: it can't be read as a database.
bool try_fold(const std::string& path, DurationMs busy_ms) {
  if (kind_of_file(path) != FileKind::ours) return false;
  try {
    SqliteDb db(path, SqliteMode::write, busy_ms);
    fold_log(db);
    return true;
  } catch (const StoreError& error) {
    if (error.kind() == StoreError::Kind::corrupt) return false;
    throw;
  }
}

void move(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT) {
    throw_file_error(from, "move", errno);
  }
}

// A log must never meet another file than its own.
void move_with_log(const std::string& from, const std::string& to) {
  move(from, to);
  move(from + "-wal", to + "-wal");
  move(from + "-shm", to + "-shm");
  sync_folder_of(from);
}

// One step for who looks at `path`. The copy has its last name before: were the previous database
// left with the name of a part, the next restore would write over it. False: nothing was changed.
bool change_places(const std::string& part, const std::string& path, const std::string& aside) {
  if (!put_in_place(part, aside, /*replace=*/false)) {
    throw StoreError(StoreError::Kind::io, aside + ": there is such a file already");
  }
  if (exchange_names(aside, path)) return true;
  (void)put_in_place(aside, part, /*replace=*/true);
  return false;
}

}  // namespace

PreparedRestore prepare_restore(const std::string& path, const std::string& source,
                                const StoreOptions& options, const std::string& actor, UnixMs now) {
  PreparedRestore prepared;
  prepared.part = path + ".restore.part";
  prepared.held = copy_source(source, prepared.part, options);
  try {
    prepare_content(prepared, source, options, actor, now);
    if (fsync(prepared.held.get()) != 0) throw_file_error(prepared.part, "write", errno);
    prepared.content = summarize_database(prepared.part, 0).value();
    set_owner(prepared, path, options);
  } catch (...) {
    remove_part(prepared.part);
    throw;
  }
  return prepared;
}

std::string complete_restore(const std::string& path, PreparedRestore prepared,
                             const std::string& aside, const StoreOptions& options) {
  const FileKind kind = kind_of_file(path);
  const bool none = kind == FileKind::absent || kind == FileKind::empty;
  const bool folded = !none && try_fold(path, options.busy_ms);
  if (folded && change_places(prepared.part, path, aside)) return aside;
  move_with_log(path, aside);
  try {
    (void)put_in_place(prepared.part, path, /*replace=*/true);
  } catch (const StoreError&) {
    move_with_log(aside, path);
    throw;
  }
  return none ? std::string() : aside;
}

}  // namespace aiq
