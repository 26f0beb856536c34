#pragma once
// A file read line by line, however large it is.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace aiq::cli {

class LineReader {
 public:
  // `path`: "-" = standard input. Can't be opened: CommandFailed, exit 2, naming `what`.
  LineReader(const std::string& what, const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line without its end ("\n" or "\r\n") and, of the first, without a byte order mark.
  // False: there is none. Of a line above kMaxBytes only the beginning is kept, see too_long().
  // An error while reading: CommandFailed, exit 2.
  bool next(std::string& line);
  [[nodiscard]] bool too_long() const { return too_long_; }
  [[nodiscard]] std::int64_t number() const { return number_; }  // of the last line, from 1

  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

 private:
  bool fill();

  std::string what_, path_;
  int fd_ = -1;
  std::unique_ptr<char[]> buffer_;
  std::size_t at_ = 0, size_ = 0;
  std::int64_t number_ = 0;
  bool too_long_ = false;
};

}  // namespace aiq::cli
