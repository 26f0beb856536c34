#pragma once
// "50ms" or "50ms..2s", as --latency takes it.

#include <optional>
#include <string_view>

#include "core/base/duration.h"

namespace aiq::sim {

struct Latency {
  DurationMs min = 0;
  DurationMs max = 0;
};

// nullopt when it is not one duration, or two in rising order.
[[nodiscard]] inline std::optional<Latency> parse_latency(std::string_view text) {
  const auto dots = text.find("..");
  const auto min = parse_duration(text.substr(0, dots));
  const auto max = dots == std::string_view::npos ? min : parse_duration(text.substr(dots + 2));
  if (!min || !max || *max < *min) return std::nullopt;
  return Latency{*min, *max};
}

}  // namespace aiq::sim
