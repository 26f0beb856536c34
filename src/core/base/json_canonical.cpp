#include "core/base/json_canonical.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/base/json_number.h"
#include "core/base/json_text.h"

namespace aiq {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Reads and prints in one pass. Each object is printed in the order of the input; when it closes,
// its members are put in order, as spans of the printed text. So there is no tree and no
// allocation per value: names and spans of all open objects share three growing buffers.
class Canonicalizer {
 public:
  Canonicalizer(std::string_view input, const std::vector<std::string_view>& drop)
      : begin_(input.data()), p_(begin_), end_(begin_ + input.size()), drop_(drop) {
    text_.reserve(input.size());
    members_.reserve(16);
    result_.members.reserve(16);
  }

  Expected<CanonicalJson, JsonError> run() {
    skip_space();
    result_.is_object = p_ < end_ && *p_ == '{';
    if (value(1)) {
      skip_space();
      if (p_ < end_) syntax("more text after the value");
    }
    if (error_) return Unexpected{std::move(*error_)};
    result_.text = std::move(text_);
    return std::move(result_);
  }

 private:
  // A member of an open object.
  struct Member {
    std::size_t name_begin, name_size;  // in names_, decoded
    std::size_t begin, end;             // in text_: "name":value
    std::size_t offset;                 // in the input
    bool dropped;
  };

  [[nodiscard]] std::size_t offset() const { return static_cast<std::size_t>(p_ - begin_); }

  bool fail(JsonError::Kind kind, std::string message) {
    error_ = JsonError{kind, offset(), std::move(message)};
    return false;
  }

  // At a byte that the grammar doesn't allow.
  bool syntax(const char* expectation) {
    if (p_ < end_ && utf8_length(p_, end_) == 0) {
      return fail(JsonError::Kind::invalid_utf8, "the text is not valid UTF-8");
    }
    return fail(JsonError::Kind::syntax,
                p_ < end_ ? expectation : "the text ends before the JSON value is complete");
  }

  void skip_space() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t'))
      ++p_;
  }

  bool take(char c) {
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }

  bool value(int depth) {
    if (p_ == end_) return syntax("");
    switch (*p_) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string(nullptr);
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        if (*p_ == '-' || is_digit(*p_)) return number();
        return syntax("expected a JSON value");
    }
  }

  bool word(std::string_view expected) {
    const std::string_view rest(p_, static_cast<std::size_t>(end_ - p_));
    if (!rest.starts_with(expected)) return syntax("expected true, false or null");
    text_ += expected;
    p_ += expected.size();
    return true;
  }

  bool digits() {
    if (p_ == end_ || !is_digit(*p_)) return syntax("expected a digit");
    while (p_ < end_ && is_digit(*p_))
      ++p_;
    return true;
  }

  bool number() {
    const char* const first = p_;
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    append_canonical_number(text_, {first, static_cast<std::size_t>(p_ - first)});
    return true;
  }

  bool array(int depth) {
    if (depth > kJsonMaxDepth) return too_deep();
    ++p_;
    text_ += '[';
    skip_space();
    if (take(']')) {
      text_ += ']';
      return true;
    }
    for (;;) {
      skip_space();
      if (!value(depth + 1)) return false;
      skip_space();
      if (take(']')) break;
      if (!take(',')) return syntax("expected ',' or ']' after an array element");
      text_ += ',';
    }
    text_ += ']';
    return true;
  }

  bool object(int depth) {
    if (depth > kJsonMaxDepth) return too_deep();
    ++p_;
    text_ += '{';
    const std::size_t first = members_.size();
    const std::size_t names = names_.size();
    skip_space();
    if (!take('}')) {
      for (;;) {
        skip_space();
        if (!member(depth)) return false;
        skip_space();
        if (take('}')) break;
        if (!take(',')) return syntax("expected ',' or '}' after an object member");
        text_ += ',';
      }
    }
    if (!sort_members(first)) return false;
    members_.resize(first);
    names_.resize(names);
    text_ += '}';
    return true;
  }

  bool member(int depth) {
    if (p_ == end_ || *p_ != '"') return syntax("expected a member name in quotes");
    Member m{names_.size(), 0, text_.size(), 0, offset(), false};
    if (!string(&names_)) return false;
    m.name_size = names_.size() - m.name_begin;
    skip_space();
    if (!take(':')) return syntax("expected ':' after a member name");
    text_ += ':';
    skip_space();
    const std::size_t value_begin = offset();
    if (!value(depth + 1)) return false;
    m.end = text_.size();
    if (depth == 1) {
      result_.members.push_back({std::string(name(m)), value_begin, offset()});
      m.dropped = std::find(drop_.begin(), drop_.end(), name(m)) != drop_.end();
    }
    members_.push_back(m);
    return true;
  }

  [[nodiscard]] std::string_view name(const Member& m) const {
    return std::string_view(names_).substr(m.name_begin, m.name_size);
  }

  // Puts the members from `first` on, the last thing printed, into canonical order.
  bool sort_members(std::size_t first) {
    const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = members_.end();
    if (begin == end) return true;
    bool as_is = !begin->dropped;
    for (auto m = begin + 1; m < end && as_is; ++m) {
      as_is = !m->dropped && utf16_less(name(m[-1]), name(*m));
    }
    if (as_is) return true;

    const std::size_t body = begin->begin;
    std::sort(begin, end, [this](const Member& a, const Member& b) {
      if (name(a) != name(b)) return utf16_less(name(a), name(b));
      return a.offset < b.offset;
    });
    const auto twin = std::adjacent_find(
        begin, end, [this](const Member& a, const Member& b) { return name(a) == name(b); });
    if (twin != end) {
      p_ = begin_ + twin[1].offset;
      return fail(JsonError::Kind::duplicate_member, "an object has two members of the same name");
    }
    scratch_.clear();
    for (auto m = begin; m < end; ++m) {
      if (m->dropped) continue;
      if (!scratch_.empty()) scratch_ += ',';
      scratch_.append(text_, m->begin, m->end - m->begin);
    }
    text_.resize(body);
    text_ += scratch_;
    return true;
  }

  bool too_deep() {
    return fail(JsonError::Kind::too_deep,
                "arrays and objects are nested deeper than " + std::to_string(kJsonMaxDepth));
  }

  // At the opening quote. Prints the string and, if given, appends its decoded form to `decoded`.
  bool string(std::string* decoded) {
    ++p_;
    text_ += '"';
    for (;;) {
      const char* const special = find_special(p_, end_);
      text_.append(p_, special);
      if (decoded != nullptr) decoded->append(p_, special);
      p_ = special;
      if (p_ == end_) return syntax("");
      if (*p_ == '"') break;
      if (*p_ == '\\') {
        if (!escape(decoded)) return false;
      } else {
        return syntax("control characters in strings must be escaped");
      }
    }
    ++p_;
    text_ += '"';
    return true;
  }

  bool escape(std::string* decoded) {
    const std::optional<char32_t> c = escaped_character();
    if (!c) return false;
    if (*c < 0x20U || *c == '"' || *c == '\\') {
      append_escape(text_, static_cast<unsigned char>(*c));
    } else {
      append_utf8(text_, *c);
    }
    if (decoded != nullptr) append_utf8(*decoded, *c);
    return true;
  }

  // At the backslash. Leaves p_ behind the escape, or behind both of a surrogate pair.
  std::optional<char32_t> escaped_character() {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (end_ - p_ >= 2 && p_[1] != 'u') {
      const std::size_t i = kLetters.find(p_[1]);
      if (i == std::string_view::npos) {
        syntax("a backslash must be followed by one of \"\\/bfnrtu");
        return std::nullopt;
      }
      p_ += 2;
      return static_cast<char32_t>(kMeanings[i]);
    }
    const std::optional<char32_t> unit = code_unit(p_);
    if (!unit) {
      if (end_ - p_ < 6) p_ = end_;
      syntax("\\u must be followed by four hexadecimal digits");
      return std::nullopt;
    }
    if (*unit < 0xD800U || *unit > 0xDFFFU) {
      p_ += 6;
      return unit;
    }
    const std::optional<char32_t> low = code_unit(p_ + 6);
    if (*unit > 0xDBFFU || !low || *low < 0xDC00U || *low > 0xDFFFU) {
      fail(JsonError::Kind::lone_surrogate, "an escape is half of a surrogate pair");
      return std::nullopt;
    }
    p_ += 12;
    return 0x10000U + ((*unit - 0xD800U) << 10U) + (*low - 0xDC00U);
  }

  // The value of "\uXXXX" at `p`, if that is what stands there.
  [[nodiscard]] std::optional<char32_t> code_unit(const char* p) const {
    if (end_ - p < 6 || p[0] != '\\' || p[1] != 'u') return std::nullopt;
    char32_t unit = 0;
    for (int i = 2; i < 6; ++i) {
      const char c = p[i];
      const char lower = static_cast<char>(c | 0x20);
      if (is_digit(c)) {
        unit = unit * 16U + static_cast<char32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        unit = unit * 16U + static_cast<char32_t>(lower - 'a' + 10);
      } else {
        return std::nullopt;
      }
    }
    return unit;
  }

  const char* begin_;
  const char* p_;
  const char* end_;
  const std::vector<std::string_view>& drop_;
  std::string text_;             // the canonical text so far
  std::string names_;            // decoded names of all open objects
  std::vector<Member> members_;  // members of all open objects
  std::string scratch_;
  CanonicalJson result_;
  std::optional<JsonError> error_;
};

}  // namespace

Expected<CanonicalJson, JsonError> canonicalize_json(std::string_view input,
                                                     const std::vector<std::string_view>& drop) {
  return Canonicalizer(input, drop).run();
}

}  // namespace aiq
