#include "core/vendor/limit_headers.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace aiq {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr DurationMs kLongestWaitMs = 366LL * 24 * 3600 * 1000;  // beyond: nonsense

struct Unit {
  std::string_view name;
  std::int64_t ns;
};
// A name comes before the one that is its beginning.
constexpr Unit kUnits[] = {
    {"h", 3'600'000 * kNsPerMs}, {"ms", kNsPerMs}, {"m", 60'000 * kNsPerMs},
    {"s", 1000 * kNsPerMs},      {"us", 1000},     {"\u00b5s", 1000},
    {"\u03bcs", 1000},           {"ns", 1},
};

[[nodiscard]] bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// digits[.digits] at the front of `text`, taken off it, in units of 1/scale rounded up. Exact:
// these numbers decide when a paid request may be sent.
[[nodiscard]] std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t scale) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  std::int64_t value = 0;
  while (!text.empty() && is_digit(text.front())) {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, text.front() - '0', &value)) {
      return std::nullopt;
    }
    text.remove_prefix(1);
  }
  if (__builtin_mul_overflow(value, scale, &value)) return std::nullopt;
  if (text.empty() || text.front() != '.') return value;
  text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  bool rest = false;
  while (!text.empty() && is_digit(text.front())) {
    const std::int64_t digit = text.front() - '0';
    rest = rest || (scale == 0 ? digit != 0 : digit * scale % 10 != 0);
    if (__builtin_add_overflow(value, digit * scale / 10, &value)) return std::nullopt;
    scale /= 10;
    text.remove_prefix(1);
  }
  if (rest && __builtin_add_overflow(value, 1, &value)) return std::nullopt;
  return value;
}

[[nodiscard]] std::optional<DurationMs> plausible(std::optional<DurationMs> wait) {
  if (!wait || *wait < 0 || *wait > kLongestWaitMs) return std::nullopt;
  return wait;
}

// A whole number >= 0.
[[nodiscard]] std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 0) return std::nullopt;
  return count;
}

[[nodiscard]] std::optional<std::int64_t> read_count(const HttpHeaders& headers,
                                                     std::string_view name) {
  const std::string* value = find_header(headers, name);
  return value == nullptr ? std::nullopt : parse_count(*value);
}

// A limit of 0 or less is how some servers say that there is none.
[[nodiscard]] std::optional<std::int64_t> read_limit(const HttpHeaders& headers,
                                                     std::string_view name) {
  const auto limit = read_count(headers, name);
  return limit && *limit > 0 ? limit : std::nullopt;
}

[[nodiscard]] std::optional<DurationMs> read_reset(const HttpHeaders& headers,
                                                   std::string_view name, UnixMs now) {
  const std::string* value = find_header(headers, name);
  if (value == nullptr) return std::nullopt;
  if (const auto span = parse_go_duration(*value)) return plausible(span);
  if (const auto seconds = parse_decimal_thousandths(*value)) return seconds;
  if (const auto at = parse_rfc3339(*value)) return plausible(*at - now);
  return std::nullopt;
}

}  // namespace

std::optional<DurationMs> parse_decimal_thousandths(std::string_view text) {
  const auto value = take_number(text, 1000);
  return text.empty() ? plausible(value) : std::nullopt;
}

std::optional<DurationMs> parse_go_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::int64_t total_ns = 0;
  while (!text.empty()) {
    const auto digits = text.find_first_not_of("0123456789.");
    if (digits == std::string_view::npos) return std::nullopt;
    std::string_view number = text.substr(0, digits);
    text.remove_prefix(digits);
    const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& u) {
      return text.substr(0, u.name.size()) == u.name;
    });
    if (unit == std::end(kUnits)) return std::nullopt;
    text.remove_prefix(unit->name.size());
    const auto ns = take_number(number, unit->ns);
    if (!ns || !number.empty() || __builtin_add_overflow(total_ns, *ns, &total_ns)) {
      return std::nullopt;
    }
  }
  return total_ns / kNsPerMs + (total_ns % kNsPerMs != 0 ? 1 : 0);
}

UnixMs answer_time(const HttpHeaders& headers, UnixMs received_at) {
  const std::string* date = find_header(headers, "date");
  return date == nullptr ? received_at : parse_http_date(*date).value_or(received_at);
}

std::optional<DurationMs> read_wait(const HttpHeaders& headers, UnixMs received_at) {
  for (const std::string_view name : {"retry-after-ms", "x-ms-retry-after-ms"}) {
    const std::string* value = find_header(headers, name);
    if (value == nullptr) continue;
    std::string_view text = *value;
    const auto wait = plausible(take_number(text, 1));
    if (wait && text.empty()) return wait;
  }
  const std::string* value = find_header(headers, "retry-after");
  if (value == nullptr) return std::nullopt;
  if (const auto wait = parse_decimal_thousandths(*value)) return wait;
  if (const auto at = parse_http_date(*value)) {
    return plausible(*at - answer_time(headers, received_at));
  }
  return std::nullopt;
}

std::optional<bool> read_should_retry(const HttpHeaders& headers) {
  const std::string* value = find_header(headers, "x-should-retry");
  if (value == nullptr) return std::nullopt;
  if (*value == "true") return true;
  if (*value == "false") return false;
  return std::nullopt;
}

RateReport read_openai_rates(const HttpHeaders& headers, UnixMs received_at) {
  const UnixMs now = answer_time(headers, received_at);
  RateReport rate;
  rate.limit_requests = read_limit(headers, "x-ratelimit-limit-requests");
  rate.limit_tokens = read_limit(headers, "x-ratelimit-limit-tokens");
  rate.remaining_requests = read_count(headers, "x-ratelimit-remaining-requests");
  rate.remaining_tokens = read_count(headers, "x-ratelimit-remaining-tokens");
  rate.reset_requests_ms = read_reset(headers, "x-ratelimit-reset-requests", now);
  rate.reset_tokens_ms = read_reset(headers, "x-ratelimit-reset-tokens", now);
  return rate;
}

RateReport read_anthropic_rates(const HttpHeaders& headers, UnixMs received_at) {
  const UnixMs now = answer_time(headers, received_at);
  const std::string prefix = "anthropic-ratelimit-";
  const bool whole = find_header(headers, prefix + "tokens-limit") != nullptr;
  const std::string tokens = prefix + (whole ? "tokens" : "input-tokens");
  RateReport rate;
  rate.limit_requests = read_limit(headers, prefix + "requests-limit");
  rate.limit_tokens = read_limit(headers, tokens + "-limit");
  rate.remaining_requests = read_count(headers, prefix + "requests-remaining");
  rate.remaining_tokens = read_count(headers, tokens + "-remaining");
  rate.reset_requests_ms = read_reset(headers, prefix + "requests-reset", now);
  rate.reset_tokens_ms = read_reset(headers, tokens + "-reset", now);
  return rate;
}

}  // namespace aiq
