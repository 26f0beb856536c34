#include "core/base/credential_scan.h"

#include <algorithm>
#include <cstddef>

#include "core/base/redact.h"

namespace aiq {
namespace {

constexpr std::size_t kMinKeyBytes = 6;  // after "sk-"; "sk-learn" is a word

bool is_alnum(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
}

bool is_key_char(char c) {
  return is_alnum(c) || c == '-' || c == '_';
}

// b64token of RFC 6750, and what percent-encoding makes of it.
bool is_token_char(char c) {
  return is_alnum(c) || std::string_view("-._~+/=%").find(c) != std::string_view::npos;
}

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;  // == begin: nothing to hide
};

class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  std::string run() {
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = 0; at < text_.size(); ++at) {
      const Span found = find_at(at);
      if (found.begin == found.end) continue;
      out += text_.substr(done, found.begin - done);
      out += kRedacted;
      done = found.end;
      at = found.end - 1;
    }
    out += text_.substr(done);
    return out;
  }

 private:
  // What begins at `at` with a telling word.
  [[nodiscard]] Span find_at(std::size_t at) const {
    switch (text_[at] | 0x20) {
      case 'a': {
        if (is_word(at, "authorization")) return named_value(at + 13, true);
        if (is_word(at, "api-key")) return named_value(at + 7, false);
        return {};
      }
      case 'b':
        return begins_word(at) && is_word(at, "bearer") ? bearer(at + 6) : Span{};
      case 's':
        return begins_word(at) && text_.substr(at, 3) == "sk-" ? key(at) : Span{};
      default:
        return {};
    }
  }

  [[nodiscard]] char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  [[nodiscard]] bool is_word(std::size_t i, std::string_view lower_case) const {
    return text_.size() - i >= lower_case.size() &&
           std::equal(lower_case.begin(), lower_case.end(), text_.begin() + static_cast<long>(i),
                      [](char a, char b) {
                        return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b | 0x20) : b);
                      });
  }

  // No letter or digit before it, other than that of an escape such as "\n".
  [[nodiscard]] bool begins_word(std::size_t i) const {
    return i == 0 || !is_alnum(text_[i - 1]) || (i > 1 && text_[i - 2] == '\\') ||
           (i > 2 && text_[i - 3] == '%');
  }

  [[nodiscard]] std::size_t skip_space(std::size_t i) const {
    while (at(i) == ' ' || at(i) == '\t')
      ++i;
    return i;
  }

  // Past \" or \\\" or " (or ' ) at `i`, to which depth it may be escaped.
  [[nodiscard]] std::size_t skip_quote(std::size_t i) const {
    std::size_t end = i;
    while (at(end) == '\\')
      ++end;
    return at(end) == '"' || at(end) == '\'' ? end + 1 : i;
  }

  // Behind a name: the value after a colon or an equals sign.
  [[nodiscard]] Span named_value(std::size_t i, bool may_have_spaces) const {
    const std::size_t name_end = i;
    i = skip_quote(i);
    const bool quoted_name = i > name_end;
    i = skip_space(i);
    if (at(i) != ':' && at(i) != '=') return {};
    i = skip_space(i + 1);
    if (at(i) == '[') {  // headers as a map of lists
      const std::size_t first = skip_space(i + 1);
      if (skip_quote(first) > first) i = first;
    }
    const std::size_t begin = skip_quote(i);
    if (begin > i) return {begin, quoted_end(begin, text_.substr(i, begin - i))};
    if (quoted_name && is_json_literal(i)) return {};
    std::size_t end = i;
    while (end < text_.size() && !ends_plain(text_[end], may_have_spaces))
      ++end;
    return {i, end};
  }

  // null, a number, an object: no credential, and replacing it would break the JSON.
  [[nodiscard]] bool is_json_literal(std::size_t i) const {
    const char c = at(i);
    return c == '{' || c == '[' || c == ']' || c == '-' || (c >= '0' && c <= '9') ||
           is_word(i, "null") || is_word(i, "true") || is_word(i, "false");
  }

  // Where the quote comes again, escaped as deep as the opening one.
  [[nodiscard]] std::size_t quoted_end(std::size_t i, std::string_view quote) const {
    while (i < text_.size()) {
      std::size_t end = i;
      while (at(end) == '\\')
        ++end;
      if (at(end) == quote.back() && end - i < quote.size()) return i;
      i = end + 1;
    }
    return text_.size();
  }

  static bool ends_plain(char c, bool may_have_spaces) {
    if (c == '\r' || c == '\n' || c == '"' || c == '\'' || c == '\\') return true;
    return !may_have_spaces && (c == ' ' || c == '\t' || c == ',' || c == ';' || c == '&');
  }

  [[nodiscard]] Span bearer(std::size_t i) const {
    std::size_t begin = skip_space(i);
    if (at(i) == '+') begin = i + 1;
    if (text_.substr(i, 3) == "%20") begin = i + 3;
    if (begin == i) return {};
    std::size_t end = begin;
    while (end < text_.size() && is_token_char(text_[end]))
      ++end;
    return {begin, end};
  }

  [[nodiscard]] Span key(std::size_t begin) const {
    std::size_t end = begin + 3;
    while (end < text_.size() && is_key_char(text_[end]))
      ++end;
    return end - begin - 3 >= kMinKeyBytes ? Span{begin, end} : Span{};
  }

  std::string_view text_;
};

}  // namespace

std::string without_credentials(std::string_view text) {
  return Scan(text).run();
}

}  // namespace aiq
