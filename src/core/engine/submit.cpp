#include "core/engine/submit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_canonical.h"
#include "core/base/names.h"
#include "core/base/redact.h"
#include "core/base/spelling.h"
#include "core/vendor/vendor.h"

namespace aiq {
namespace {

// Longest texts of a submission, in bytes.
constexpr std::size_t kKeyBytes = 200;  // client key, correlation id, locale, safety
constexpr std::size_t kScopeBytes = 1000;
constexpr std::size_t kLabelBytes = 1000;
constexpr std::size_t kLabelsMax = 64;
// A rough token count before any vendor has counted: English has about four bytes in one.
constexpr std::int64_t kBytesPerToken = 4;

Failure invalid(std::string code, const std::string& message, std::string hint = "") {
  return {Exit::usage, std::move(code), redact(message), std::move(hint)};
}

Failure refused(std::string code, const std::string& message, std::string hint = "") {
  return {Exit::refused, std::move(code), redact(message), std::move(hint)};
}

std::string in_quotes(std::string_view text) {
  std::string out;
  append_json_string(out, text.substr(0, 200));
  return out;
}

// The nearest name as a sentence before another one.
template <class Map>
std::string nearest_first(std::string_view word, const Map& sections) {
  const std::string question = did_you_mean(word, names_of(sections));
  return question.empty() ? "" : question + " ";
}

std::optional<Failure> check_names(const SubmitInput& in) {
  if (!is_tenant_name(in.tenant))
    return invalid("invalid_tenant", in_quotes(in.tenant) + " is not a tenant name",
                   "1 to 64 of the characters A-Z a-z 0-9 . _ -");
  if (!in.vendor.empty() && !is_label_name(in.vendor))
    return invalid("invalid_vendor", in_quotes(in.vendor) + " is not a vendor name");
  if (in.labels.size() > kLabelsMax)
    return invalid("invalid_label",
                   "more than " + std::to_string(kLabelsMax) + " labels on one request");
  for (const auto& [key, value] : in.labels) {
    if (!is_label_name(key))
      return invalid("invalid_label", in_quotes(key) + " is not a label key",
                     "1 to 128 of the characters A-Z a-z 0-9 . _ : / -");
    if (!is_plain_text(value, kLabelBytes))
      return invalid("invalid_label", "the value of label " + key + " is too long or not text");
  }
  return std::nullopt;
}

std::optional<Failure> check_texts(const SubmitInput& in) {
  struct Text {
    const char* name;
    const std::string& value;
    std::size_t max_bytes;
  };
  const Text texts[] = {{"idempotency_key", in.idempotency_key, kKeyBytes},
                        {"correlation_id", in.correlation_id, kKeyBytes},
                        {"locale", in.locale, kKeyBytes},
                        {"safety", in.safety, kKeyBytes},
                        {"scope", in.scope, kScopeBytes}};
  for (const Text& text : texts) {
    if (is_plain_text(text.value, text.max_bytes)) continue;
    return invalid("invalid_" + std::string(text.name),
                   std::string(text.name) + " is longer than " + std::to_string(text.max_bytes) +
                       " bytes, has control characters or is not UTF-8");
  }
  return std::nullopt;
}

UnixMs start_of(const SubmitInput& in, UnixMs now) {
  return in.delay_ms ? now + *in.delay_ms : in.run_at.value_or(now);
}

std::optional<Failure> check_numbers(const SubmitInput& in, UnixMs now) {
  if (in.priority < kPriorityMin || in.priority > kPriorityMax)
    return invalid("invalid_priority",
                   "priority " + std::to_string(in.priority) + " is outside of -100 .. 100");
  if (in.max_attempts && *in.max_attempts < 0)
    return invalid("invalid_max_attempts", "max_attempts is negative");
  // A deadline that passed on the way here is no mistake: the job is then never sent.
  if (const UnixMs start = start_of(in, now); in.deadline && start > now && *in.deadline <= start)
    return invalid("deadline_before_start", "the deadline is not after the time of the start");
  if (in.ttl_ms && *in.ttl_ms < 0) return invalid("invalid_ttl", "the ttl is negative");
  if (in.max_age_ms && *in.max_age_ms < 0)
    return invalid("invalid_max_age", "the maximum age is negative");
  if (in.only_if_cached && (in.bypass_cache || in.no_cache))
    return invalid("conflicting_options", "only_if_cached needs the cache to be read");
  return std::nullopt;
}

}  // namespace

bool accepts_tenant(const Config& config, const std::string& tenant) {
  if (config.tenants.contains(tenant)) return true;
  const std::string& rule = config.limits.unknown_tenants;
  if (rule == "accept") return true;
  if (rule == "refuse") return false;
  if (tenant == "default") return true;
  return std::all_of(config.tenants.begin(), config.tenants.end(),
                     [](const auto& entry) { return entry.first == "default"; });
}

namespace {

std::optional<Failure> check_policy(const Config& config, const SubmitInput& in) {
  if (!accepts_tenant(config, in.tenant))
    return refused("unknown_tenant", "tenant " + in.tenant + " is not configured",
                   nearest_first(in.tenant, config.tenants) + "add [tenants." + in.tenant +
                       "] to the configuration, or set "
                       "[limits] unknown_tenants = \"accept\"");
  const TenantConfig tenant = config.tenant(in.tenant);
  if (tenant.disabled) return refused("tenant_disabled", "tenant " + in.tenant + " is disabled");
  if (in.bypass_cache && !tenant.allow_bypass)
    return refused("bypass_not_allowed",
                   "tenant " + in.tenant + " may not bypass the cache (allow_bypass = false)");
  return std::nullopt;
}

Expected<const VendorConfig*, Failure> choose_vendor(const Config& config, const SubmitInput& in,
                                                     const std::string& model) {
  if (!in.vendor.empty()) {
    const auto found = config.vendors.find(in.vendor);
    if (found != config.vendors.end()) return &found->second;
    return Unexpected{invalid(
        "unknown_vendor", "vendor " + in.vendor + " is not configured",
        nearest_first(in.vendor, config.vendors) + "`aiq vendor list` shows the configured ones")};
  }
  if (const VendorConfig* vendor = config.vendor_of_model(model)) return vendor;
  return Unexpected{invalid("unknown_model", "no vendor is configured for model " + model,
                            nearest_first(model, config.models) +
                                "name one with --vendor, or add [models.\"" + model +
                                "\"] or default_vendor to the configuration")};
}

// A JSON number, as it will stand in the body.
bool is_json_number(const std::string& text) {
  return !text.empty() && text.find_first_of(" \t\r\n") == std::string::npos &&
         nlohmann::json::parse(text, nullptr, false).is_number();
}

std::optional<Failure> check_source(const SubmitInput& in) {
  if (in.request && in.prompt)
    return invalid("conflicting_options", "give either a prompt or a request, not both");
  if (!in.request && !in.prompt)
    return invalid("missing_request", "there is no prompt and no request");
  if (in.request && (in.system || in.max_tokens || in.temperature))
    return invalid("conflicting_options",
                   "system, max_tokens and temperature belong to a prompt; a request has its own");
  if (in.max_tokens && *in.max_tokens < 1)
    return invalid("invalid_max_tokens", "max_tokens is less than 1");
  if (in.temperature && !is_json_number(*in.temperature))
    return invalid("invalid_temperature", in_quotes(*in.temperature) + " is not a number");
  if (in.prompt && (!is_valid_utf8(*in.prompt) || !is_valid_utf8(in.system.value_or(""))))
    return invalid("invalid_utf8", "the prompt is not valid UTF-8");
  return std::nullopt;
}

std::optional<Failure> check_size(const Config& config, std::size_t bytes) {
  const std::int64_t limit = config.limits.request_bytes;
  if (limit == 0 || static_cast<std::int64_t>(bytes) <= limit) return std::nullopt;
  return refused("request_too_large",
                 "the request has " + std::to_string(bytes) +
                     " bytes, more than [limits] request_bytes = " + format_size(limit));
}

// What the configuration and the caller say of the cache, as one.
void apply_cache(const Config& config, const SubmitInput& in, const CheckedBody& body,
                 Random& random, NewSubmission& out) {
  const CacheConfig cache = config.cache_for(in.tenant, out.model);
  const bool usable =
      cache.policy == CachePolicy::all ||
      (cache.policy == CachePolicy::deterministic && body.temperature && *body.temperature == 0.0);
  out.cache.read = usable && !in.no_cache && !in.bypass_cache;
  out.cache.store = usable && !in.no_store && !in.bypass_cache;
  out.cache.coalesce = !in.bypass_cache;
  out.cache.only_if_cached = in.only_if_cached;
  out.cache.max_age = in.max_age_ms;

  const DurationMs hard = in.ttl_ms.value_or(cache.hard_ttl_ms);
  const DurationMs soft = std::min(cache.soft_ttl_ms, hard);
  // One factor for both keeps soft <= hard.
  const double kept = 1.0 - std::clamp(cache.jitter, 0.0, 1.0) * random.unit();
  out.hard_ttl_ms = std::llround(static_cast<double>(hard) * kept);
  out.soft_ttl_ms = std::min(std::llround(static_cast<double>(soft) * kept),
                             static_cast<long long>(out.hard_ttl_ms));
}

struct Target {
  std::string model;
  const VendorConfig* vendor = nullptr;
  const Vendor* adapter = nullptr;
  Endpoint endpoint = Endpoint::chat;
};

Expected<Target, Failure> choose_target(const Config& config, const SubmitInput& in,
                                        const std::string& model) {
  if (model.empty())
    return Unexpected{invalid("missing_model", "no model is named", "name one with --model")};
  if (!is_label_name(model))
    return Unexpected{invalid("invalid_model", in_quotes(model) + " is not a model name",
                              "1 to 128 of the characters A-Z a-z 0-9 . _ : / -")};
  auto vendor = choose_vendor(config, in, model);
  if (!vendor) return Unexpected{std::move(vendor).error()};
  Target out{.model = model, .vendor = *vendor, .adapter = find_vendor((*vendor)->api)};
  AIQ_CHECK(out.adapter != nullptr);  // the configuration was checked
  out.endpoint = in.endpoint.value_or(out.adapter->default_endpoint());
  if (!out.adapter->supports(out.endpoint))
    return Unexpected{invalid("unsupported_endpoint",
                              "vendor " + out.vendor->name + " (" + out.vendor->api +
                                  ") has no endpoint " + std::string(to_string(out.endpoint)),
                              "requests are not translated between endpoints")};
  return out;
}

std::string body_of_prompt(const Config& config, const SubmitInput& in, const Target& target) {
  return target.adapter->prompt_body(
      target.endpoint, {.model = target.model,
                        .prompt = *in.prompt,
                        .system = in.system.value_or(""),
                        .max_tokens = in.max_tokens,
                        .max_tokens_field = config.model(target.model).max_tokens_field,
                        .temperature = in.temperature});
}

Expected<CheckedBody, Failure> checked(std::string_view body) {
  auto out = check_body(body);
  if (out) return std::move(*out);
  InvalidRequest error = std::move(out).error();
  // The code of batch files speaks of a line.
  if (error.code == "invalid_json_line") error.code = "invalid_json";
  return Unexpected{invalid(error.code, error.message)};
}

std::optional<Failure> check_input(const Config& config, const SubmitInput& in, UnixMs now) {
  if (auto failure = check_names(in)) return failure;
  if (auto failure = check_texts(in)) return failure;
  if (auto failure = check_numbers(in, now)) return failure;
  if (auto failure = check_source(in)) return failure;
  if (auto failure = check_policy(config, in)) return failure;
  return check_size(config, in.request ? in.request->size() : in.prompt->size());
}

struct Body {
  Target target;
  CheckedBody checked;
};

// The body, by whichever way it was given, and where it goes.
Expected<Body, Failure> make_body(const Config& config, const SubmitInput& in,
                                  std::vector<std::string>& warnings) {
  if (in.prompt) {
    auto target = choose_target(config, in, in.model);
    if (!target) return Unexpected{std::move(target).error()};
    auto body = checked(body_of_prompt(config, in, *target));
    if (!body) return Unexpected{std::move(body).error()};
    if (auto failure = check_size(config, body->sent.size())) return Unexpected{*failure};
    return Body{std::move(*target), std::move(*body)};
  }
  auto body = checked(*in.request);
  if (!body) return Unexpected{std::move(body).error()};
  if (!in.model.empty() && !body->model.empty() && in.model != body->model)
    return Unexpected{invalid("model_mismatch", "the model " + in_quotes(in.model) +
                                                    " differs from the request's own, " +
                                                    in_quotes(body->model))};
  auto target = choose_target(config, in, in.model.empty() ? body->model : in.model);
  if (!target) return Unexpected{std::move(target).error()};
  if (body->model.empty())
    warnings.emplace_back("the request names no model; it is sent as it was given");
  if (body->stream_removed)
    warnings.emplace_back("the request asked for a stream; it is sent with \"stream\": false");
  return Body{std::move(*target), std::move(*body)};
}

// 0 means no limit in the configuration; a job has always one.
int attempts_limit(int configured) {
  return configured == 0 ? std::numeric_limits<int>::max() : configured;
}

}  // namespace

std::optional<Failure> check_submission_options(const Config& config, const SubmitInput& input,
                                                UnixMs now) {
  if (auto failure = check_names(input)) return failure;
  if (auto failure = check_texts(input)) return failure;
  if (auto failure = check_numbers(input, now)) return failure;
  if (auto failure = check_policy(config, input)) return failure;
  if (input.vendor.empty()) return std::nullopt;
  const auto vendor = choose_vendor(config, input, input.model);
  return vendor ? std::nullopt : std::optional(vendor.error());
}

Expected<PreparedSubmission, Failure> prepare_submission(const Config& config,
                                                         const SubmitInput& input,
                                                         const std::string& actor, UnixMs now,
                                                         Random& random) {
  if (auto failure = check_input(config, input, now)) return Unexpected{*failure};
  PreparedSubmission out;
  auto made = make_body(config, input, out.warnings);
  if (!made) return Unexpected{std::move(made).error()};
  CheckedBody& body = made->checked;
  const std::string group = config.tenant(input.tenant).cache_group;

  NewSubmission& s = out.submission;
  s.tenant = input.tenant;
  s.vendor = made->target.vendor->name;
  s.model = made->target.model;
  s.endpoint = made->target.endpoint;
  s.keys = derive_keys({.tenant = s.tenant,
                        .cache_group = group,
                        .vendor = s.vendor,
                        .model = s.model,
                        .endpoint = s.endpoint,
                        .locale = input.locale,
                        .safety = input.safety,
                        .scope = input.scope},
                       body);
  s.client_key = input.idempotency_key;
  s.correlation_id = input.correlation_id.empty() ? random.token() : input.correlation_id;
  s.cache_owner = group.empty() ? "tenant:" + s.tenant : "group:" + group;
  s.scope = input.scope;
  s.locale = input.locale;
  s.safety = input.safety;
  s.labels = input.labels;
  s.priority = input.priority;
  s.run_at = start_of(input, now);
  s.deadline = input.deadline;
  s.max_attempts = attempts_limit(input.max_attempts.value_or(config.retry.max_attempts));
  s.resubmit = input.resubmit;
  s.actor = actor;
  apply_cache(config, input, body, random, s);

  const auto bytes = static_cast<std::int64_t>(body.sent.size());
  out.prompt_tokens_estimate = (bytes + kBytesPerToken - 1) / kBytesPerToken;
  s.prompt_tokens = out.prompt_tokens_estimate;
  s.output_tokens = body.output_tokens();
  out.output_limit = s.output_tokens;
  const std::int64_t configured = config.model(s.model).max_output_tokens;
  if (!out.output_limit && configured > 0) out.output_limit = configured * body.choices;
  s.body = std::move(body.sent);
  return out;
}

}  // namespace aiq
