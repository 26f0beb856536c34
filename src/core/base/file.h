#pragma once
// Files and descriptors, with errors that name the path.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/expected.h"

namespace aiq {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

struct FileError {
  int code;             // errno
  std::string message;  // "cannot read /path: No such file or directory"
};

// The whole file ("-" = standard input), at most `max_bytes` (else EFBIG).
[[nodiscard]] Expected<std::string, FileError> read_file(const std::string& path,
                                                         std::size_t max_bytes);
// The folder of a path: "." for a bare name, "/" for what stands in the root.
[[nodiscard]] std::string folder_of(const std::string& path);
// Makes the folder and its parents, new ones with `mode`. Existing ones stay as they are.
[[nodiscard]] Expected<Done, FileError> make_folders(const std::string& path, unsigned mode);
// Writes all of `bytes`, over short writes and EINTR. Returns 0 or errno.
[[nodiscard]] int write_all(int fd, std::string_view bytes);
// The text of an errno, thread-safe.
[[nodiscard]] std::string errno_text(int code);

}  // namespace aiq
