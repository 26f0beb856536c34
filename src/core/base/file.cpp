#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace aiq {
namespace {

FileError error_of(const char* action, const std::string& what, int code) {
  return {code, std::string("cannot ") + action + " " + what + ": " + errno_text(code)};
}

// Reads up to the end or one byte beyond `max_bytes`. Returns 0 or errno.
int read_all(int fd, std::size_t max_bytes, std::string& out) {
  std::array<char, 65536> chunk;
  while (out.size() <= max_bytes) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got == 0) return 0;
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    out.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return EFBIG;
}

int make_folder(const std::string& path, unsigned mode) {
  if (mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0) return 0;
  const int code = errno;
  struct stat info {};
  // Also when mkdir was not even allowed to try: a parent may be read-only and the folder there.
  if (stat(path.c_str(), &info) != 0) return code;
  return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
}

}  // namespace

void Fd::reset() noexcept {
  // Linux releases the number even when close() reports an error: never a second try.
  if (fd_ >= 0) (void)close(fd_);
  fd_ = -1;
}

Expected<std::string, FileError> read_file(const std::string& path, std::size_t max_bytes) {
  const bool standard_input = path == "-";
  const std::string what = standard_input ? "standard input" : path;
  Fd file;
  if (!standard_input) {
    file = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return Unexpected{error_of("read", what, errno)};
  }
  std::string out;
  const int code = read_all(standard_input ? STDIN_FILENO : file.get(), max_bytes, out);
  if (code != 0) return Unexpected{error_of("read", what, code)};
  return out;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Expected<Done, FileError> make_folders(const std::string& path, unsigned mode) {
  std::size_t end = 0;
  while (end < path.size()) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string folder = path.substr(0, end);
    if (const int code = make_folder(folder, mode)) {
      return Unexpected{error_of("make folder", folder, code)};
    }
  }
  return Done{};
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (wrote == 0) return EIO;  // no progress: an error rather than an endless loop
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

std::string errno_text(int code) {
  std::array<char, 128> buffer{};
  // The GNU form, which may return a constant text instead of filling the buffer.
  return strerror_r(code, buffer.data(), buffer.size());
}

}  // namespace aiq
