#pragma once
// From what a caller asks to a checked submission: validation, the body as sent, keys, cache
// settings, policy. No database.

#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/base/random.h"
#include "core/config/config.h"
#include "core/store/rows.h"

namespace aiq {

struct SubmitInput {
  std::string tenant = "default";
  std::string model, vendor;           // "" = from the body / by configuration
  std::optional<Endpoint> endpoint;    // nullopt = by the vendor's api
  std::optional<std::string> request;  // a vendor body; else a prompt:
  std::optional<std::string> prompt, system;
  std::optional<std::int64_t> max_tokens;
  std::optional<std::string> temperature;  // a JSON number as given
  int priority = 0;
  std::optional<UnixMs> run_at, deadline;
  std::optional<DurationMs> delay_ms;  // from now; excludes run_at
  std::string idempotency_key, scope, locale, safety, correlation_id;
  Labels labels;
  std::optional<int> max_attempts;
  std::optional<DurationMs> ttl_ms;  // hard TTL of the entry it makes
  bool no_cache = false, no_store = false, bypass_cache = false, only_if_cached = false;
  std::optional<DurationMs> max_age_ms;
  bool resubmit = false;
};

struct PreparedSubmission {
  NewSubmission submission;
  std::vector<std::string> warnings;        // "the request asked for a stream; ..."
  std::int64_t prompt_tokens_estimate = 0;  // ceil(bytes / 4)
  std::optional<std::int64_t> output_limit;
};

// Whether a tenant may submit: it has a section, or limits.unknown_tenants lets it in.
[[nodiscard]] bool accepts_tenant(const Config& config, const std::string& tenant);

// What is wrong with all of `input` but the request itself: names, texts, numbers, policy, and the
// vendor if one is named.
[[nodiscard]] std::optional<Failure> check_submission_options(const Config& config,
                                                              const SubmitInput& input, UnixMs now);

// Failures: exit 2 (invalid input), exit 5 (disabled or unknown tenant, size, bypass not allowed).
[[nodiscard]] Expected<PreparedSubmission, Failure> prepare_submission(const Config& config,
                                                                       const SubmitInput& input,
                                                                       const std::string& actor,
                                                                       UnixMs now, Random& random);

}  // namespace aiq
