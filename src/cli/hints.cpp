#include "cli/hints.h"

#include <algorithm>

namespace aiq::cli {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment; three rows suffice.
  std::vector<std::size_t> two(b.size() + 1);
  std::vector<std::size_t> one(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    one[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = one[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({one[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two[j - 2] + 1);
      }
    }
    std::swap(two, one);
    std::swap(one, row);
  }
  return one[b.size()];
}

std::optional<std::string> nearest(std::string_view typed,
                                   const std::vector<std::string>& candidates) {
  if (typed.empty() || typed.size() > 64) return std::nullopt;
  const std::size_t limit = std::clamp<std::size_t>(typed.size() / 3, 1, 3);
  std::optional<std::string> best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(typed, candidate);
    // One that shares no character is no help for a typing error of one letter.
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (best) return best;
  std::vector<std::string> longer;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(longer),
               [&](const std::string& c) { return c.starts_with(typed); });
  return longer.size() == 1 ? std::optional(longer.front()) : std::nullopt;
}

}  // namespace aiq::cli
