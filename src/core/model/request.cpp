#include "core/model/request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/json_canonical.h"
#include "core/base/sha256.h"

namespace aiq {
namespace {

constexpr std::array<std::string_view, 4> kEndpointNames = {"chat", "embeddings", "responses",
                                                            "messages"};
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// Integers up to here are exact in a double.
constexpr double kExactInteger = 9007199254740992.0;

InvalidRequest from_json_error(const JsonError& error) {
  std::string_view code = "invalid_request";
  if (error.kind == JsonError::Kind::syntax) code = "invalid_json_line";
  if (error.kind == JsonError::Kind::invalid_utf8) code = "invalid_utf8";
  std::string message = error.message;
  while (message.ends_with('.'))
    message.pop_back();
  return {std::string(code), message + " at byte " + std::to_string(error.offset)};
}

std::string_view value_text(std::string_view body, const JsonMember& member) {
  AIQ_CHECK(member.value_begin < member.value_end && member.value_end <= body.size());
  return body.substr(member.value_begin, member.value_end - member.value_begin);
}

// A scalar member's value; null when it is an array or object, or a number without a double.
nlohmann::json scalar(std::string_view text) {
  if (text.starts_with('{') || text.starts_with('[')) return nullptr;
  nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? nlohmann::json(nullptr) : value;
}

std::optional<std::int64_t> whole_number(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    const auto n = value.get<std::uint64_t>();
    if (n > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(n);
  }
  if (!value.is_number_float()) return std::nullopt;  // negative integers are no limit either
  const double n = value.get<double>();
  if (!(n >= 0 && n <= kExactInteger) || n != std::floor(n)) return std::nullopt;
  return static_cast<std::int64_t>(n);
}

void read_member(CheckedBody& out, const std::string& name, std::string_view text) {
  if (name == "model") {
    const nlohmann::json value = scalar(text);
    if (value.is_string()) out.model = value.get<std::string>();
  } else if (name == "temperature") {
    const nlohmann::json value = scalar(text);
    if (value.is_number()) out.temperature = value.get<double>();
  } else if (name == "max_tokens" || name == "max_completion_tokens" ||
             name == "max_output_tokens") {
    // Which of several a vendor obeys is its own matter: budgets need the largest.
    const auto limit = whole_number(scalar(text));
    if (limit && (!out.output_limit || *limit > *out.output_limit)) out.output_limit = limit;
  } else if (name == "n") {
    const auto choices = whole_number(scalar(text));
    if (choices && *choices >= 1 && *choices <= kChoicesMax) out.choices = *choices;
  }
}

std::string hash_key(std::string_view domain, std::string_view owner, const KeyInputs& inputs,
                     std::string_view canonical) {
  Sha256 hash;
  hash.update_field(domain);
  hash.update_field(inputs.version);
  hash.update_field(owner);
  hash.update_field(inputs.vendor);
  hash.update_field(inputs.model);
  hash.update_field(to_string(inputs.endpoint));
  hash.update_field(canonical);
  hash.update_field(inputs.locale);
  hash.update_field(inputs.safety);
  hash.update_field(inputs.scope);
  return hash.hex();
}

}  // namespace

std::string_view to_string(Endpoint endpoint) {
  return kEndpointNames.at(static_cast<std::size_t>(endpoint));
}

std::optional<Endpoint> parse_endpoint(std::string_view name) {
  for (std::size_t i = 0; i < kEndpointNames.size(); ++i) {
    if (kEndpointNames[i] == name) return static_cast<Endpoint>(i);
  }
  return std::nullopt;
}

std::optional<std::int64_t> CheckedBody::output_tokens() const {
  if (!output_limit) return std::nullopt;
  constexpr std::int64_t kMost = INT64_MAX / kChoicesMax;
  return std::clamp<std::int64_t>(*output_limit, 0, kMost) * choices;
}

Expected<CheckedBody, InvalidRequest> check_body(std::string_view body) {
  if (body.starts_with(kByteOrderMark)) {
    return Unexpected{
        InvalidRequest{"invalid_json_line", "a byte order mark stands before the JSON at byte 0"}};
  }
  std::vector<std::string_view> drop(std::begin(kIgnoredMembers), std::end(kIgnoredMembers));
  auto canonical = canonicalize_json(body, drop);
  if (!canonical) return Unexpected{from_json_error(canonical.error())};
  if (!canonical->is_object) {
    return Unexpected{
        InvalidRequest{"invalid_request", "the request is not a JSON object at byte 0"}};
  }

  CheckedBody out;
  out.sent = body;
  bool has_cache_ignored = false;
  for (const JsonMember& member : canonical->members) {
    const std::string_view text = value_text(body, member);
    if (member.name == kCacheIgnoredMember) has_cache_ignored = true;
    if (member.name == "stream" && text != "false") {
      // Names are unique, so this happens once and the other positions are not needed in `sent`.
      out.sent.replace(member.value_begin, text.size(), "false");
      out.stream_removed = true;
    }
    read_member(out, member.name, text);
  }
  out.canonical = std::move(canonical->text);
  if (!has_cache_ignored) {
    out.cache_canonical = out.canonical;
    return out;
  }
  drop.push_back(kCacheIgnoredMember);
  auto for_cache = canonicalize_json(body, drop);
  AIQ_CHECK(for_cache.has_value());
  out.cache_canonical = std::move(for_cache->text);
  return out;
}

RequestKeys derive_keys(const KeyInputs& inputs, const CheckedBody& body) {
  const std::string owner =
      inputs.cache_group.empty() ? "tenant:" + inputs.tenant : "group:" + inputs.cache_group;
  return {.idempotency_key = hash_key("idempotency", inputs.tenant, inputs, body.canonical),
          .cache_key = hash_key("cache", owner, inputs, body.cache_canonical)};
}

}  // namespace aiq
