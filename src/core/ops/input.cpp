#include "core/ops/input.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/base/redact.h"

namespace aiq {
namespace {

constexpr std::int64_t kPageMax = 1000;
constexpr std::int64_t kPageDefault = 100;

}  // namespace

std::optional<std::int64_t> parse_id(std::string_view text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 1) return std::nullopt;
  return id;
}

Input::Input(const Json& in, std::initializer_list<std::string_view> known) : in_(in) {
  if (!in.is_object()) {
    problem("invalid_input", "the input of an operation is a JSON object");
    return;
  }
  for (const auto& [name, value] : in.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      problem("unknown_option", "there is no option " + name + " here");
  }
}

const Json* Input::find(const char* name) const {
  if (failure_) return nullptr;
  const auto found = in_.find(name);
  return found == in_.end() || found->is_null() ? nullptr : &*found;
}

void Input::problem(std::string code, std::string message) {
  if (!failure_) failure_ = Failure{Exit::usage, std::move(code), redact(message), ""};
}

void Input::wrong_type(const char* name, const char* expected) {
  problem("invalid_option", std::string(name) + ": expected " + expected);
}

std::optional<std::string> Input::maybe_text(const char* name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  wrong_type(name, "a string");
  return std::nullopt;
}

std::string Input::text(const char* name) {
  return maybe_text(name).value_or("");
}

std::string Input::required_text(const char* name) {
  std::string out = text(name);
  if (out.empty()) problem("missing_option", std::string(name) + " is missing");
  return out;
}

bool Input::flag(const char* name) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  wrong_type(name, "true or false");
  return false;
}

std::optional<std::int64_t> Input::whole(const char* name, std::int64_t min, std::int64_t max) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX)) {
    wrong_type(name, "a whole number");
    return std::nullopt;
  }
  const auto number = value->get<std::int64_t>();
  if (number >= min && number <= max) return number;
  problem("invalid_option", std::string(name) + ": " + std::to_string(number) + " is outside of " +
                                std::to_string(min) + " .. " + std::to_string(max));
  return std::nullopt;
}

std::optional<UnixMs> Input::instant(const char* name) {
  const auto value = maybe_text(name);
  if (!value) return std::nullopt;
  const auto at = parse_rfc3339(*value);
  if (!at) wrong_type(name, "a time such as 2026-03-01T12:00:00Z");
  return at;
}

std::optional<DurationMs> Input::duration(const char* name) {
  // 100 years, as parse_duration() has it: sums with a time never overflow.
  return whole(name, 0, 36525LL * 24 * 3600 * 1000);
}

std::vector<std::string> Input::texts(const char* name) {
  const Json* value = find(name);
  std::vector<std::string> out;
  if (value == nullptr) return out;
  if (!value->is_array()) {
    wrong_type(name, "an array of strings");
    return out;
  }
  for (const Json& item : *value) {
    if (item.is_string())
      out.push_back(item.get<std::string>());
    else
      wrong_type(name, "an array of strings");
  }
  return out;
}

Labels Input::labels(const char* name) {
  const Json* value = find(name);
  Labels out;
  if (value == nullptr) return out;
  if (!value->is_object()) {
    wrong_type(name, "an object of strings");
    return out;
  }
  for (const auto& [key, item] : value->items()) {
    if (item.is_string())
      out[key] = item.get<std::string>();
    else
      wrong_type(name, "an object of strings");
  }
  return out;
}

std::int64_t Input::id(const char* name) {
  const Json* value = find(name);
  if (value != nullptr && value->is_number_integer()) {
    return whole(name, 1, std::numeric_limits<std::int64_t>::max()).value_or(0);
  }
  const std::string digits = required_text(name);
  const auto out = parse_id(digits);
  if (!out) problem("invalid_id", std::string(name) + ": " + digits + " is not an id");
  return out.value_or(0);
}

std::optional<std::int64_t> Input::batch_id(const char* name) {
  const auto value = maybe_text(name);
  if (!value) return std::nullopt;
  const auto out = parse_id(std::string_view(*value).substr(value->starts_with('b') ? 1 : 0));
  if (!out) problem("invalid_id", std::string(name) + ": " + *value + " is no batch id (b17)");
  return out;
}

std::pair<std::string, std::string> Input::label(const char* name) {
  const std::string pair = text(name);
  if (pair.empty()) return {};
  const std::size_t equals = pair.find('=');
  if (equals == std::string::npos || equals == 0) {
    wrong_type(name, "KEY=VALUE");
    return {};
  }
  return {pair.substr(0, equals), pair.substr(equals + 1)};
}

Page Input::page() {
  Page out;
  out.limit = static_cast<int>(whole("limit", 1, kPageMax).value_or(kPageDefault));
  if (find("after") != nullptr) out.after = id("after");
  return out;
}

}  // namespace aiq
