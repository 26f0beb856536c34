#include "core/store/owner_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "core/base/file.h"
#include "core/store/store_error.h"

namespace aiq {
namespace {

constexpr std::size_t kHolderTextMax = 4096;

std::string lock_path(const std::string& db_path) {
  return db_path + ".lock";
}

[[noreturn]] void throw_lock_error(const std::string& path, int code) {
  const bool denied = code == EACCES || code == EPERM || code == EROFS || code == EISDIR;
  throw StoreError(denied ? StoreError::Kind::readonly : StoreError::Kind::io,
                   "cannot open the lock file " + path + ": " + errno_text(code));
}

void make_folder_of(const std::string& path) {
  if (const auto made = make_folders(folder_of(path), 0700); !made) {
    throw_lock_error(path, made.error().code);
  }
}

bool is_alive(std::int64_t pid) {
  return kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
}

}  // namespace

std::optional<OwnerLock> OwnerLock::try_acquire(const std::string& db_path,
                                                const std::string& program) {
  const std::string path = lock_path(db_path);
  // No lock beside a device or a pipe.
  struct stat info {};
  if (stat(db_path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    throw StoreError(StoreError::Kind::io, db_path + " is not a regular file");
  }
  make_folder_of(path);
  // Never removed: who waits on a file that was replaced would own it beside the new owner.
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) throw_lock_error(path, errno);
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) throw_lock_error(path, errno);
  }
  const std::string text = std::to_string(getpid()) + " " + program + "\n";
  // For messages only: that it can't be written on a full disk must not keep the owner out.
  if (ftruncate(fd.get(), 0) == 0) (void)write_all(fd.get(), text);
  return OwnerLock(std::move(fd));
}

std::optional<OwnerLock::Holder> OwnerLock::holder(const std::string& db_path) {
  const auto text = read_file(lock_path(db_path), kHolderTextMax);
  if (!text) return std::nullopt;
  Holder holder;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, holder.pid);
  if (error != std::errc() || holder.pid <= 0 || rest == end || *rest != ' ') return std::nullopt;
  holder.program.assign(rest + 1, end);
  while (!holder.program.empty() && holder.program.back() == '\n')
    holder.program.pop_back();
  // The text outlives its writer; asking the lock itself could make another's attempt fail.
  if (!is_alive(holder.pid)) return std::nullopt;
  return holder;
}

}  // namespace aiq
