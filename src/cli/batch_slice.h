#pragma once
// Lines of a batch file, collected for one operation. What can't stand in a JSON text, or is longer
// than any request, is refused here; everything else is judged where the line goes in.

#include "cli/batch_file.h"
#include "core/ops/op.h"

namespace aiq::cli {

class BatchSlicer {
 public:
  explicit BatchSlicer(std::size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  // Whether a slice must go out before `line` comes in: it holds enough.
  [[nodiscard]] bool is_full_for(const FileLine& line) const;
  void add(const FileLine& line);
  // Lines up to `last` are in already.
  void begin_after(std::int64_t last);

  [[nodiscard]] bool empty() const { return last_ < first_; }
  [[nodiscard]] std::int64_t last() const { return last_; }
  // {"first","last","lines","refused"} of the slice; the next one begins behind it.
  [[nodiscard]] Json take();

 private:
  void refuse(std::int64_t line, const char* code, const std::string& message);

  std::size_t max_line_bytes_;
  std::int64_t first_ = 1, last_ = 0;
  std::size_t bytes_ = 0;
  Json lines_ = Json::array(), refused_ = Json::array();
};

}  // namespace aiq::cli
