#include "core/base/json_pointer.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/json_canonical.h"

namespace aiq {
namespace {

using Kind = PointerError::Kind;

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

std::size_t after_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at]))
    ++at;
  return at;
}

// Ends of a string literal and of any value that begins at `at`, in text that is JSON.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

std::size_t value_end(std::string_view text, std::size_t at) {
  const char first = text[at];
  if (first == '"') return string_end(text, at);
  if (first != '{' && first != '[') {
    while (at < text.size() && !is_space(text[at]) && text[at] != ',' && text[at] != '}' &&
           text[at] != ']')
      ++at;
    return at;
  }
  int open = 0;
  do {
    if (text[at] == '"') {
      at = string_end(text, at);
      continue;
    }
    if (text[at] == '{' || text[at] == '[') ++open;
    if (text[at] == '}' || text[at] == ']') --open;
    ++at;
  } while (open > 0);
  return at;
}

struct Span {
  std::size_t begin = 0, end = 0;
};

// What stands in an object or array, by position.
struct Contents {
  std::vector<std::string> names;  // of an object: its names as canonical string literals
  std::vector<Span> values;
};

Contents contents_of(std::string_view text, Span container) {
  Contents out;
  const bool named = text[container.begin] == '{';
  std::size_t at = after_space(text, container.begin + 1);
  while (at < container.end - 1) {
    if (named) {
      const std::size_t end = string_end(text, at);
      // Escapes may differ: two spellings of one name are the same name.
      out.names.push_back(canonicalize_json(text.substr(at, end - at)).value().text);
      at = after_space(text, after_space(text, end) + 1);
    }
    out.values.push_back({at, value_end(text, at)});
    at = after_space(text, out.values.back().end);
    if (at < container.end - 1) at = after_space(text, at + 1);
  }
  return out;
}

// The steps of a pointer; nullopt: it is none.
std::optional<std::vector<std::string>> steps_of(std::string_view pointer) {
  std::vector<std::string> steps;
  if (pointer.empty()) return steps;
  if (pointer.front() != '/' || !is_valid_utf8(pointer)) return std::nullopt;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      steps.emplace_back();
    } else if (pointer[i] != '~') {
      steps.back() += pointer[i];
    } else {
      ++i;
      if (i == pointer.size() || (pointer[i] != '0' && pointer[i] != '1')) return std::nullopt;
      steps.back() += pointer[i] == '0' ? '~' : '/';
    }
  }
  return steps;
}

// An array's index as RFC 6901 writes it: no sign, no leading zero.
std::optional<std::size_t> index_of(const std::string& step) {
  if (step.empty() || (step.size() > 1 && step[0] == '0')) return std::nullopt;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (error != std::errc() || end != step.data() + step.size()) return std::nullopt;
  return index;
}

class Splice {
 public:
  Splice(std::string_view text, std::string_view pointer, std::string_view value)
      : text_(text), pointer_(pointer), value_(value) {}

  Expected<std::string, PointerError> run() {
    const auto steps = steps_of(pointer_);
    if (!steps)
      return Unexpected{PointerError{
          Kind::syntax, quoted(pointer_) + " is not a JSON Pointer: it begins with /, and ~ is "
                                           "written ~0 in it"}};
    const std::size_t begin = after_space(text_, 0);
    Span here{begin, value_end(text_, begin)};
    for (std::size_t i = 0; i < steps->size(); ++i) {
      const bool last = i + 1 == steps->size();
      auto next = step(here, (*steps)[i], last);
      if (!next) return Unexpected{std::move(next).error()};
      if (!added_.empty()) return added_;
      here = *next;
      walked_ += (i == 0 ? "" : "/") + (*steps)[i];
    }
    return replaced(here, value_);
  }

 private:
  [[nodiscard]] std::string replaced(Span span, std::string_view by) const {
    std::string out(text_.substr(0, span.begin));
    out += by;
    out += text_.substr(span.end);
    return out;
  }

  [[nodiscard]] Unexpected<PointerError> no_place(const std::string& why) const {
    return Unexpected{PointerError{Kind::no_place, quoted(pointer_) + " leads nowhere: " + why}};
  }

  [[nodiscard]] std::string place() const {
    return walked_.empty() ? "the outermost value" : quoted("/" + walked_);
  }

  // Adds behind the last of `values`, or into what is empty.
  void add(Span container, const std::vector<Span>& values, const std::string& item) {
    const std::size_t at = values.empty() ? container.begin + 1 : values.back().end;
    added_ = replaced({at, at}, values.empty() ? item : "," + item);
  }

  // The value one step further. With `last` what is not there is added to it.
  Expected<Span, PointerError> step(Span here, const std::string& name, bool last) {
    const char kind = text_[here.begin];
    if (kind != '{' && kind != '[') return no_place(place() + " is neither an object nor an array");
    const Contents contents = contents_of(text_, here);
    if (kind == '[') return element(here, contents, name, last);
    const std::string literal = quoted(name);
    for (std::size_t i = 0; i < contents.names.size(); ++i) {
      if (contents.names[i] == literal) return contents.values[i];
    }
    if (!last) return no_place(place() + " has no member " + literal);
    add(here, contents.values, literal + ":" + std::string(value_));
    return here;
  }

  Expected<Span, PointerError> element(Span here, const Contents& contents, const std::string& name,
                                       bool last) {
    if (name == "-" && last) {
      add(here, contents.values, std::string(value_));
      return here;
    }
    const auto index = index_of(name);
    if (index && *index < contents.values.size()) return contents.values[*index];
    return no_place(place() + " is an array of " + std::to_string(contents.values.size()) +
                    " and has no element " + quoted(name) + (last ? "; - appends one" : ""));
  }

  std::string_view text_, pointer_, value_;
  std::string walked_;  // the steps so far, decoded
  std::string added_;   // the whole new text, when something was added
};

}  // namespace

Expected<std::string, PointerError> set_at_pointer(std::string_view text, std::string_view pointer,
                                                   std::string_view value) {
  return Splice(text, pointer, value).run();
}

}  // namespace aiq
