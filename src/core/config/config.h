#pragma once
// aiq.toml as a value: every key of the operator's contract with its default, checked.

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/duration.h"
#include "core/base/log.h"
#include "core/model/retry.h"

namespace aiq {

// Names the key and the line: `[vendors.main] rpm: expected a whole number (aiq.toml:12)`.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct DaemonConfig {
  std::string socket;  // "" = DATABASE.sock
  std::string socket_group;
  int workers = 2;
  int max_in_flight = 512;
  DurationMs lease_ms = 60'000;
  DurationMs drain_timeout_ms = 30'000;
  std::string metrics_listen;
  std::optional<DurationMs> aggregate_every_ms = 60'000;  // nullopt = only by cron
  std::optional<DurationMs> audit_every_ms = 3'600'000;
  DurationMs age_step_ms = 60'000;
  std::int64_t disk_reserve_bytes = 256LL << 20;
  LogConfig log;
};

struct LimitsConfig {
  std::int64_t request_bytes = 16LL << 20;
  std::int64_t response_bytes = 16LL << 20;
  std::string unknown_tenants = "auto";  // accept | refuse | auto
};

enum class CachePolicy { all, deterministic, off };

struct CacheConfig {
  CachePolicy policy = CachePolicy::all;
  DurationMs soft_ttl_ms = 12LL * 3600 * 1000;
  DurationMs hard_ttl_ms = 24LL * 3600 * 1000;
  double jitter = 0.1;  // 0 .. 1
  std::int64_t max_bytes = 1LL << 30;
};

// `cache = { policy, soft_ttl, hard_ttl }` of a model or tenant; absent = inherited.
struct CacheOverride {
  std::optional<CachePolicy> policy;
  std::optional<DurationMs> soft_ttl_ms, hard_ttl_ms;
};

struct BreakerConfig {
  double failure_share = 0.5;
  DurationMs window_ms = 30'000;
  int min_requests = 10;
  DurationMs open_for_ms = 15'000;
  int probes = 2;
};

// By age since final; nullopt = keep.
struct RetentionConfig {
  std::optional<DurationMs> completed_ms = 30LL * 86'400'000;
  std::optional<DurationMs> failed_ms = 90LL * 86'400'000;
  std::optional<DurationMs> cancelled_ms = 7LL * 86'400'000;
  std::optional<DurationMs> client_keys_ms = 30LL * 86'400'000;
  std::optional<DurationMs> outbox_ms = 7LL * 86'400'000;
  std::optional<DurationMs> attempts_ms = 90LL * 86'400'000;
};

struct TracingConfig {
  std::string endpoint;
  double sample = 1.0;
};

struct VendorConfig {
  std::string name;
  std::string api;  // openai | anthropic | echo
  std::string base_url;
  std::string api_key_env, api_key_file;
  std::string auth;  // bearer | x-api-key | none, never ""
  std::string anthropic_version = "2023-06-01";
  std::vector<std::pair<std::string, std::string>> headers;
  DurationMs connect_timeout_ms = 5'000;
  DurationMs first_byte_timeout_ms = 120'000;
  DurationMs total_timeout_ms = 600'000;
  DurationMs max_connection_age_ms = 55'000;
  int max_in_flight = 64;
  std::int64_t rpm = 0, tpm = 0;
  std::string idempotency_header, attempt_header;
  std::string ca_file, proxy;
  std::string price_vendor;  // never "": default is the name
};

struct ModelConfig {
  std::string name;
  std::string vendor;
  std::int64_t rpm = 0, tpm = 0;
  int max_in_flight = 0;
  std::int64_t max_output_tokens = 0;
  std::string max_tokens_field = "max_tokens";
  std::vector<std::string> fallback;
  CacheOverride cache;
};

struct TenantConfig {
  std::string name;
  std::int64_t weight = 1;
  int max_in_flight = 0;
  std::int64_t rpm = 0, tpm = 0;
  std::string budget;
  std::string cache_group;
  CacheOverride cache;
  bool allow_bypass = true;
  bool disabled = false;
};

struct Config {
  std::string path;  // of the file read, "" = defaults only
  std::string db;    // "" = by environment and user (resolve_db_path)
  std::string default_vendor;
  DaemonConfig daemon;
  LimitsConfig limits;
  RetryPolicy retry;
  CacheConfig cache;
  BreakerConfig breaker;
  RetentionConfig retention;
  TracingConfig tracing;
  std::map<std::string, VendorConfig> vendors;  // with none configured: the built-in `echo`
  std::map<std::string, ModelConfig> models;
  std::map<std::string, TenantConfig> tenants;
  // Line of every key and section that the file has, by full name: "vendors.main.rpm" -> 12.
  std::map<std::string, int> lines;

  // The vendor that serves `model`: its section's, else default_vendor, else the only vendor.
  // nullptr when it can't be told.
  [[nodiscard]] const VendorConfig* vendor_of_model(const std::string& model) const;
  // Effective settings; a tenant or model without a section has the defaults.
  [[nodiscard]] TenantConfig tenant(const std::string& name) const;
  [[nodiscard]] ModelConfig model(const std::string& name) const;
  // Tenant over model over [cache].
  [[nodiscard]] CacheConfig cache_for(const std::string& tenant, const std::string& model) const;
  // Hash over all effective values and no secret: equal configurations have equal fingerprints.
  [[nodiscard]] std::string fingerprint() const;
};

// Keys that are set and that this version does not act on, a sentence each: who relies on one must
// be told.
[[nodiscard]] std::vector<std::string> without_effect(const Config& config);

// Environment as a function so that tests need not change the process's.
using GetEnv = std::string (*)(const char* name);  // "" = not set
[[nodiscard]] std::string process_env(const char* name);

// Reads and checks. Throws ConfigError. `path` "" = all defaults.
[[nodiscard]] Config load_config(const std::string& path);
[[nodiscard]] Config parse_config(std::string_view toml, const std::string& name);

// --config > $AIQ_CONFIG > $XDG_CONFIG_HOME/aiq/aiq.toml > /etc/aiq/aiq.toml; "" = none exists.
// A file that --config or $AIQ_CONFIG names must exist (ConfigError on load).
[[nodiscard]] std::string find_config_path(const std::string& option, GetEnv env);
// Absolute, links resolved. Throws ConfigError for ":memory:".
// --db > $AIQ_DB > config.db > /var/lib/aiq/aiq.db for root, else $XDG_STATE_HOME/aiq/aiq.db.
[[nodiscard]] std::string resolve_db_path(const std::string& option, const Config& config,
                                          GetEnv env, bool is_root);
// config.daemon.socket or DATABASE.sock.
[[nodiscard]] std::string resolve_socket_path(const Config& config, const std::string& db_path);

// The secret of a vendor, from its environment variable or file, trailing white space removed;
// registered for redaction. "" when none is configured or auth is none. A file named without a
// slash is looked for in $CREDENTIALS_DIRECTORY (systemd) when that is set. Throws ConfigError when
// it is configured and can't be read.
[[nodiscard]] std::string read_credential(const VendorConfig& vendor, GetEnv env);

// One line per key: name, effective value as TOML, origin ("default" or "aiq.toml:12").
struct EffectiveValue {
  std::string key, value, origin;
};
[[nodiscard]] std::vector<EffectiveValue> effective_values(const Config& config);

}  // namespace aiq
