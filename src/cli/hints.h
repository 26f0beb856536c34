#pragma once
// "did you mean ...?"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aiq::cli {

// Changes of one character (insert, delete, replace, swap of neighbours) from `a` to `b`.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that `typed` most likely meant: the nearest one within a third of its length (at
// least one change, at most three), or the only one that `typed` is the beginning of.
[[nodiscard]] std::optional<std::string> nearest(std::string_view typed,
                                                 const std::vector<std::string>& candidates);

}  // namespace aiq::cli
