#pragma once
// The files of a database: made with the right modes, and errors about them.

#include <string>

#include "core/store/sqlite_db.h"
#include "core/store/store.h"

namespace aiq {

// The folder that holds `path`; "." when it names none.
[[nodiscard]] std::string folder_of(const std::string& path);
// StoreError by errno. `action`: "open", "create", "write".
[[noreturn]] void throw_file_error(const std::string& path, const char* action, int code);

// Makes folder and file when absent (an empty file: SQLite makes the rest) and sets the modes of
// the file and of those beside it (-wal, -shm, .lock): 0600, or 0640 and the group. A new folder is
// 0700; with a group, one that holds nothing else becomes 0750.
void prepare_files(const std::string& path, const StoreOptions& options);

// Throws unless the connection is in WAL mode afterwards. Nothing for ":memory:".
void use_wal(SqliteDb& db);

}  // namespace aiq
