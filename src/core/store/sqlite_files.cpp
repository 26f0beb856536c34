#include "core/store/sqlite_files.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/base/file.h"

namespace aiq {
namespace {

StoreError::Kind kind_of_errno(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return StoreError::Kind::full;
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR:
    case ENOTDIR:
      return StoreError::Kind::readonly;
    case ENOENT:
      return StoreError::Kind::missing;
    default:
      return StoreError::Kind::io;
  }
}

std::optional<gid_t> group_id(const std::string& group, const std::string& path) {
  if (group.empty()) return std::nullopt;
  std::array<char, 16384> buffer;
  struct group entry {};
  struct group* found = nullptr;
  (void)getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    throw StoreError(StoreError::Kind::io,
                     path + ": there is no group '" + group + "' (socket_group)");
  }
  return found->gr_gid;
}

// Only what belongs to us can be changed, and only then it is ours to change.
void set_access(const std::string& path, mode_t mode, std::optional<gid_t> gid) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || info.st_uid != geteuid()) return;
  if (gid && info.st_gid != *gid && chown(path.c_str(), static_cast<uid_t>(-1), *gid) != 0) {
    throw_file_error(path, "give to its group", errno);
  }
  if ((info.st_mode & 07777) != mode && chmod(path.c_str(), mode) != 0) {
    throw_file_error(path, "set the mode of", errno);
  }
}

// What a file is by its first bytes, which SQLite keeps there (https://sqlite.org/fileformat.html):
// the title, at 28 the number of pages, at 40 the schema's counter, at 68 the application's id.
constexpr std::size_t kHeaderBytes = 100;

std::uint32_t big_endian(const unsigned char* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         std::uint32_t{at[3]};
}

FileKind kind_of_bytes(int fd) {
  std::array<unsigned char, kHeaderBytes> header{};
  const ssize_t got = pread(fd, header.data(), header.size(), 0);
  if (got == 0) return FileKind::empty;
  constexpr std::string_view kTitle("SQLite format 3", 16);  // with its zero
  if (got != static_cast<ssize_t>(header.size()) ||
      !std::equal(kTitle.begin(), kTitle.end(), header.begin())) {
    return FileKind::foreign;
  }
  const std::uint32_t application = big_endian(&header[68]);
  if (application == kApplicationId) return FileKind::ours;
  // A database without a table: the first ones may still stand in its log.
  const bool bare = big_endian(&header[28]) <= 1 && big_endian(&header[40]) == 0;
  return application == 0 && bare ? FileKind::ours : FileKind::foreign;
}

// Throws unless there is a regular file or none. Before it is opened: of a device or a pipe, that
// alone may change something.
void check_kind(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return;
  if (S_ISDIR(info.st_mode)) throw_file_error(path, "open", EISDIR);
  throw StoreError(StoreError::Kind::io, path + " is not a regular file");
}

// Whether the folder holds nothing but this database and what stands beside it. Another one is
// its owner's to open: it may be somebody's home.
bool holds_only(const std::string& folder, const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().compare(0, name.size(), name) != 0) return false;
  }
  return !error;
}

}  // namespace

void throw_file_error(const std::string& path, const char* action, int code) {
  throw StoreError(kind_of_errno(code),
                   std::string("cannot ") + action + " " + path + ": " + errno_text(code));
}

bool has_content(const std::string& path) {
  check_kind(path);
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) return info.st_size > 0;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw_file_error(path, "open", errno);
}

FileKind kind_of_file(const std::string& path) {
  check_kind(path);
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return FileKind::absent;
  if (!file) throw_file_error(path, "open", errno);
  return kind_of_bytes(file.get());
}

void prepare_files(const std::string& path, const StoreOptions& options) {
  const std::optional<gid_t> gid = group_id(options.group, path);
  const mode_t mode = gid ? 0640 : 0600;
  check_kind(path);
  const std::string folder = folder_of(path);
  if (const auto made = make_folders(folder, gid ? 0750 : 0700); !made) {
    throw StoreError(kind_of_errno(made.error().code), made.error().message);
  }
  {
    const Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, mode));
    if (!file) throw_file_error(path, "open", errno);
    struct stat info {};
    if (fstat(file.get(), &info) == 0 && info.st_nlink > 1) {
      throw StoreError(StoreError::Kind::io,
                       path + " has a second name (a hard link): its log and lock would be two");
    }
    if (kind_of_bytes(file.get()) == FileKind::foreign) {
      throw StoreError(StoreError::Kind::corrupt, path + " is no database of aiq");
    }
  }
  if (gid && holds_only(folder, path)) set_access(folder, 0750, gid);
  secure_files(path, options);
}

void secure_files(const std::string& path, const StoreOptions& options) {
  const std::optional<gid_t> gid = group_id(options.group, path);
  for (const char* suffix : {"", "-wal", "-shm", ".lock"})
    set_access(path + suffix, gid ? 0640 : 0600, gid);
}

void use_wal(SqliteDb& db) {
  if (db.in_memory()) return;
  const std::string mode = db.pragma("PRAGMA journal_mode = WAL");
  if (mode != "wal") {
    throw StoreError(
        StoreError::Kind::io,
        db.path() + ": its file system can't hold a write-ahead log (journal mode " + mode + ")");
  }
}

}  // namespace aiq
