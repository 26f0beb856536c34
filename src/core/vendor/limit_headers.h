#pragma once
// The headers by which vendors ask for waits and tell their rate limits. A value that can't be
// read is absent, never 0.

#include <optional>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/model/http.h"
#include "core/vendor/vendor.h"

namespace aiq {

// "250", "0.25": digits with an optional fraction; no sign, no exponent. In thousandths, rounded
// up; at most a year of milliseconds. For "seconds" the result is in milliseconds.
[[nodiscard]] std::optional<DurationMs> parse_decimal_thousandths(std::string_view text);

// Go's time.Duration as OpenAI prints it: one or more of number and unit (h, m, s, ms, us, µs, ns),
// such as "6m0s", "12ms", "23h47m36.648s"; rounded up to milliseconds.
[[nodiscard]] std::optional<DurationMs> parse_go_duration(std::string_view text);

// When the answer was made: its Date header, else `received_at`.
[[nodiscard]] UnixMs answer_time(const HttpHeaders& headers, UnixMs received_at);

// The wait that an answer asks for: the first readable of retry-after-ms, x-ms-retry-after-ms,
// retry-after (seconds or an HTTP date). Never negative.
[[nodiscard]] std::optional<DurationMs> read_wait(const HttpHeaders& headers, UnixMs received_at);

// x-should-retry: "true" or "false".
[[nodiscard]] std::optional<bool> read_should_retry(const HttpHeaders& headers);

// x-ratelimit-{limit,remaining,reset}-{requests,tokens}.
[[nodiscard]] RateReport read_openai_rates(const HttpHeaders& headers, UnixMs received_at);
// anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}; where "tokens" is not sent,
// "input-tokens" stands in.
[[nodiscard]] RateReport read_anthropic_rates(const HttpHeaders& headers, UnixMs received_at);

}  // namespace aiq
