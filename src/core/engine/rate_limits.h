#pragma once
// Which limits per minute hold for a lane, and what a job takes from them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/store/rows.h"

namespace aiq {

// A limit that a vendor told counts this long after it was told.
inline constexpr DurationMs kReportedForMs = 600'000;

struct RateKey {
  std::string scope, name, unit;  // as in RateRow
  auto operator<=>(const RateKey&) const = default;
};

[[nodiscard]] inline std::string model_scope_name(const std::string& vendor,
                                                  const std::string& model) {
  return vendor + " " + model;
}

// The limits that are configured for a lane: of its vendor, model and tenant, of requests and
// tokens. `with_told`: also those of its model that only the vendor may have told (configured 0).
struct RateLimit {
  RateKey key;
  std::int64_t configured = 0;
};
[[nodiscard]] std::vector<RateLimit> rate_limits_of(const Config& config, const Lane& lane,
                                                    bool with_told);

// The smaller one of what is configured and what the vendor told lately; 0 = none.
[[nodiscard]] std::int64_t limit_in_force(std::int64_t configured, const RateRow* row, UnixMs now);

// What a job takes from windows of tokens before its usage is known: the prompt's estimate and the
// most that it may answer, by the request or else by the model's section.
[[nodiscard]] std::int64_t tokens_of(const Config& config, const std::string& model,
                                     std::int64_t prompt_tokens,
                                     std::optional<std::int64_t> output_tokens);

}  // namespace aiq
