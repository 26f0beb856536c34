#include <arpa/inet.h>
#include <sys/un.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/names.h"
#include "core/base/redact.h"
#include "core/config/config.h"
#include "core/config/config_fields.h"

namespace aiq {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

// "Bearer x", "Basic x", "sk-x" at the start of a word: what the vendors' own keys look like.
bool looks_like_secret(std::string_view value) {
  const std::string text = lower(value);
  for (const std::string_view mark : {"bearer ", "basic ", "sk-"}) {
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      if (at == 0 || !is_alnum(text[at - 1])) return true;
    }
  }
  return false;
}

bool is_secret_header(std::string_view name) {
  return contains_any(
      lower(name), {"authorization", "api-key", "apikey", "api_key", "cookie", "secret", "password",
                    "subscription-key", "auth-token", "access-token"});
}

// What the transport writes itself, by the body and the connection.
bool is_transport_header(std::string_view name) {
  constexpr std::string_view kOwn[] = {"content-length", "host",    "transfer-encoding",
                                       "connection",     "expect",  "te",
                                       "trailer",        "upgrade", "keep-alive"};
  return std::find(std::begin(kOwn), std::end(kOwn), lower(name)) != std::end(kOwn);
}

// token of RFC 9110 section 5.6.2
bool is_header_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

// [A-Za-z_][A-Za-z0-9_]*
bool is_variable_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && kDigits.find(name[0]) == std::string_view::npos &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_alnum(c) || c == '_'; });
}

// "DECIMAL CURRENCY/WINDOW": 10 USD/day
bool is_budget(std::string_view text) {
  const std::size_t whole = std::min(text.find_first_not_of(kDigits), text.size());
  if (whole == 0 || whole > 15) return false;
  text.remove_prefix(whole);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::size_t fraction = std::min(text.find_first_not_of(kDigits), text.size());
    if (fraction == 0 || fraction > 12) return false;  // money is exact to 12 places
    text.remove_prefix(fraction);
  }
  if (text.size() < 5 || text[0] != ' ' || text[4] != '/') return false;
  const std::string_view currency = text.substr(1, 3);
  if (!std::all_of(currency.begin(), currency.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
    return false;
  }
  const std::string_view window = text.substr(5);
  return window == "hour" || window == "day" || window == "month";
}

// "127.0.0.1:9464", "[::1]:9464", "localhost:9464"; port 0 = any free one.
bool is_listen_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view port_text = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (port_text.empty() || error != std::errc() || end != port_text.data() + port_text.size()) {
    return false;
  }
  std::string host(text.substr(0, colon));
  std::array<unsigned char, sizeof(in6_addr)> address{};
  if (host == "localhost" || inet_pton(AF_INET, host.c_str(), address.data()) == 1) return true;
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return false;
  host = host.substr(1, host.size() - 2);
  return inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

// "host", "host:443", "[::1]:443"; an empty port is the default one.
bool has_good_port(std::string_view authority) {
  const std::size_t colon = authority.rfind(':');
  const std::size_t bracket = authority.rfind(']');
  if (colon == std::string_view::npos) return true;
  if (bracket != std::string_view::npos && colon < bracket) return true;
  const std::string_view text = authority.substr(colon + 1);
  std::uint16_t port = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return text.empty() || (error == std::errc() && end == text.data() + text.size() && port > 0);
}

// Why `url` can't be used, or "". Its text is never repeated: it may hold a secret.
std::string url_problem(std::string_view url, std::initializer_list<std::string_view> schemes) {
  const std::size_t colon = url.find("://");
  const std::string scheme = lower(url.substr(0, std::min(colon, url.size())));
  if (colon == std::string_view::npos ||
      std::find(schemes.begin(), schemes.end(), scheme) == schemes.end()) {
    std::string list;
    for (const std::string_view s : schemes)
      list.append(list.empty() ? "" : " or ").append(s).append("://");
    return "expected a URL that begins with " + list;
  }
  const std::string_view rest = url.substr(colon + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.find('@') != std::string_view::npos) {
    return "must hold no user name or password; use api_key_env or api_key_file";
  }
  if (authority.empty() || authority.front() == ':') return "the URL has no host";
  if (!has_good_port(authority)) return "the port of the URL is none of 1 to 65535";
  if (url.find_first_of(" \t\"<>\\^`{|}") != std::string_view::npos) {
    return "the URL has a character that must be percent-encoded";
  }
  const std::size_t question = url.find('?');
  const std::string query =
      question == std::string_view::npos ? "" : lower(url.substr(question + 1));
  for (std::size_t at = 0; at < query.size();) {
    const std::size_t next = std::min(query.find_first_of("&;#", at), query.size());
    const std::string_view parameter = std::string_view(query).substr(at, next - at);
    const std::string_view name = parameter.substr(0, parameter.find('='));
    if (contains_any(name, {"key", "token", "secret", "passw", "sig", "auth", "credential"})) {
      return "must hold no secret in its query; use api_key_env or api_key_file";
    }
    at = next + 1;
  }
  if (looks_like_secret(url)) return "holds what looks like a secret";
  return "";
}

void check_url(const Config& config, const std::string& section, std::string_view key,
               const std::string& url, std::initializer_list<std::string_view> schemes) {
  if (url.empty()) return;
  const std::string problem = url_problem(url, schemes);
  if (!problem.empty()) config_fail(config, section, key, problem);
}

void check_base_url(const Config& config, const std::string& section, VendorConfig& vendor) {
  if (vendor.base_url.empty() && vendor.api != "echo") {
    config_fail(config, section, "base_url", "is required");
  }
  check_url(config, section, "base_url", vendor.base_url, {"http", "https"});
  if (vendor.base_url.find_first_of("?#") != std::string::npos) {
    config_fail(config, section, "base_url", "must have no query: paths are appended to it");
  }
  while (vendor.base_url.ends_with('/'))
    vendor.base_url.pop_back();
}

void check_headers(const Config& config, const std::string& section, const VendorConfig& vendor) {
  for (const auto& [name, value] : vendor.headers) {
    const std::string key = "headers." + name;
    if (!is_header_name(name)) {
      config_fail(config, section, "headers", "has a name that is not one of HTTP");
    }
    if (is_transport_header(name)) {
      config_fail(config, section, "headers",
                  "must not set " + name + ", which belongs to the connection");
    }
    // Not "headers.NAME: ...": a sink's redactor takes that for the header with its value.
    if (is_secret_header(name)) {
      config_fail(config, section, "headers",
                  "must not set " + redact(name) +
                      ", which carries a secret; use api_key_env or api_key_file");
    }
    if (looks_like_secret(value)) {
      config_fail(config, section, redact(key),
                  "must hold no secret; use api_key_env or api_key_file");
    }
  }
  const std::pair<std::string_view, const std::string*> own[] = {
      {"idempotency_header", &vendor.idempotency_header},
      {"attempt_header", &vendor.attempt_header}};
  for (const auto& [key, name] : own) {
    if (!name->empty() &&
        (!is_header_name(*name) || is_secret_header(*name) || is_transport_header(*name))) {
      config_fail(config, section, key, "expected the name of a header");
    }
  }
}

void check_vendor(const Config& config, VendorConfig& vendor) {
  const std::string section = full_key("vendors", vendor.name);
  if (vendor.api.empty()) config_fail(config, section, "api", "is required");
  check_base_url(config, section, vendor);
  check_headers(config, section, vendor);
  check_url(config, section, "proxy", vendor.proxy,
            {"http", "https", "socks4", "socks5", "socks5h"});
  if (!vendor.api_key_env.empty() && !is_variable_name(vendor.api_key_env)) {
    config_fail(config, section, "api_key_env",
                "expected the name of an environment variable, not the key itself");
  }
  if (looks_like_secret(vendor.api_key_file)) {
    config_fail(config, section, "api_key_file", "expected a path, not the key itself");
  }
  if (!vendor.api_key_env.empty() && !vendor.api_key_file.empty()) {
    config_fail(config, section, "api_key_file", "api_key_env is set too: keep one of them");
  }
  if (vendor.auth.empty()) {
    vendor.auth = vendor.api == "openai"      ? "bearer"
                  : vendor.api == "anthropic" ? "x-api-key"
                                              : "none";
  }
  if (vendor.price_vendor.empty()) vendor.price_vendor = vendor.name;
  if (!is_label_name(vendor.price_vendor)) {
    config_fail(config, section, "price_vendor", "is not a valid name");
  }
}

void check_ttls(const Config& config, const std::string& section, const std::string& prefix,
                std::optional<DurationMs> soft, std::optional<DurationMs> hard) {
  if (soft && hard && *soft > *hard) {
    config_fail(config, section, prefix + "soft_ttl", "is longer than hard_ttl");
  }
}

void check_model(const Config& config, const ModelConfig& model) {
  const std::string section = full_key("models", model.name);
  if (!model.vendor.empty() && !config.vendors.contains(model.vendor)) {
    config_fail(config, section, "vendor", "there is no section of this vendor");
  }
  if (model.max_tokens_field.empty()) {
    config_fail(config, section, "max_tokens_field", "must not be empty");
  }
  check_ttls(config, section, "cache.", model.cache.soft_ttl_ms, model.cache.hard_ttl_ms);
  for (const std::string& other : model.fallback) {
    if (other == model.name) config_fail(config, section, "fallback", "names the model itself");
    if (config.vendor_of_model(other) == nullptr) {
      config_fail(config, section, "fallback", other + " has no vendor");
    }
    if (std::count(model.fallback.begin(), model.fallback.end(), other) > 1) {
      config_fail(config, section, "fallback", other + " is named twice");
    }
  }
}

void check_tenant(const Config& config, const TenantConfig& tenant) {
  const std::string section = full_key("tenants", tenant.name);
  if (!tenant.budget.empty() && !is_budget(tenant.budget)) {
    config_fail(config, section, "budget",
                R"(expected an amount, a currency and hour, day or month, such as "10 USD/day")");
  }
  if (!tenant.cache_group.empty() && !is_label_name(tenant.cache_group)) {
    config_fail(config, section, "cache_group", "is not a valid name");
  }
  check_ttls(config, section, "cache.", tenant.cache.soft_ttl_ms, tenant.cache.hard_ttl_ms);
}

void add_builtin_vendor(Config& config) {
  VendorConfig echo;
  echo.name = "echo";
  echo.api = "echo";
  config.vendors.emplace(echo.name, echo);
  ModelConfig model;
  model.name = "echo";
  config.models.emplace(model.name, model);
  config.models["echo"].vendor = "echo";
}

// The daemon could not listen there.
void check_socket(const Config& config) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  const std::string limit =
      "longer than a socket's path may be, " + std::to_string(kLongest) + " bytes";
  if (config.daemon.socket.size() > kLongest) {
    config_fail(config, "daemon", "socket", "is " + limit);
  }
  if (config.daemon.socket.empty() && !config.db.empty() &&
      resolve_socket_path(config, config.db).size() > kLongest) {
    config_fail(config, "", "db",
                "with .sock after it is " + limit + "; name another with daemon.socket");
  }
}

}  // namespace

void check_config(Config& config) {
  check_socket(config);
  if (config.vendors.empty()) add_builtin_vendor(config);
  for (auto& [name, vendor] : config.vendors)
    check_vendor(config, vendor);
  if (!config.default_vendor.empty() && !config.vendors.contains(config.default_vendor)) {
    config_fail(config, "", "default_vendor", "there is no section of this vendor");
  }
  for (const auto& [name, model] : config.models)
    check_model(config, model);
  for (const auto& [name, tenant] : config.tenants)
    check_tenant(config, tenant);
  check_ttls(config, "cache", "", config.cache.soft_ttl_ms, config.cache.hard_ttl_ms);
  check_url(config, "tracing", "endpoint", config.tracing.endpoint, {"http", "https"});
  if (!config.daemon.metrics_listen.empty() && !is_listen_address(config.daemon.metrics_listen)) {
    config_fail(config, "daemon", "metrics_listen",
                R"(expected an address and a port, such as "127.0.0.1:9464")");
  }
}

std::vector<std::string> without_effect(const Config& config) {
  std::vector<std::string> out;
  const auto say = [&out](const std::string& key, const std::string& what) {
    out.push_back(key + " has no effect in this version: " + what);
  };
  for (const auto& [name, tenant] : config.tenants) {
    if (!tenant.budget.empty())
      say(full_key("tenants", name) + ".budget", "what the tenant spends is not limited");
  }
  for (const auto& [name, model] : config.models) {
    if (!model.fallback.empty())
      say(full_key("models", name) + ".fallback", "no other model is asked");
  }
  if (!config.daemon.metrics_listen.empty()) say("daemon.metrics_listen", "nothing listens there");
  if (!config.tracing.endpoint.empty()) say("tracing.endpoint", "no spans are sent");
  return out;
}

}  // namespace aiq
