#include "core/money/json_object.h"

#include <nlohmann/json.hpp>

#include "core/base/check.h"

namespace aiq {

Expected<JsonObject, JsonError> JsonObject::read(std::string_view text) {
  const auto canonical = canonicalize_json(text);
  if (!canonical) return Unexpected{canonical.error()};
  if (!canonical->is_object)
    return Unexpected{JsonError{JsonError::Kind::syntax, 0, "it is no JSON object"}};
  JsonObject object;
  for (const JsonMember& member : canonical->members)
    object.members_.emplace_back(
        member.name, text.substr(member.value_begin, member.value_end - member.value_begin));
  return object;
}

std::optional<std::string_view> JsonObject::literal(std::string_view name) const {
  for (const auto& [member, value] : members_)
    if (member == name) return value == "null" ? std::nullopt : std::optional(value);
  return std::nullopt;
}

std::optional<std::string> JsonObject::text(std::string_view name) const {
  const auto value = literal(name);
  if (!value || !is_json_string(*value)) return std::nullopt;
  return decode_json_string(*value);
}

bool is_json_string(std::string_view literal) {
  return !literal.empty() && literal.front() == '"';
}

bool is_json_number(std::string_view literal) {
  return !literal.empty() &&
         (literal.front() == '-' || (literal.front() >= '0' && literal.front() <= '9'));
}

std::string decode_json_string(std::string_view literal) {
  AIQ_CHECK(is_json_string(literal));
  return nlohmann::json::parse(literal).get<std::string>();
}

}  // namespace aiq
