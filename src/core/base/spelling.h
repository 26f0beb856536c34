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

}  // namespace aiq
