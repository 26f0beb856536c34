#include "core/vendor/dialect.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace aiq {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

void put_header(HttpHeaders& headers, std::string_view name, std::string value) {
  const std::string lower = lower_case(name);
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& header) { return header.first == lower; });
  if (found != headers.end()) {
    found->second = std::move(value);
  } else {
    headers.emplace_back(lower, std::move(value));
  }
}

std::string join_url(std::string_view base, std::string_view path) {
  const auto query = std::min(base.find('?'), base.size());
  std::string_view front = base.substr(0, query);
  while (!front.empty() && front.back() == '/')
    front.remove_suffix(1);
  std::string url(front);
  url += path;
  url += base.substr(query);
  return url;
}

}  // namespace

HttpRequest make_request(const VendorConfig& config, const VendorCall& call,
                         std::string_view credential, std::string_view path,
                         const HttpHeaders& extra) {
  HttpRequest request;
  request.url = join_url(config.base_url, path);
  request.headers = {{"content-type", "application/json"},
                     {"accept", "application/json"},
                     {"user-agent", "aiq/" AIQ_VERSION}};
  request.headers.insert(request.headers.end(), extra.begin(), extra.end());
  for (const auto& [name, value] : config.headers)
    put_header(request.headers, name, value);
  if (!config.idempotency_header.empty() && !call.idempotency_value.empty()) {
    put_header(request.headers, config.idempotency_header, call.idempotency_value);
  }
  if (!config.attempt_header.empty() && !call.attempt_value.empty()) {
    put_header(request.headers, config.attempt_header, call.attempt_value);
  }
  if (!credential.empty() && config.auth == "bearer") {
    put_header(request.headers, "authorization", "Bearer " + std::string(credential));
  } else if (!credential.empty() && config.auth == "x-api-key") {
    put_header(request.headers, "x-api-key", std::string(credential));
  }
  request.body = std::string(call.body);
  request.connect_timeout_ms = config.connect_timeout_ms;
  request.first_byte_timeout_ms = config.first_byte_timeout_ms;
  request.total_timeout_ms = config.total_timeout_ms;
  request.max_connection_age_ms = config.max_connection_age_ms;
  request.ca_file = config.ca_file;
  request.proxy = config.proxy;
  return request;
}

const nlohmann::json* find_member(const nlohmann::json& value, std::string_view name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() || found->is_null() ? nullptr : &*found;
}

std::string_view text_member(const nlohmann::json& value, std::string_view name) {
  const auto* member = find_member(value, name);
  return member != nullptr && member->is_string()
             ? std::string_view(member->get_ref<const std::string&>())
             : std::string_view();
}

const nlohmann::json* array_member(const nlohmann::json& value, std::string_view name) {
  const auto* member = find_member(value, name);
  return member != nullptr && member->is_array() ? member : nullptr;
}

std::optional<std::string> join_texts(const nlohmann::json& parts, std::string_view type) {
  if (!parts.is_array()) return std::nullopt;
  std::optional<std::string> joined;
  for (const auto& part : parts) {
    if (text_member(part, "type") != type) continue;
    if (!joined) joined.emplace();
    *joined += text_member(part, "text");
  }
  return joined;
}

std::optional<nlohmann::json> parse_json(std::string_view text) {
  auto value = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

}  // namespace aiq
