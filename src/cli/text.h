#pragma once
// Text as a terminal shows it: widths in columns, cuts at character boundaries, nothing in it that
// a terminal would obey. All input is UTF-8; other bytes count as one column each.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/duration.h"

namespace aiq::cli {

// Columns that `text` takes: combining marks 0, East Asian wide characters and emoji 2, else 1.
[[nodiscard]] std::size_t display_width(std::string_view text);

// `text` in at most `width` columns, an ellipsis in the place of what was cut off. Never cuts
// inside a character, between a character and its combining marks, or between two digits.
[[nodiscard]] std::string cut(std::string_view text, std::size_t width);

// `text` on one line: control characters (escape sequences of a terminal begin with one) become
// spaces, bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string printable(std::string_view text);

// `text` broken at spaces into lines of at most `width` columns. A longer word stays whole.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t width);

// One unit, rounded down: "12s", "3m", "5h", "2d". Negative ages (a clock went back) are "0s".
[[nodiscard]] std::string short_age(DurationMs age_ms);

// "2026-03-01T00:00:00.000Z" -> "2026-03-01T00:00:00Z"; other text stays as it is.
[[nodiscard]] std::string without_fraction(std::string_view rfc3339);

// "1 hit", "2 hits".
[[nodiscard]] std::string counted(std::int64_t count, const std::string& one,
                                  const std::string& many);

// For people: "512 B", "1.5 KiB", "16 MiB".
[[nodiscard]] std::string human_bytes(std::int64_t bytes);

}  // namespace aiq::cli
