#include "cli/hints.h"

#include <algorithm>
#include <iterator>

#include "core/base/spelling.h"

namespace aiq::cli {

std::optional<std::string> nearest(std::string_view typed,
                                   const std::vector<std::string>& candidates) {
  if (typed.empty()) return std::nullopt;
  if (std::string near = closest_name(typed, candidates); !near.empty()) return near;
  std::vector<std::string> longer;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(longer),
               [&](const std::string& candidate) { return candidate.starts_with(typed); });
  return longer.size() == 1 ? std::optional(longer.front()) : std::nullopt;
}

}  // namespace aiq::cli
