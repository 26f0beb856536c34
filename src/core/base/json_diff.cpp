#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/json_canonical.h"
#include "core/base/json_text.h"

namespace aiq {
namespace {

// Ends of strings and values in canonical text. Other text gives wrong spans, never one outside.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

std::size_t value_end(std::string_view text, std::size_t at) {
  int open = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = string_end(text, at);
      if (open == 0) return at;
      continue;
    }
    if (open == 0 && (c == ',' || c == '}' || c == ']')) return at;
    if (c == '{' || c == '[') ++open;
    if (c == '}' || c == ']') --open;
    ++at;
    if (open == 0 && (c == '}' || c == ']')) return at;
  }
  return at;
}

// The meaning of a string literal, quotes included, that has only canonical escapes.
std::string decode(std::string_view literal) {
  static constexpr std::string_view kLetters = "btnfr";
  static constexpr std::string_view kMeanings = "\b\t\n\f\r";
  const auto nibble = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 1; i + 1 < literal.size(); ++i) {
    if (literal[i] != '\\') {
      out += literal[i];
    } else if (const char c = literal[++i]; c == 'u' && i + 5 < literal.size()) {
      out += static_cast<char>(nibble(literal[i + 3]) * 16 + nibble(literal[i + 4]));
      i += 4;
    } else {
      const std::size_t letter = kLetters.find(c);
      out += letter == std::string_view::npos ? c : kMeanings[letter];
    }
  }
  return out;
}

// Walks the members of an object or the elements of an array.
class Reader {
 public:
  explicit Reader(std::string_view container) : text_(container), named_(container.front() == '{') {
    next();
  }

  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string_view value() const { return value_; }

  void next() {
    // at_ is the bracket or the comma before the next item.
    if (at_ + 1 >= text_.size() || text_[at_] == '}' || text_[at_] == ']' ||
        (at_ == 0 && (text_[1] == '}' || text_[1] == ']'))) {
      done_ = true;
      return;
    }
    std::size_t begin = at_ + 1;
    if (named_) {
      const std::size_t end = string_end(text_, begin);
      name_ = decode(text_.substr(begin, end - begin));
      begin = std::min(end + 1, text_.size());
    } else {
      name_ = std::to_string(index_++);
    }
    at_ = std::max(value_end(text_, begin), begin);
    value_ = text_.substr(begin, at_ - begin);
  }

 private:
  std::string_view text_;
  bool named_;
  bool done_ = false;
  std::size_t at_ = 0;
  std::size_t index_ = 0;
  std::string name_;
  std::string_view value_;
};

class Differ {
 public:
  explicit Differ(std::size_t limit) : limit_(limit) {}

  std::vector<std::string> run(std::string_view a, std::string_view b) {
    if (limit_ > 0) compare(a, b, 0);
    std::move(only_second_.begin(), only_second_.end(), std::back_inserter(found_));
    if (found_.size() > limit_) found_.resize(limit_);
    return std::move(found_);
  }

 private:
  void compare(std::string_view a, std::string_view b, int depth) {
    if (a == b || found_.size() >= limit_) return;
    const bool containers = !a.empty() && !b.empty() && a.front() == b.front() &&
                            (a.front() == '{' || a.front() == '[');
    if (!containers || depth >= kJsonMaxDepth) {
      found_.push_back(pointer_);
      return;
    }
    const bool ordered = a.front() == '[';  // by index, which both readers count up together
    Reader x(a);
    Reader y(b);
    while ((!x.done() || !y.done()) && found_.size() < limit_) {
      const bool both = !x.done() && !y.done() && (ordered || x.name() == y.name());
      if (both) {
        const std::size_t length = enter(x.name());
        compare(x.value(), y.value(), depth + 1);
        pointer_.resize(length);
        x.next();
        y.next();
      } else if (y.done() || (!x.done() && utf16_less(x.name(), y.name()))) {
        note(found_, x);
      } else {
        note(only_second_, y);
      }
    }
  }

  // Adds a reference token; returns the length to go back to.
  std::size_t enter(std::string_view name) {
    const std::size_t length = pointer_.size();
    pointer_ += '/';
    for (const char c : name) {
      if (c == '~') {
        pointer_ += "~0";
      } else if (c == '/') {
        pointer_ += "~1";
      } else {
        pointer_ += c;
      }
    }
    return length;
  }

  void note(std::vector<std::string>& list, Reader& reader) {
    const std::size_t length = enter(reader.name());
    if (list.size() < limit_) list.push_back(pointer_);
    pointer_.resize(length);
    reader.next();
  }

  std::size_t limit_;
  std::string pointer_;
  std::vector<std::string> found_;        // changed, or only in the first text
  std::vector<std::string> only_second_;  // only in the second text
};

}  // namespace

std::vector<std::string> differing_pointers(std::string_view a, std::string_view b,
                                            std::size_t limit) {
  return Differ(limit).run(a, b);
}

}  // namespace aiq
