#pragma once
// A file of requests, line by line: plain or gzip (told by its first bytes), from a file, a pipe or
// standard input. Holds one line and two buffers, however long the file is.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/file.h"

namespace aiq::cli {

struct FileLine {
  std::int64_t number = 0;  // in the file as it reads after decompression, from 1
  std::string_view text;    // until the next call; without its line end
  bool too_long = false;    // `text` is empty: it was not kept
};

class BatchFile {
 public:
  // "-" = standard input. `twice`: it will be read more than once; what is no regular file is then
  // copied to an unnamed temporary file first. CommandFailed, exit 2, when it can't be read.
  BatchFile(const std::string& path, bool twice, std::size_t max_line_bytes);
  ~BatchFile();
  BatchFile(const BatchFile&) = delete;
  BatchFile& operator=(const BatchFile&) = delete;

  [[nodiscard]] bool can_rewind() const;
  // Hex SHA-256 over `prefix` and the bytes as they are in the file. Needs can_rewind().
  [[nodiscard]] std::string fingerprint(std::string_view prefix);
  // To the first line. Needs can_rewind().
  void rewind();

  // False at the end. A byte order mark at the beginning is no part of the first line.
  [[nodiscard]] bool next(FileLine& line);
  // Why the end is not the end of the file: a sentence about the gzip data; "" = it is. What stood
  // in the line that was cut is left out.
  [[nodiscard]] const std::string& damage() const;

  // For a progress line: bytes read, and of how many; 0 = not known.
  [[nodiscard]] std::int64_t position() const;
  [[nodiscard]] std::int64_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace aiq::cli
