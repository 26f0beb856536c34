#include "core/money/json_line.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/base/duration.h"

namespace aiq {
namespace {

bool is_number_literal(std::string_view json) {
  return !json.empty() && (json.front() == '-' || (json.front() >= '0' && json.front() <= '9'));
}

}  // namespace

Expected<JsonLine, LineError> JsonLine::read(std::string_view line) {
  auto read = canonicalize_json(line);
  if (!read) {
    const JsonError& error = read.error();
    const bool utf8 = error.kind == JsonError::Kind::invalid_utf8;
    return Unexpected{LineError{utf8 ? "invalid_utf8" : "invalid_json_line",
                                error.message + " (byte " + std::to_string(error.offset) + ")"}};
  }
  if (!read->is_object)
    return Unexpected{LineError{"invalid_json_line", "a line is one JSON object"}};
  JsonLine out;
  for (JsonMember& member : read->members)
    out.members_.push_back(
        {std::move(member.name),
         line.substr(member.value_begin, member.value_end - member.value_begin)});
  return out;
}

void JsonLine::problem(std::string code, std::string message) {
  if (!error_) error_ = LineError{std::move(code), std::move(message)};
}

void JsonLine::invalid(std::string_view name, const std::string& expected) {
  problem("invalid_" + std::string(name), std::string(name) + " is not " + expected);
}

void JsonLine::missing(std::string_view name) {
  problem("missing_field", std::string(name) + " is missing");
}

bool JsonLine::has(std::string_view name) const {
  return std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
    return member.name == name && member.value != "null";
  });
}

std::string_view JsonLine::value(std::string_view name) {
  for (Member& member : members_) {
    if (member.name != name) continue;
    member.read = true;
    return member.value == "null" ? std::string_view() : member.value;
  }
  return {};
}

std::optional<std::string> JsonLine::scalar(std::string_view json) {
  if (is_number_literal(json)) return std::string(json);
  if (json.empty() || json.front() != '"') return std::nullopt;
  if (json.find('\\') == std::string_view::npos)
    return std::string(json.substr(1, json.size() - 2));
  // Escapes; the text was found to be sound before.
  return nlohmann::json::parse(json).get<std::string>();
}

std::string JsonLine::text(std::string_view name) {
  const std::string_view json = value(name);
  if (json.empty()) return "";
  if (json.front() != '"') {
    invalid(name, "a string");
    return "";
  }
  return *scalar(json);
}

std::string JsonLine::required_text(std::string_view name) {
  std::string out = text(name);
  if (out.empty()) missing(name);
  return out;
}

std::string JsonLine::decimal(std::string_view name) {
  const std::string_view json = value(name);
  if (json.empty()) return "";
  auto out = scalar(json);
  if (!out || out->empty()) {
    invalid(name, "a decimal number");
    return "";
  }
  return std::move(*out);
}

std::optional<std::int64_t> JsonLine::whole(std::string_view name) {
  const std::string text = decimal(name);
  if (text.empty()) return std::nullopt;
  std::int64_t out = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed == std::errc() && end == text.data() + text.size()) return out;
  invalid(name, "a whole number within 64 bits");
  return std::nullopt;
}

std::optional<Int128> JsonLine::whole_128(std::string_view name) {
  const std::string text = decimal(name);
  if (text.empty()) return std::nullopt;
  const auto out = parse_int128(text);
  if (!out) invalid(name, "a whole number within 128 bits");
  return out;
}

std::optional<UnixMs> JsonLine::instant(std::string_view name) {
  const std::string given = text(name);
  if (given.empty()) return std::nullopt;
  const auto out = parse_rfc3339(given);
  if (!out) invalid(name, "a time such as 2026-03-01T12:00:00Z");
  return out;
}

UnixMs JsonLine::required_instant(std::string_view name) {
  const auto out = instant(name);
  if (!out && !error_) missing(name);
  return out.value_or(0);
}

void JsonLine::refuse_unread() {
  for (const Member& member : members_) {
    if (!member.read) problem("unknown_field", "there is no field " + member.name + " here");
  }
}

std::string decimal_code(DecimalError error, std::string_view name) {
  switch (error) {
    case DecimalError::syntax:
      return "invalid_" + std::string(name);
    case DecimalError::not_representable:
      return "price_not_representable";
    case DecimalError::overflow:
      return "amount_overflow";
  }
  AIQ_CHECK(false);
}

}  // namespace aiq
