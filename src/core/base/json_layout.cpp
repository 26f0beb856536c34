#include "core/base/json_layout.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace aiq {
namespace {

// Deeper levels stay here: a text of nothing but brackets must not grow with its square.
constexpr std::size_t kDepthShown = 64;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

class Indenter {
 public:
  explicit Indenter(std::string_view text) : text_(text) { out_.reserve(text.size() * 2); }

  std::string run() {
    for (; at_ < text_.size(); ++at_)
      token(text_[at_]);
    return std::move(out_);
  }

 private:
  void token(char c) {
    if (is_space(c)) return;
    if (c == '"') {
      string();
    } else if (c == '{' || c == '[') {
      open(c);
    } else if (c == '}' || c == ']') {
      if (depth_ > 0) --depth_;
      new_line();
      out_ += c;
    } else if (c == ',') {
      out_ += c;
      new_line();
    } else if (c == ':') {
      out_ += ": ";
    } else {
      out_ += c;
    }
  }

  void string() {
    const std::size_t begin = at_;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    out_ += text_.substr(begin, at_ + 1 - begin);
  }

  void open(char c) {
    out_ += c;
    std::size_t next = at_ + 1;
    while (next < text_.size() && is_space(text_[next]))
      ++next;
    if (next < text_.size() && (text_[next] == '}' || text_[next] == ']')) {
      out_ += text_[next];
      at_ = next;
      return;
    }
    ++depth_;
    new_line();
  }

  void new_line() {
    out_ += '\n';
    out_.append(2 * std::min(depth_, kDepthShown), ' ');
  }

  std::string_view text_;
  std::size_t at_ = 0, depth_ = 0;
  std::string out_;
};

}  // namespace

std::string one_line_json(std::string_view text) {
  // Inside of strings they can't stand unescaped.
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c != '\r' && c != '\n') out += c;
  }
  return out;
}

std::string indented_json(std::string_view text) {
  return Indenter(text).run();
}

}  // namespace aiq
