#pragma once
// "Did you mean ...?" for names.

#include <string>
#include <string_view>
#include <vector>

namespace aiq {

// The candidate that `word` is most likely a misspelling of: smallest edit distance (insert,
// delete, replace, swap of neighbours; upper and lower case are equal), at most a third of the
// length of `word` and at least one edit allowed. The first of equals; "" when none is near.
[[nodiscard]] std::string closest_name(std::string_view word,
                                       const std::vector<std::string>& candidates);

// "did you mean NAME?", or "" when none is near.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& names);
// The keys of a map as candidates.
template <class Map>
[[nodiscard]] std::vector<std::string> names_of(const Map& map) {
  std::vector<std::string> out;
  for (const auto& [name, value] : map)
    out.push_back(name);
  return out;
}

}  // namespace aiq
