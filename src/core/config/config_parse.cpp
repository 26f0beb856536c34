#include <toml++/toml.h>
#include <algorithm>
#include <initializer_list>
#include <set>
#include <sstream>

#include "core/base/file.h"
#include "core/base/names.h"
#include "core/base/redact.h"
#include "core/config/config.h"
#include "core/config/config_fields.h"

namespace aiq {
namespace {

constexpr std::size_t kFileBytesMax = 4U << 20;
constexpr std::size_t kTextBytesMax = 4096;

int line_of(const toml::source_region& source) {
  return static_cast<int>(source.begin.line);
}

// Reads one table into one struct. Values never appear in an error: one may be a secret that was
// written into the wrong place.
class Reader {
 public:
  // `prefix`: of the keys in a table within the section, "cache." or "".
  Reader(const toml::table& table, std::string section, std::string prefix, Config& config)
      : table_(table), section_(std::move(section)), prefix_(std::move(prefix)), config_(config) {}

  void text(std::string_view key, std::string& out) {
    if (const toml::node* node = take(key)) out = string_of(key, *node);
  }

  void choice(std::string_view key, std::string& out,
              std::initializer_list<std::string_view> allowed) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    out = string_of(key, *node);
    one_of(key, out, allowed.begin(), allowed.size());
  }

  template <class T>
  void number(std::string_view key, T& out, std::int64_t min, std::int64_t max) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const auto* value = node->as_integer();
    if (value == nullptr || value->get() < min || value->get() > max) {
      fail(key,
           "expected a whole number from " + std::to_string(min) + " to " + std::to_string(max));
    }
    out = static_cast<T>(value->get());
  }

  void real(std::string_view key, double& out, int min, int max) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !(*value >= min && *value <= max)) {
      fail(key, "expected a number from " + std::to_string(min) + " to " + std::to_string(max));
    }
    out = *value;
  }

  void flag(std::string_view key, bool& out) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const auto* value = node->as_boolean();
    if (value == nullptr) fail(key, "expected true or false");
    out = value->get();
  }

  // T: DurationMs or an optional one.
  template <class T>
  void duration(std::string_view key, T& out, DurationMs min) {
    if (const toml::node* node = take(key)) out = duration_of(key, *node, min);
  }

  void optional_duration(std::string_view key, std::optional<DurationMs>& out, DurationMs min) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const auto* value = node->as_string();
    if (value != nullptr && value->get().empty()) {
      out.reset();
    } else {
      out = duration_of(key, *node, min);
    }
  }

  void size(std::string_view key, std::int64_t& out) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const auto* value = node->as_string();
    const auto bytes = value == nullptr ? std::nullopt : parse_size(value->get());
    if (!bytes) fail(key, R"(expected a size in quotes, such as "64KiB" or "16MiB")");
    out = *bytes;
  }

  void level(std::string_view key, LogLevel& out) {
    if (const toml::node* node = take(key)) {
      out = static_cast<LogLevel>(one_of(key, string_of(key, *node), kLevelNames, 4));
    }
  }

  void format(std::string_view key, bool& json) {
    static constexpr std::string_view kFormats[] = {"text", "json"};
    if (const toml::node* node = take(key)) {
      json = one_of(key, string_of(key, *node), kFormats, 2) == 1;
    }
  }

  // T: CachePolicy or an optional one.
  template <class T>
  void policy(std::string_view key, T& out) {
    if (const toml::node* node = take(key)) {
      out = static_cast<CachePolicy>(one_of(key, string_of(key, *node), kPolicyNames, 3));
    }
  }

  void cache(std::string_view key, CacheOverride& out) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    if (!node->is_table()) fail(key, "expected a table such as { soft_ttl = \"1h\" }");
    Reader inner(*node->as_table(), section_, prefix_ + std::string(key) + ".", config_);
    cache_override_fields(inner, out);
    inner.finish();
  }

  void names(std::string_view key, std::vector<std::string>& out) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const toml::array* values = node->as_array();
    if (values == nullptr) fail(key, "expected a list of names in quotes");
    out.clear();
    for (const toml::node& value : *values) {
      const auto* name = value.as_string();
      if (name == nullptr || !is_label_name(name->get())) {
        fail(key, "expected a list of names in quotes");
      }
      out.push_back(name->get());
    }
  }

  void headers(std::string_view key, std::vector<std::pair<std::string, std::string>>& out) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    if (!node->is_table()) fail(key, R"(expected a table such as { "X-Team" = "a" })");
    Reader inner(*node->as_table(), section_, prefix_ + std::string(key) + ".", config_);
    out.clear();
    for (const auto& [name, value] : *node->as_table()) {
      std::string content;
      inner.text(name.str(), content);
      out.emplace_back(std::string(name.str()), content);
    }
  }

  // A table within this one, or nullptr when it is absent.
  const toml::table* table(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) fail(key, "expected a section");
    return node->as_table();
  }

  // Every key must have been asked for. Of several unknown ones the first in the file is named.
  void finish() {
    const toml::key* unknown = nullptr;
    bool is_table = false;
    for (const auto& [key, value] : table_) {
      if (seen_.contains(key.str())) continue;
      if (unknown == nullptr || line_of(key.source()) < line_of(unknown->source())) {
        unknown = &key;
        is_table = value.is_table();
      }
    }
    if (unknown == nullptr) return;
    note(*unknown);
    std::string message = "unknown key";
    if (unknown->str() == "api_key") {
      message += "; a secret is referenced, by api_key_env or api_key_file";
    } else if (is_table && !section_.empty()) {
      message += "; a name with a dot in it is written in quotes";
    }
    // The name may itself be a secret that was put into the wrong place.
    fail(redact(unknown->str()), message);
  }

  [[noreturn]] void fail(std::string_view key, std::string_view message) const {
    config_fail(config_, section_, prefix_ + std::string(key), message);
  }

 private:
  const toml::node* take(std::string_view key) {
    const auto found = table_.find(key);
    if (found == table_.end()) return nullptr;
    seen_.insert(found->first.str());
    note(found->first);
    return &found->second;
  }

  void note(const toml::key& key) {
    config_.lines[full_key(section_, prefix_ + std::string(key.str()))] = line_of(key.source());
  }

  std::string string_of(std::string_view key, const toml::node& node) const {
    const auto* value = node.as_string();
    if (value == nullptr) fail(key, "expected text in quotes");
    if (!is_plain_text(value->get(), kTextBytesMax)) {
      fail(key, "expected text of at most 4096 bytes without control characters");
    }
    return value->get();
  }

  DurationMs duration_of(std::string_view key, const toml::node& node, DurationMs min) const {
    const auto* value = node.as_string();
    const auto ms = value == nullptr ? std::nullopt : parse_duration(value->get());
    if (!ms) fail(key, R"(expected a duration in quotes, such as "250ms", "5s" or "12h")");
    if (*ms < min) fail(key, "must be more than 0");
    return *ms;
  }

  std::size_t one_of(std::string_view key, std::string_view value, const std::string_view* allowed,
                     std::size_t count) const {
    std::string list;
    for (std::size_t i = 0; i < count; ++i) {
      if (allowed[i] == value) return i;
      if (allowed[i].empty()) continue;
      list.append(list.empty() ? "" : ", ").append(allowed[i]);
    }
    fail(key, "expected one of " + list);
  }

  const toml::table& table_;
  std::string section_, prefix_;
  Config& config_;
  std::set<std::string_view> seen_;
};

// [name] with the keys of `fields`.
template <class Fields>
void read_section(Reader& top, Config& config, std::string_view name, const Fields& fields) {
  const toml::table* table = top.table(name);
  if (table == nullptr) return;
  Reader reader(*table, std::string(name), "", config);
  fields(reader);
  reader.finish();
}

// [name.X] for every X of the file.
template <class Value, class Fields>
void read_named(Reader& top, Config& config, std::string_view name,
                std::map<std::string, Value>& out, bool (*is_name)(std::string_view),
                const Fields& fields) {
  const toml::table* table = top.table(name);
  if (table == nullptr) return;
  Reader group(*table, std::string(name), "", config);
  for (const auto& [key, node] : *table) {
    const toml::table* section = group.table(key.str());
    if (!is_name(key.str())) group.fail(redact(key.str()), "is not a valid name");
    Value value;
    value.name = std::string(key.str());
    const std::string full = full_key(name, key.str());
    Reader reader(*section, full, "", config);
    fields(reader, value);
    reader.finish();
    out.emplace(value.name, std::move(value));
  }
}

void read_all(const toml::table& table, Config& config) {
  Reader top(table, "", "", config);
  top_fields(top, config);
  read_section(top, config, "daemon", [&](Reader& r) { daemon_fields(r, config.daemon); });
  read_section(top, config, "limits", [&](Reader& r) { limits_fields(r, config.limits); });
  read_section(top, config, "retry", [&](Reader& r) { retry_fields(r, config.retry); });
  read_section(top, config, "cache", [&](Reader& r) { cache_fields(r, config.cache); });
  read_section(top, config, "breaker", [&](Reader& r) { breaker_fields(r, config.breaker); });
  read_section(top, config, "retention", [&](Reader& r) { retention_fields(r, config.retention); });
  read_section(top, config, "tracing", [&](Reader& r) { tracing_fields(r, config.tracing); });
  read_named(top, config, "vendors", config.vendors, is_label_name,
             [](Reader& r, VendorConfig& vendor) { vendor_fields(r, vendor); });
  read_named(top, config, "models", config.models, is_label_name,
             [](Reader& r, ModelConfig& model) { model_fields(r, model); });
  read_named(top, config, "tenants", config.tenants, is_tenant_name,
             [](Reader& r, TenantConfig& tenant) { tenant_fields(r, tenant); });
  top.finish();
}

}  // namespace

void config_fail(const Config& config, std::string_view section, std::string_view key,
                 std::string_view message) {
  std::string text = section.empty() ? "" : "[" + std::string(section) + "] ";
  text.append(key).append(": ").append(message);
  auto line = config.lines.find(full_key(section, key));
  if (line == config.lines.end()) line = config.lines.find(std::string(section));
  if (line != config.lines.end()) {
    text += " (" + config.path + ":" + std::to_string(line->second) + ")";
  } else if (!config.path.empty()) {
    text += " (" + config.path + ")";
  }
  throw ConfigError(text);
}

Config parse_config(std::string_view toml, const std::string& name) {
  Config config;
  config.path = name;
  try {
    read_all(toml::parse(toml), config);
  } catch (const toml::parse_error& error) {
    throw ConfigError("not TOML: " + redact(error.description()) + " (" + name + ":" +
                      std::to_string(line_of(error.source())) + ")");
  }
  check_config(config);
  return config;
}

Config load_config(const std::string& path) {
  if (path.empty()) return parse_config("", "");
  const auto text = read_file(path, kFileBytesMax);
  if (!text) throw ConfigError(text.error().message);
  return parse_config(*text, path);
}

}  // namespace aiq
