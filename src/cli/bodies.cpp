#include "cli/bodies.h"

#include <algorithm>
#include <string_view>

#include "cli/text.h"
#include "core/base/json_canonical.h"
#include "core/base/json_layout.h"

namespace aiq::cli {
namespace {

constexpr std::string_view kSuffix = "_text";

// The strict reader refuses what is ambiguous (a member twice), the general one numbers beyond a
// double; either is content with what a program can read.
bool is_json(const std::string& text) {
  return Json::accept(text) || canonicalize_json(text).has_value();
}

std::string member(const std::string& name, const Json& value) {
  std::string out;
  if (!name.ends_with(kSuffix)) {
    append_json_string(out, name);
    return out + ":" + value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  append_json_string(out, std::string_view(name).substr(0, name.size() - kSuffix.size()));
  out += ":";
  if (!value.is_string()) return out + "null";
  const auto& body = value.get_ref<const std::string&>();
  if (is_json(body)) return out + one_line_json(body);
  append_json_string(out, body);
  return out;
}

}  // namespace

void print_with_bodies(Output& out, const Json& object) {
  std::string line;
  for (const auto& [name, value] : object.items())
    line += (line.empty() ? "{" : ",") + member(name, value);
  out.line(line.empty() ? "{}" : line + "}");
}

void print_body(Output& out, const Json& object, const std::string& name) {
  const auto found = object.find(name + std::string(kSuffix));
  if (found == object.end() || !found->is_string()) return;
  const auto& body = found->get_ref<const std::string&>();
  out.line("");
  out.line(name + ":");
  // Nothing in a body is obeyed by a terminal.
  const std::string shown = is_json(body) ? indented_json(body) : body;
  for (std::size_t at = 0; at <= shown.size();) {
    const std::size_t end = std::min(shown.find('\n', at), shown.size());
    out.line(printable(std::string_view(shown).substr(at, end - at)));
    at = end + 1;
  }
}

}  // namespace aiq::cli
