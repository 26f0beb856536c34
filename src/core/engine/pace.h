#pragma once
// How much of its limits a vendor and model is given. After a refusal for being asked too much
// (rate_limited, overloaded) half of what it was; then it grows back evenly. Pure.

#include <algorithm>

#include "core/store/rows.h"

namespace aiq {

inline constexpr DurationMs kPaceRecoveryMs = 120'000;  // from nothing to all
inline constexpr double kPaceMin = 0.05;

[[nodiscard]] inline double pace_share(const PaceRow& row, UnixMs now) {
  const auto passed = static_cast<double>(std::max<DurationMs>(0, now - row.at));
  return std::min(1.0, row.share + passed / static_cast<double>(kPaceRecoveryMs));
}

// `limit`, 0 = none, at this share of it; never 0 for a limit that is there.
[[nodiscard]] inline std::int64_t paced(std::int64_t limit, double share) {
  if (limit <= 0 || share >= 1.0) return limit;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(limit) * share));
}

}  // namespace aiq
