#include "cli/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/values.h"
#include "core/base/file.h"

namespace aiq::cli {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

LineReader::LineReader(const std::string& what, const std::string& path)
    : what_(what), path_(path), buffer_(new char[kBufferBytes]) {
  fd_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    fail_usage("cannot_read", what + ": cannot read " + path + ": " + errno_text(errno), "");
  }
}

LineReader::~LineReader() {
  if (fd_ > STDIN_FILENO) ::close(fd_);
}

bool LineReader::fill() {
  for (;;) {
    const ssize_t got = ::read(fd_, buffer_.get(), kBufferBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      fail_usage("cannot_read", what_ + ": cannot read " + path_ + ": " + errno_text(errno), "");
    }
    at_ = 0;
    size_ = static_cast<std::size_t>(got);
    return got > 0;
  }
}

bool LineReader::next(std::string& line) {
  line.clear();
  too_long_ = false;
  bool any = false;
  for (;;) {
    if (at_ == size_ && !fill()) break;
    any = true;
    const char* begin = buffer_.get() + at_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', size_ - at_));
    const std::size_t count = end != nullptr ? static_cast<std::size_t>(end - begin) : size_ - at_;
    const std::size_t room = kMaxBytes - line.size();
    if (count > room) too_long_ = true;
    line.append(begin, count > room ? room : count);
    at_ += end != nullptr ? count + 1 : count;
    if (end != nullptr) break;
  }
  if (!any) return false;
  ++number_;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (number_ == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  return true;
}

}  // namespace aiq::cli
