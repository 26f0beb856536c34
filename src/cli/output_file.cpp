#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/output.h"

namespace aiq::cli {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10U;
constexpr mode_t kNewFileMode = 0666;

// Where a link leads, so that the file it names is replaced and not the link.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? std::string(real.get()) : path;
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(resolved(path)) {
  struct stat there {};
  const bool exists = ::stat(path_.c_str(), &there) == 0;
  if (exists && !S_ISREG(there.st_mode)) {
    fd_ = Fd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd_) fail("cannot write", errno);
    return;
  }
  beside_ = path_ + ".XXXXXX";
  fd_ = Fd(::mkostemp(beside_.data(), O_CLOEXEC));
  if (!fd_) {
    const int code = errno;
    beside_.clear();
    fail("cannot write", code);
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const mode_t mode = exists ? there.st_mode & 07777U : kNewFileMode & ~mask;
  if (::fchmod(fd_.get(), mode) != 0) fail("cannot write", errno);
}

OutputFile::~OutputFile() {
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

void OutputFile::fail(const char* what, int code) const {
  throw CommandFailed({Exit::storage, "output_failed",
                       std::string(what) + " " + path_ + ": " + errno_text(code),
                       "what was there before is unchanged"});
}

void OutputFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) flush();
}

void OutputFile::flush() {
  const int code = write_all(fd_.get(), buffer_);
  buffer_.clear();
  if (code != 0) fail("cannot write", code);
}

void OutputFile::commit() {
  flush();
  if (beside_.empty()) return;
  if (::fsync(fd_.get()) != 0) fail("cannot write", errno);
  if (std::rename(beside_.c_str(), path_.c_str()) != 0) fail("cannot replace", errno);
  beside_.clear();
}

}  // namespace aiq::cli
