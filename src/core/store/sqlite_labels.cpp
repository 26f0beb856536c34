#include "core/store/sqlite_labels.h"

#include <nlohmann/json.hpp>

#include "core/base/json_canonical.h"

namespace aiq {

std::string print_labels(const Labels& labels) {
  std::string json = "{";
  for (const auto& [key, value] : labels) {
    if (json.size() > 1) json.push_back(',');
    append_json_string(json, key);
    json.push_back(':');
    append_json_string(json, value);
  }
  json.push_back('}');
  return json;
}

Labels parse_labels(std::string_view json) {
  Labels labels;
  if (json == "{}") return labels;
  // A text that an operator changed by hand costs its labels, not the whole list.
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) return labels;
  for (const auto& [key, value] : parsed.items()) {
    if (value.is_string()) labels.emplace(key, value.get<std::string>());
  }
  return labels;
}

}  // namespace aiq
