#pragma once
// The files of a database: made with the right modes, and errors about them.

#include <cstdint>
#include <string>

#include "core/store/sqlite_db.h"
#include "core/store/store.h"

namespace aiq {

// "aiq" and a zero: tells our files from those of other programs.
inline constexpr std::uint32_t kApplicationId = 0x61697100;

// StoreError by errno. `action`: "open", "create", "write".
[[noreturn]] void throw_file_error(const std::string& path, const char* action, int code);

// False: there is no file, or an empty one. StoreError as kind_of_file(). Opens nothing.
[[nodiscard]] bool has_content(const std::string& path);

enum class FileKind {
  absent,
  empty,
  ours,     // a database of aiq, or one without a table and without the name of another program
  foreign,  // anything else
};
// By the first bytes. Throws StoreError: not a regular file (io; a folder: readonly), or it can't
// be read. Not while this process has a connection to the file, see prepare_files().
[[nodiscard]] FileKind kind_of_file(const std::string& path);

// Makes folder and file when absent (an empty file: SQLite makes the rest) and secures the files. A
// new folder is 0700; with a group, one that holds nothing else becomes 0750. What is not a regular
// file (io) and what is neither empty nor a database of aiq (corrupt) is refused and stays as it
// is, mode and owner included. Only before SQLite opens the file in this process: closing another
// descriptor of it drops the process's POSIX locks on it, and the next program that closes the file
// would delete the log that we write to.
void prepare_files(const std::string& path, const StoreOptions& options);
// Sets the modes of the file and of those beside it (-wal, -shm, .lock): 0600, or 0640 and the
// group. By path; opens nothing, so it may follow after SQLite has the file.
void secure_files(const std::string& path, const StoreOptions& options);

// Throws unless the connection is in WAL mode afterwards. Nothing for ":memory:".
void use_wal(SqliteDb& db);

}  // namespace aiq
