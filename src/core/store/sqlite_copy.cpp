#include "core/store/sqlite_copy.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/base/check.h"
#include "core/base/file.h"
#include "core/store/sqlite_files.h"

namespace aiq {
namespace {

void sync_file(const std::string& path, const Fd& file) {
  if (fsync(file.get()) != 0) throw_file_error(path, "write", errno);
}

Fd make_part(const std::string& part) {
  // Made before SQLite opens it, so that it is never readable for others.
  Fd file(open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) throw_file_error(part, "create", errno);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    throw StoreError(StoreError::Kind::busy, "another process writes " + part);
  }
  if (fchmod(file.get(), 0600) != 0 || ftruncate(file.get(), 0) != 0) {
    throw_file_error(part, "create", errno);
  }
  return file;
}

void fill(SqliteDb& from, const std::string& part) {
  SqliteDb copy(part, SqliteMode::write, 0);
  copy.exec("PRAGMA synchronous = OFF");  // the caller syncs it, once
  sqlite3_backup* const backup = sqlite3_backup_init(copy.handle(), "main", from.handle(), "main");
  if (backup == nullptr) copy.fail(sqlite3_errcode(copy.handle()));
  // All pages in one step: the step is one read transaction of the source.
  const int stepped = sqlite3_backup_step(backup, -1);
  const int finished = sqlite3_backup_finish(backup);
  if (finished != SQLITE_OK) copy.fail(finished);
  if (stepped != SQLITE_DONE) copy.fail(stepped);
  // The copy's first page says that there is a log; without one, it can be read anywhere.
  fold_log(copy);
}

}  // namespace

Fd copy_database(SqliteDb& from, const std::string& part) {
  Fd file = make_part(part);
  try {
    fill(from, part);
    sync_file(part, file);
  } catch (...) {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"})
      (void)unlink((part + suffix).c_str());
    throw;
  }
  return file;
}

void fold_log(SqliteDb& db) {
  {
    Query query(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    const bool busy = query.step() && query.flag(0);
    if (busy) throw StoreError(StoreError::Kind::busy, db.path() + ": another program reads it");
  }
  // The log is empty now, but SQLite removes it only as a part of its own last checkpoint.
  int off = 1;
  sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, &off);
  AIQ_CHECK(off == 0);
  const std::string mode = db.pragma("PRAGMA journal_mode = DELETE");
  if (mode != "delete") {
    throw StoreError(StoreError::Kind::busy, db.path() + ": its log can't be closed");
  }
}

bool put_in_place(const std::string& part, const std::string& target, bool replace) {
  if (replace) {
    if (std::rename(part.c_str(), target.c_str()) != 0) throw_file_error(target, "create", errno);
  } else if (renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) return false;
    if (errno != EINVAL && errno != ENOSYS) throw_file_error(target, "create", errno);
    // A file system without it: two names for a moment, the new one only if it is free.
    if (link(part.c_str(), target.c_str()) != 0) {
      if (errno == EEXIST) return false;
      throw_file_error(target, "create", errno);
    }
    if (unlink(part.c_str()) != 0) throw_file_error(part, "remove", errno);
  }
  sync_folder_of(target);
  return true;
}

bool exchange_names(const std::string& one, const std::string& other) {
  if (renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == EINVAL || errno == ENOSYS) return false;
    throw_file_error(other, "replace", errno);
  }
  sync_folder_of(other);
  return true;
}

void sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const Fd file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file) throw_file_error(folder, "open", errno);
  sync_file(folder, file);
}

}  // namespace aiq
