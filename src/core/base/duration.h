#pragma once
// Durations, sizes and times as people and files write them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"

namespace aiq {

using DurationMs = std::int64_t;

// "250ms" "5s" "2m" "12h" "7d"; a whole number and one unit, or several from large to small
// ("1h30m"). Range 0 .. 100 years (36525d). Anything else: nullopt.
[[nodiscard]] std::optional<DurationMs> parse_duration(std::string_view text);
// The shortest exact form of the above: "90s" -> "1m30s", 0 -> "0s".
[[nodiscard]] std::string format_duration(DurationMs ms);
// For people: two units at most ("1h 5m", "3.2s", "250ms").
[[nodiscard]] std::string format_age(DurationMs ms);

// "512" (bytes) "64KiB" "16MiB" "1GiB" "2TiB"; also "kB" "MB" "GB" (powers of 1000).
[[nodiscard]] std::optional<std::int64_t> parse_size(std::string_view text);
// The largest binary unit that is exact: 65536 -> "64KiB", 1000 -> "1000".
[[nodiscard]] std::string format_size(std::int64_t bytes);

// RFC 3339: "2026-03-01T00:00:00Z", fraction optional, offset "+05:30" accepted, "t"/"z"/" " too.
// Years 1970 to 9999 of UTC; what is finer than a millisecond is cut off. Second 60, allowed at
// 23:59 UTC, is read as the following second.
[[nodiscard]] std::optional<UnixMs> parse_rfc3339(std::string_view text);
// "2026-03-01T00:00:00.000Z". Outside of the years 0 to 9999: the nearest time inside.
[[nodiscard]] std::string format_rfc3339(UnixMs at);

// IMF-fixdate, RFC 850 and asctime forms of RFC 9110 §5.6.7. The name of the day must be one but
// is not compared with the date. Two-digit years are 1970 to 2069.
[[nodiscard]] std::optional<UnixMs> parse_http_date(std::string_view text);

// A time (RFC 3339) or an age before `now` ("1h"), as --since and --until take them.
[[nodiscard]] std::optional<UnixMs> parse_time_or_age(std::string_view text, UnixMs now);

}  // namespace aiq
