#include "cli/table.h"

#include <algorithm>

#include "cli/text.h"
#include "core/base/check.h"

namespace aiq::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kReadable = 16;  // columns are left out before others are cut below this
constexpr std::size_t kSmallest = 4;   // a column is never cut below this

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t used = display_width(text);
  const std::string space(used < width ? width - used : 0, ' ');
  return right ? space + text : text + space;
}

}  // namespace

std::string toned(const std::string& text, Tone tone, bool color) {
  if (!color || tone == Tone::plain || text.empty()) return text;
  const char* code = "";
  switch (tone) {
    case Tone::good:
      code = "\x1b[32m";
      break;
    case Tone::bad:
      code = "\x1b[31m";
      break;
    case Tone::warn:
      code = "\x1b[33m";
      break;
    case Tone::faint:
      code = "\x1b[2m";
      break;
    case Tone::plain:
      break;
  }
  return code + text + "\x1b[0m";
}

Tone tone_of(const std::string& state) {
  if (state == "completed" || state == "ok") return Tone::good;
  if (state == "failed" || state == "dead_lettered" || state == "paused" || state == "open" ||
      state == "breaker_open" || state == "rejected") {
    return Tone::bad;
  }
  if (state == "retrying" || state == "unproven") return Tone::warn;
  return state == "cancelled" ? Tone::faint : Tone::plain;
}

Table::Table(std::vector<Column> columns, std::optional<std::size_t> width, bool color)
    : columns_(std::move(columns)), width_(width), color_(color) {
  for (const Column& column : columns_)
    widths_.push_back(display_width(column.title));
}

void Table::add(std::vector<Cell> row) {
  AIQ_CHECK(row.size() == columns_.size());
  for (Cell& cell : row)
    cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::size_t Table::total() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < widths_.size(); ++i)
    if (shown_[i]) sum += widths_[i] + (sum > 0 ? kGap : 0);
  return sum;
}

bool Table::says_nothing(std::size_t column) const {
  return std::all_of(rows_.begin(), rows_.end(), [&](const std::vector<Cell>& row) {
    const std::string& text = row[column].text;
    return text.empty() || text == "-" || text == "0" || text == "0.00";
  });
}

// Takes a column from the widest one that may be cut, not below `least` or its title. False: none.
bool Table::shrink(std::size_t least) {
  std::size_t widest = widths_.size();
  for (std::size_t i = 0; i < widths_.size(); ++i) {
    const std::size_t floor = std::max(least, display_width(columns_[i].title));
    if (!shown_[i] || !columns_[i].shrinks || widths_[i] <= floor) continue;
    if (widest == widths_.size() || widths_[i] > widths_[widest]) widest = i;
  }
  if (widest == widths_.size()) return false;
  --widths_[widest];
  return true;
}

void Table::fit() {
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths_[i] = std::max(widths_[i], display_width(row[i].text));
    }
  }
  shown_.assign(columns_.size(), true);
  if (!width_) return;
  for (std::size_t i = columns_.size(); i-- > 1 && total() > *width_;)
    shown_[i] = !says_nothing(i);
  while (total() > *width_ && shrink(kReadable)) {
  }
  for (std::size_t i = columns_.size(); i-- > 0 && total() > *width_;)
    if (columns_[i].extra) shown_[i] = false;
  // Numbers are never cut: when there is nothing else the line is longer.
  while (total() > *width_ && shrink(kSmallest)) {
  }
}

void Table::append_line(std::string& out, const std::vector<Cell>& row) const {
  std::string line;
  std::size_t end = 0;  // past the last character that is not padding
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!shown_[i]) continue;
    if (!line.empty()) line.append(kGap, ' ');
    const std::string text = columns_[i].shrinks ? cut(row[i].text, widths_[i]) : row[i].text;
    const std::string cell = padded(text, widths_[i], columns_[i].right);
    if (color_ && row[i].tone != Tone::plain && !text.empty()) {
      const std::size_t at = cell.find(text);
      line += cell.substr(0, at) + toned(text, row[i].tone, true) + cell.substr(at + text.size());
    } else {
      line += cell;
    }
    const std::size_t last = line.find_last_not_of(' ');
    end = last == std::string::npos ? 0 : last + 1;
  }
  out += line.substr(0, end);
  out += '\n';
}

std::string Table::take() {
  fit();
  std::string out;
  if (titled_ != shown_) {
    std::vector<Cell> titles;
    for (const Column& column : columns_)
      titles.emplace_back(column.title, Tone::faint);
    append_line(out, titles);
    titled_ = shown_;
  }
  for (const auto& row : rows_)
    append_line(out, row);
  rows_.clear();
  return out;
}

}  // namespace aiq::cli
