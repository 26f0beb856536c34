#pragma once
// "did you mean ...?"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aiq::cli {

// The candidate that `typed` most likely meant: the nearest misspelling (core/base/spelling.h),
// or the only one that `typed` is the beginning of.
[[nodiscard]] std::optional<std::string> nearest(std::string_view typed,
                                                 const std::vector<std::string>& candidates);

}  // namespace aiq::cli
