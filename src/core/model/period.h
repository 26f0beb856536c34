#pragma once
// Periods of money: UTC hours, half-open, named by their start.

#include <compare>
#include <cstdint>
#include <string>

#include "core/base/clock.h"

namespace aiq {

inline constexpr std::int64_t kHourMs = 3'600'000;

// The hour that holds `at`.
[[nodiscard]] constexpr UnixMs hour_of(UnixMs at) {
  const std::int64_t rest = at % kHourMs;
  return rest < 0 ? at - rest - kHourMs : at - rest;
}
[[nodiscard]] constexpr bool is_hour(UnixMs at) {
  return at % kHourMs == 0;
}

// A tenant's hour: the unit of aggregation, of freezes and of summaries.
struct TenantPeriod {
  std::string tenant;
  UnixMs period = 0;

  bool operator==(const TenantPeriod&) const = default;
  auto operator<=>(const TenantPeriod&) const = default;
};

}  // namespace aiq
