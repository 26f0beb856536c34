#pragma once
// Copies of a whole database, and how a file takes another's place.

#include <string>

#include "core/base/file.h"
#include "core/store/sqlite_db.h"

namespace aiq {

// Copies what one read snapshot of `from` holds into the file `part`, mode 0600: one file without a
// log, synced. What stood in `part` is lost. On an error `part` is removed. The descriptor keeps
// others from writing into it; close it after the file has its name.
// StoreError busy: another process is at work on the same `part`.
[[nodiscard]] Fd copy_database(SqliteDb& from, const std::string& part);

// Moves the whole log into the file and removes it: the file alone then holds everything, and the
// connection is out of WAL mode. StoreError busy when another connection reads. The caller owns the
// database.
void fold_log(SqliteDb& db);

// Gives `part` the name `target`, whose folder is synced. `replace` false and the name is taken:
// false, and nothing is changed.
[[nodiscard]] bool put_in_place(const std::string& part, const std::string& target, bool replace);
// Lets the two names change places in one step. False: the file system can't.
[[nodiscard]] bool exchange_names(const std::string& one, const std::string& other);
// Makes changes of names in the folder of `path` durable.
void sync_folder_of(const std::string& path);

}  // namespace aiq
