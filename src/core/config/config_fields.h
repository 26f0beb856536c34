#pragma once
// Every key of aiq.toml once: its name, where its value lives, and its range. The reader of the
// file (config_parse.cpp) and the printer of effective values (config_values.cpp) both go through
// these functions, so that no key is known to one of them only. A part of core/config.
//
// V has: text, choice, number, real, flag, duration, optional_duration, size, level, format,
// policy, cache, names, headers. C is the section's struct, const for a printer.

#include <cstdint>

#include "core/config/config.h"

namespace aiq {

inline constexpr std::int64_t kWholeMax = 1'000'000'000;     // fits an int
inline constexpr std::int64_t kRateMax = 1'000'000'000'000;  // per minute; 60 times it fits 64 bits
inline constexpr DurationMs kSomeTime = 1;                   // smallest of those that can't be 0
inline constexpr DurationMs kAnyTime = 0;

template <class V, class C>
void top_fields(V& v, C& c) {
  v.text("db", c.db);
  v.text("default_vendor", c.default_vendor);
}

template <class V, class C>
void daemon_fields(V& v, C& c) {
  v.text("socket", c.socket);
  v.text("socket_group", c.socket_group);
  v.number("workers", c.workers, 1, 256);
  v.number("max_in_flight", c.max_in_flight, 0, kWholeMax);
  v.duration("lease", c.lease_ms, kSomeTime);
  v.duration("drain_timeout", c.drain_timeout_ms, kAnyTime);
  v.text("metrics_listen", c.metrics_listen);
  v.optional_duration("aggregate_every", c.aggregate_every_ms, kSomeTime);
  v.optional_duration("audit_every", c.audit_every_ms, kSomeTime);
  v.duration("age_step", c.age_step_ms, kSomeTime);
  v.size("disk_reserve", c.disk_reserve_bytes);
  v.format("log_format", c.log.json);
  v.level("log_level", c.log.level);
  v.text("log_file", c.log.file);
}

template <class V, class C>
void limits_fields(V& v, C& c) {
  v.size("request_bytes", c.request_bytes);
  v.size("response_bytes", c.response_bytes);
  v.choice("unknown_tenants", c.unknown_tenants, {"accept", "refuse", "auto"});
}

template <class V, class C>
void retry_fields(V& v, C& c) {
  v.number("max_attempts", c.max_attempts, 0, kWholeMax);
  v.duration("base", c.base_ms, kAnyTime);
  v.duration("cap", c.cap_ms, kAnyTime);
  v.number("unknown_retries", c.unknown_retries, 0, kWholeMax);
  v.number("crash_limit", c.crash_limit, 0, kWholeMax);
  v.number("uncounted_max", c.uncounted_max, 0, kWholeMax);
  v.duration("give_up_after", c.give_up_after_ms, kAnyTime);
}

template <class V, class C>
void cache_fields(V& v, C& c) {
  v.policy("policy", c.policy);
  v.duration("soft_ttl", c.soft_ttl_ms, kAnyTime);
  v.duration("hard_ttl", c.hard_ttl_ms, kAnyTime);
  v.real("jitter", c.jitter, 0, 1);
  v.size("max_bytes", c.max_bytes);
}

template <class V, class C>
void breaker_fields(V& v, C& c) {
  v.real("failure_share", c.failure_share, 0, 1);
  v.duration("window", c.window_ms, kSomeTime);
  v.number("min_requests", c.min_requests, 1, kWholeMax);
  v.duration("open_for", c.open_for_ms, kSomeTime);
  v.number("probes", c.probes, 1, kWholeMax);
}

template <class V, class C>
void retention_fields(V& v, C& c) {
  v.optional_duration("completed", c.completed_ms, kAnyTime);
  v.optional_duration("failed", c.failed_ms, kAnyTime);
  v.optional_duration("cancelled", c.cancelled_ms, kAnyTime);
  v.optional_duration("client_keys", c.client_keys_ms, kAnyTime);
  v.optional_duration("outbox", c.outbox_ms, kAnyTime);
  v.optional_duration("attempts", c.attempts_ms, kAnyTime);
}

template <class V, class C>
void tracing_fields(V& v, C& c) {
  v.text("endpoint", c.endpoint);
  v.real("sample", c.sample, 0, 1);
}

template <class V, class C>
void vendor_fields(V& v, C& c) {
  v.choice("api", c.api, {"openai", "anthropic", "echo"});
  v.text("base_url", c.base_url);
  v.text("api_key_env", c.api_key_env);
  v.text("api_key_file", c.api_key_file);
  v.choice("auth", c.auth, {"", "bearer", "x-api-key", "none"});
  v.text("anthropic_version", c.anthropic_version);
  v.headers("headers", c.headers);
  v.duration("connect_timeout", c.connect_timeout_ms, kSomeTime);
  v.duration("first_byte_timeout", c.first_byte_timeout_ms, kSomeTime);
  v.duration("total_timeout", c.total_timeout_ms, kSomeTime);
  v.duration("max_connection_age", c.max_connection_age_ms, kAnyTime);
  v.number("max_in_flight", c.max_in_flight, 0, kWholeMax);
  v.number("rpm", c.rpm, 0, kRateMax);
  v.number("tpm", c.tpm, 0, kRateMax);
  v.text("idempotency_header", c.idempotency_header);
  v.text("attempt_header", c.attempt_header);
  v.text("ca_file", c.ca_file);
  v.text("proxy", c.proxy);
  v.text("price_vendor", c.price_vendor);
}

template <class V, class C>
void model_fields(V& v, C& c) {
  v.text("vendor", c.vendor);
  v.number("rpm", c.rpm, 0, kRateMax);
  v.number("tpm", c.tpm, 0, kRateMax);
  v.number("max_in_flight", c.max_in_flight, 0, kWholeMax);
  v.number("max_output_tokens", c.max_output_tokens, 0, kRateMax);
  v.text("max_tokens_field", c.max_tokens_field);
  v.names("fallback", c.fallback);
  v.cache("cache", c.cache);
}

template <class V, class C>
void tenant_fields(V& v, C& c) {
  v.number("weight", c.weight, 1, 1'000'000);
  v.number("max_in_flight", c.max_in_flight, 0, kWholeMax);
  v.number("rpm", c.rpm, 0, kRateMax);
  v.number("tpm", c.tpm, 0, kRateMax);
  v.text("budget", c.budget);
  v.text("cache_group", c.cache_group);
  v.cache("cache", c.cache);
  v.flag("allow_bypass", c.allow_bypass);
  v.flag("disabled", c.disabled);
}

// `cache = {...}` of a model or tenant.
template <class V, class C>
void cache_override_fields(V& v, C& c) {
  v.policy("policy", c.policy);
  v.duration("soft_ttl", c.soft_ttl_ms, kAnyTime);
  v.duration("hard_ttl", c.hard_ttl_ms, kAnyTime);
}

// A name as it stands in a dotted key: bare, or in quotes.
[[nodiscard]] std::string toml_key(std::string_view name);
// `section` and `key` as one full name; both may be empty, not together.
[[nodiscard]] std::string full_key(std::string_view section, std::string_view key);

inline constexpr std::string_view kLevelNames[] = {"debug", "info", "warn", "error"};
inline constexpr std::string_view kPolicyNames[] = {"all", "deterministic", "off"};

// Says where: `[section] key: message (file:line)`; the line is that of the key, else the section.
[[noreturn]] void config_fail(const Config& config, std::string_view section, std::string_view key,
                              std::string_view message);

// What concerns the content of values or several keys at once (config_check.cpp): throws
// ConfigError. Fills in the defaults that depend on other keys, and normalises URLs.
void check_config(Config& config);

}  // namespace aiq
