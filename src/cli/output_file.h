#pragma once
// A result file: written beside its place and put there whole, so that nobody reads half of one.

#include <string>
#include <string_view>

#include "core/base/file.h"

namespace aiq::cli {

// Throws CommandFailed, exit 8, when it can't be written.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // without commit(): removes what was written
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  // On the disk, and in its place. A pipe or a device was written directly.
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int code) const;
  void flush();

  std::string path_, beside_;  // beside_ "": written directly
  Fd fd_;
  std::string buffer_;
};

}  // namespace aiq::cli
