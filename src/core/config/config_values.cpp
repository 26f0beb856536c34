#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

#include "core/base/json_canonical.h"
#include "core/base/redact.h"
#include "core/base/sha256.h"
#include "core/config/config.h"
#include "core/config/config_fields.h"

namespace aiq {
namespace {

bool is_bare(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-';
  });
}

// A TOML basic string has the escapes of a JSON string.
std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string real_text(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string out(buffer.data(), end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";  // TOML tells 1 from 1.0
  return out;
}

struct NamedValue {
  std::string key, value;
};

// Prints the fields of one section as TOML values.
class Printer {
 public:
  Printer(std::string section, std::vector<NamedValue>& out)
      : section_(std::move(section)), out_(out) {}

  void text(std::string_view key, const std::string& value) { add(key, quoted(value)); }
  void choice(std::string_view key, const std::string& value,
              std::initializer_list<std::string_view> /*allowed*/) {
    add(key, quoted(value));
  }
  void number(std::string_view key, std::int64_t value, std::int64_t /*min*/,
              std::int64_t /*max*/) {
    add(key, std::to_string(value));
  }
  void real(std::string_view key, double value, int /*min*/, int /*max*/) {
    add(key, real_text(value));
  }
  void flag(std::string_view key, bool value) { add(key, value ? "true" : "false"); }
  // Of an override only what it sets is printed.
  void duration(std::string_view key, std::optional<DurationMs> value, DurationMs /*min*/) {
    if (value) add(key, quoted(format_duration(*value)));
  }
  void optional_duration(std::string_view key, std::optional<DurationMs> value,
                         DurationMs /*min*/) {
    add(key, quoted(value ? format_duration(*value) : ""));
  }
  void size(std::string_view key, std::int64_t value) { add(key, quoted(format_size(value))); }
  void level(std::string_view key, LogLevel value) {
    add(key, quoted(kLevelNames[static_cast<std::size_t>(value)]));
  }
  void format(std::string_view key, bool json) { add(key, quoted(json ? "json" : "text")); }
  void policy(std::string_view key, std::optional<CachePolicy> value) {
    if (value) add(key, quoted(kPolicyNames[static_cast<std::size_t>(*value)]));
  }
  void cache(std::string_view key, const CacheOverride& value) {
    std::vector<NamedValue> members;
    Printer inner("", members);
    cache_override_fields(inner, value);
    add(key, inline_table(members));
  }
  void names(std::string_view key, const std::vector<std::string>& values) {
    std::string list;
    for (const std::string& value : values)
      list.append(list.empty() ? "" : ", ").append(quoted(value));
    add(key, "[" + list + "]");
  }
  void headers(std::string_view key,
               const std::vector<std::pair<std::string, std::string>>& values) {
    std::vector<NamedValue> members;
    for (const auto& [name, value] : values)
      members.push_back({toml_key(name), quoted(value)});
    add(key, inline_table(members));
  }

 private:
  static std::string inline_table(const std::vector<NamedValue>& members) {
    if (members.empty()) return "{}";
    std::string out = "{ ";
    for (const NamedValue& member : members) {
      if (&member != members.data()) out += ", ";
      out.append(member.key).append(" = ").append(member.value);
    }
    return out + " }";
  }

  void add(std::string_view key, std::string value) {
    out_.push_back({full_key(section_, key), std::move(value)});
  }

  std::string section_;
  std::vector<NamedValue>& out_;
};

std::vector<NamedValue> all_values(const Config& config) {
  std::vector<NamedValue> out;
  const auto section = [&](std::string name) { return Printer(std::move(name), out); };
  Printer top = section(""), daemon = section("daemon"), limits = section("limits"),
          retry = section("retry"), cache = section("cache"), breaker = section("breaker"),
          retention = section("retention"), tracing = section("tracing");
  top_fields(top, config);
  daemon_fields(daemon, config.daemon);
  limits_fields(limits, config.limits);
  retry_fields(retry, config.retry);
  cache_fields(cache, config.cache);
  breaker_fields(breaker, config.breaker);
  retention_fields(retention, config.retention);
  tracing_fields(tracing, config.tracing);
  for (const auto& [name, value] : config.vendors) {
    Printer printer(full_key("vendors", name), out);
    vendor_fields(printer, value);
  }
  for (const auto& [name, value] : config.models) {
    Printer printer(full_key("models", name), out);
    model_fields(printer, value);
  }
  for (const auto& [name, value] : config.tenants) {
    Printer printer(full_key("tenants", name), out);
    tenant_fields(printer, value);
  }
  return out;
}

}  // namespace

std::string toml_key(std::string_view name) {
  return is_bare(name) ? std::string(name) : quoted(name);
}

std::string full_key(std::string_view section, std::string_view key) {
  std::string out(section);
  if (section.empty()) return std::string(key);
  // Sections come already as full names; only the last part may need quotes, and the parts of a
  // table within a section ("cache.soft_ttl") are bare names.
  const bool in_table = key.starts_with("cache.") || key.starts_with("headers.");
  return out + "." + (in_table ? std::string(key) : toml_key(key));
}

std::vector<EffectiveValue> effective_values(const Config& config) {
  const std::string file = config.path.substr(config.path.rfind('/') + 1);
  std::vector<EffectiveValue> out;
  for (NamedValue& value : all_values(config)) {
    const auto line = config.lines.find(value.key);
    out.push_back(
        {value.key, redact(value.value),
         line == config.lines.end() ? "default" : file + ":" + std::to_string(line->second)});
  }
  return out;
}

std::string Config::fingerprint() const {
  // Not through redact(): what secrets a process has learnt must not change the result.
  Sha256 hash;
  for (const NamedValue& value : all_values(*this)) {
    hash.update_field(value.key);
    hash.update_field(value.value);
  }
  return hash.hex();
}

}  // namespace aiq
