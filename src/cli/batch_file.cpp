#include "cli/batch_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cli/output.h"
#include "core/base/check.h"
#include "core/base/sha256.h"

namespace aiq::cli {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10U;
constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

[[noreturn]] void fail_read(const std::string& path, int code) {
  throw CommandFailed(
      {Exit::usage, "cannot_read", "--batch: cannot read " + path + ": " + errno_text(code), ""});
}

[[noreturn]] void fail_spool(int code) {
  throw CommandFailed({Exit::storage, "cannot_spool",
                       "cannot copy the input to a temporary file: " + errno_text(code),
                       "set TMPDIR to a folder with space, or save the input to a file first"});
}

std::size_t read_some(int fd, char* into, std::size_t most, const std::string& path) {
  for (;;) {
    const ssize_t n = ::read(fd, into, most);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR) fail_read(path, errno);
  }
}

// A file without a name, gone with the process.
Fd temporary_file() {
  const char* folder = std::getenv("TMPDIR");
  std::string path = folder != nullptr && *folder != '\0' ? folder : "/tmp";
  path += "/aiq-batch-XXXXXX";
  Fd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd) fail_spool(errno);
  if (::unlink(path.c_str()) != 0) fail_spool(errno);
  return fd;
}

// Inflates a gzip file of one or more members.
class Gunzip {
 public:
  Gunzip() {
    constexpr int kGzipWindow = 15 + 16;  // the largest window; gzip and nothing else
    AIQ_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK);
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  void feed(std::string_view bytes) {
    // zlib does not write to its input.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
  }
  [[nodiscard]] bool hungry() const { return stream_.avail_in == 0; }
  [[nodiscard]] bool between_members() const { return ended_; }

  // Bytes written to `into`; `damage` says what is wrong with the data.
  std::size_t take(char* into, std::size_t most, std::string& damage) {
    stream_.next_out = reinterpret_cast<Bytef*>(into);
    stream_.avail_out = static_cast<uInt>(most);
    while (stream_.avail_out > 0 && stream_.avail_in > 0) {
      if (ended_ && !begin_member()) break;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        ended_ = true;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        damage = "the gzip data is damaged";
        break;
      } else if (code == Z_BUF_ERROR) {
        break;
      }
    }
    return most - stream_.avail_out;
  }

 private:
  // Zero bytes after a member are padding, which tape and block devices add.
  bool begin_member() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
    if (stream_.avail_in == 0) return false;
    ended_ = false;
    return inflateReset(&stream_) == Z_OK;
  }

  z_stream stream_{};
  bool ended_ = false;
};

}  // namespace

struct BatchFile::Impl {
  std::string path;
  std::size_t max_line;
  Fd owned;
  int fd = -1;
  bool seekable = false;
  off_t base = 0;  // where the file began for us
  std::int64_t size = 0, position = 0;

  std::vector<char> raw = std::vector<char>(kChunk);
  std::vector<char> plain;  // of gzip only
  std::unique_ptr<Gunzip> gunzip;
  std::string_view ready;  // decompressed, not looked at yet
  bool begun = false, at_end = false;
  std::string line, damage;
  std::int64_t number = 0;

  void open(bool twice);
  void spool();
  void start();
  bool refill();
  std::string_view read_raw();
};

void BatchFile::Impl::open(bool twice) {
  if (path == "-") {
    fd = STDIN_FILENO;
  } else {
    owned = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!owned) fail_read(path, errno);
    fd = owned.get();
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_read(path, errno);
  if (S_ISDIR(info.st_mode)) fail_read(path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    if (twice) spool();
    return;
  }
  base = std::max<off_t>(0, ::lseek(fd, 0, SEEK_CUR));
  size = static_cast<std::int64_t>(info.st_size - base);
  seekable = true;
}

void BatchFile::Impl::spool() {
  Fd copy = temporary_file();
  for (;;) {
    const std::size_t n = read_some(fd, raw.data(), raw.size(), path);
    if (n == 0) break;
    if (const int code = write_all(copy.get(), {raw.data(), n}); code != 0) fail_spool(code);
    size += static_cast<std::int64_t>(n);
  }
  owned = std::move(copy);
  fd = owned.get();
  seekable = true;
  if (::lseek(fd, 0, SEEK_SET) != 0) fail_spool(errno);
}

std::string_view BatchFile::Impl::read_raw() {
  const std::size_t n = read_some(fd, raw.data(), raw.size(), path);
  position += static_cast<std::int64_t>(n);
  return {raw.data(), n};
}

// Looks at the first bytes: is it gzip?
void BatchFile::Impl::start() {
  begun = true;
  std::size_t have = 0;
  while (have < kGzipMagic.size()) {
    const std::size_t n = read_some(fd, raw.data() + have, raw.size() - have, path);
    if (n == 0) break;
    have += n;
  }
  position += static_cast<std::int64_t>(have);
  ready = {raw.data(), have};
  if (!ready.starts_with(kGzipMagic)) return;
  gunzip = std::make_unique<Gunzip>();
  plain.resize(kChunk);
  gunzip->feed(ready);
  ready = {};
}

// More into `ready`, which is empty; false at the end.
bool BatchFile::Impl::refill() {
  if (at_end) return false;
  if (!gunzip) {
    ready = read_raw();
    at_end = ready.empty();
    return !at_end;
  }
  for (;;) {
    if (gunzip->hungry()) {
      const std::string_view bytes = read_raw();
      if (bytes.empty()) {
        at_end = true;
        if (!gunzip->between_members()) damage = "the gzip data is cut short";
        return false;
      }
      gunzip->feed(bytes);
    }
    const std::size_t n = gunzip->take(plain.data(), plain.size(), damage);
    ready = {plain.data(), n};
    if (n == 0 && !gunzip->hungry() && damage.empty()) damage = "the gzip data is damaged";
    if (!damage.empty()) at_end = true;
    if (n > 0) return true;
    if (at_end) return false;
  }
}

BatchFile::BatchFile(const std::string& path, bool twice, std::size_t max_line_bytes)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->max_line = max_line_bytes;
  impl_->open(twice);
}

BatchFile::~BatchFile() = default;

bool BatchFile::can_rewind() const {
  return impl_->seekable;
}

std::string BatchFile::fingerprint(std::string_view prefix) {
  Sha256 hash;
  hash.update_field(prefix);
  rewind();
  for (;;) {
    const std::string_view bytes = impl_->read_raw();
    if (bytes.empty()) break;
    hash.update(bytes);
  }
  rewind();
  return hash.hex();
}

void BatchFile::rewind() {
  Impl& f = *impl_;
  if (::lseek(f.fd, f.base, SEEK_SET) != f.base) fail_read(f.path, errno);
  f.position = 0;
  f.gunzip.reset();
  f.ready = {};
  f.begun = f.at_end = false;
  f.damage.clear();
  f.line.clear();
  f.number = 0;
}

bool BatchFile::next(FileLine& out) {
  Impl& f = *impl_;
  if (!f.begun) f.start();
  f.line.clear();
  bool any = false;
  out.too_long = false;
  for (;;) {
    if (f.ready.empty() && !f.refill()) {
      // The last line may end with the file; not with data that is cut short.
      if (!any || !f.damage.empty()) return false;
      break;
    }
    any = true;
    const std::size_t end = f.ready.find('\n');
    const std::string_view piece = f.ready.substr(0, end);
    if (f.line.size() + piece.size() > f.max_line) {
      out.too_long = true;
      f.line.clear();
    }
    if (!out.too_long) f.line += piece;
    f.ready.remove_prefix(end == std::string_view::npos ? f.ready.size() : end + 1);
    if (end != std::string_view::npos) break;
  }
  out.number = ++f.number;
  out.text = f.line;
  if (out.number == 1 && out.text.starts_with(kByteOrderMark))
    out.text.remove_prefix(kByteOrderMark.size());
  return true;
}

const std::string& BatchFile::damage() const {
  return impl_->damage;
}

std::int64_t BatchFile::position() const {
  return impl_->position;
}

std::int64_t BatchFile::size() const {
  return impl_->size;
}

}  // namespace aiq::cli
