#include "cli/batch_slice.h"

#include <algorithm>

#include "core/base/json_canonical.h"

namespace aiq::cli {
namespace {

// One slice is one transaction of the writer: leases and answers go in between.
constexpr std::size_t kSliceLines = 512;
// Escaped it has at most twice as many bytes, which the daemon always takes.
constexpr std::size_t kSliceBytes = std::size_t{384} << 10U;

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r';
  });
}

}  // namespace

bool BatchSlicer::is_full_for(const FileLine& line) const {
  return lines_.size() + refused_.size() >= kSliceLines ||
         (bytes_ > 0 && bytes_ + line.text.size() > kSliceBytes);
}

void BatchSlicer::refuse(std::int64_t line, const char* code, const std::string& message) {
  refused_.push_back({line, code, message});
}

void BatchSlicer::add(const FileLine& line) {
  last_ = line.number;
  if (line.too_long) {
    refuse(line.number, "too_large",
           "the line has more than " + std::to_string(max_line_bytes_) + " bytes");
  } else if (is_blank(line.text)) {
    return;
  } else if (!is_valid_utf8(line.text)) {
    refuse(line.number, "invalid_utf8", "the line is not valid UTF-8");
  } else if (has_control_character(line.text)) {
    refuse(line.number, "invalid_json_line",
           "the line has a control character that is not escaped");
  } else {
    lines_.push_back({line.number, line.text});
    bytes_ += line.text.size();
  }
}

void BatchSlicer::begin_after(std::int64_t last) {
  first_ = last + 1;
  last_ = last;
  bytes_ = 0;
  lines_ = Json::array();
  refused_ = Json::array();
}

Json BatchSlicer::take() {
  Json out = {{"first", first_}, {"last", last_}};
  out["lines"] = std::move(lines_);
  out["refused"] = std::move(refused_);
  begin_after(last_);
  return out;
}

}  // namespace aiq::cli
