// Wait headers and rate headers.

#include "core/vendor/limit_headers.h"
#include "unit/vendor_support.h"

using namespace aiq;
using namespace aiq_test;

namespace {
const std::string kDate = "Sun, 01 Mar 2026 00:00:10 GMT";  // ten seconds after kNow
}

TEST_CASE("wait: the first readable header counts") {
  struct Row {
    HttpHeaders headers;
    std::optional<DurationMs> wait;
  };
  const Row rows[] = {
      {{}, std::nullopt},
      {{{"retry-after", "2"}}, 2000},
      {{{"retry-after", "0"}}, 0},
      {{{"retry-after", "1.5"}}, 1500},
      {{{"retry-after", "0.0001"}}, 1},
      {{{"retry-after", "107"}}, 107'000},
      {{{"retry-after-ms", "250"}}, 250},
      {{{"retry-after-ms", "250.2"}}, 251},
      {{{"x-ms-retry-after-ms", "30"}}, 30},
      {{{"retry-after", "9"}, {"x-ms-retry-after-ms", "30"}}, 30},
      {{{"retry-after", "9"}, {"x-ms-retry-after-ms", "30"}, {"retry-after-ms", "20"}}, 20},
      {{{"retry-after", "9"}, {"retry-after-ms", "soon"}}, 9000},
      {{{"retry-after", "9"}, {"retry-after-ms", "-5"}}, 9000},
      {{{"retry-after", "-1"}}, std::nullopt},
      {{{"retry-after", ""}}, std::nullopt},
      {{{"retry-after", "1e3"}}, std::nullopt},
      {{{"retry-after", "nan"}}, std::nullopt},
      {{{"retry-after", "5s"}}, std::nullopt},
      {{{"retry-after", "99999999999999999999"}}, std::nullopt},
      {{{"retry-after", "9999999999999"}}, std::nullopt},
      // Dates count from the answer's own clock where it tells it.
      {{{"retry-after", "Sun, 01 Mar 2026 00:00:15 GMT"}, {"date", kDate}}, 5000},
      {{{"retry-after", "Sun, 01 Mar 2026 00:00:15 GMT"}}, 15'000},
      {{{"retry-after", "Sun, 01 Mar 2026 00:00:15 GMT"}, {"date", "today"}}, 15'000},
      {{{"retry-after", "Sun, 01 Mar 2026 00:00:05 GMT"}, {"date", kDate}}, std::nullopt},
  };
  for (const auto& row : rows) {
    CAPTURE(row.headers.empty() ? std::string() : row.headers.front().second);
    CHECK(read_wait(row.headers, kNow) == row.wait);
    CHECK(decode("openai", http(429, "{}", row.headers)).result.retry_after_ms == row.wait);
  }
}

TEST_CASE("rates: Go durations are read by their grammar") {
  struct Row {
    const char* text;
    std::optional<DurationMs> ms;
  };
  const Row rows[] = {
      {"1s", 1000},
      {"6m0s", 360'000},
      {"12ms", 12},
      {"500ms", 500},
      {"1.5s", 1500},
      {"23h47m36.648s", 85'656'648},
      {"2m59.56s", 179'560},
      {"1h", 3'600'000},
      {"0s", 0},
      {"100us", 1},
      {"1500\u00b5s", 2},
      {"1500\u03bcs", 2},
      {"5ns", 1},
      {"1.0000001s", 1001},
      {"", std::nullopt},
      {"s", std::nullopt},
      {"5", std::nullopt},
      {"-5s", std::nullopt},
      {"5d", std::nullopt},
      {"5s ", std::nullopt},
      {"5 s", std::nullopt},
      {"1..5s", std::nullopt},
      {".s", std::nullopt},
      {"5.s", std::nullopt},
      {"6m0", std::nullopt},
      {"99999999999999h", std::nullopt},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(parse_go_duration(row.text) == row.ms);
  }
}

TEST_CASE("rates: OpenAI's headers are read, unreadable ones are absent") {
  const auto full = decode("openai", http(200, chat(),
                                          {{"x-ratelimit-limit-requests", "500"},
                                           {"x-ratelimit-limit-tokens", "30000"},
                                           {"x-ratelimit-remaining-requests", "0"},
                                           {"x-ratelimit-remaining-tokens", "29000"},
                                           {"x-ratelimit-reset-requests", "120ms"},
                                           {"x-ratelimit-reset-tokens", "6m0s"}}))
                        .rate;
  CHECK(full.limit_requests == 500);
  CHECK(full.limit_tokens == 30000);
  CHECK(full.remaining_requests == 0);
  CHECK(full.remaining_tokens == 29000);
  CHECK(full.reset_requests_ms == 120);
  CHECK(full.reset_tokens_ms == 360'000);

  const auto odd = read_openai_rates({{"x-ratelimit-limit-requests", "0"},
                                      {"x-ratelimit-limit-tokens", "-1"},
                                      {"x-ratelimit-remaining-requests", "-1"},
                                      {"x-ratelimit-remaining-tokens", "many"},
                                      {"x-ratelimit-reset-requests", "-1"},
                                      {"x-ratelimit-reset-tokens", "1 minute"}},
                                     kNow);
  CHECK_FALSE(odd.limit_requests.has_value());
  CHECK_FALSE(odd.limit_tokens.has_value());
  CHECK_FALSE(odd.remaining_requests.has_value());
  CHECK_FALSE(odd.remaining_tokens.has_value());
  CHECK_FALSE(odd.reset_requests_ms.has_value());
  CHECK_FALSE(odd.reset_tokens_ms.has_value());

  const auto others = read_openai_rates({{"x-ratelimit-reset-requests", "12.5"},
                                         {"x-ratelimit-reset-tokens", "2026-03-01T00:00:12Z"},
                                         {"date", kDate}},
                                        kNow);
  CHECK(others.reset_requests_ms == 12'500);
  CHECK(others.reset_tokens_ms == 2000);
}

TEST_CASE("rates: Anthropic's headers, resets as times") {
  HttpHeaders headers = {{"anthropic-ratelimit-requests-limit", "50"},
                         {"anthropic-ratelimit-requests-remaining", "49"},
                         {"anthropic-ratelimit-requests-reset", "2026-03-01T00:00:13Z"},
                         {"anthropic-ratelimit-input-tokens-limit", "40000"},
                         {"anthropic-ratelimit-input-tokens-remaining", "100"},
                         {"anthropic-ratelimit-input-tokens-reset", "2026-03-01T00:01:10Z"}};
  auto rate = decode("anthropic", http(200, message(), headers)).rate;
  CHECK(rate.limit_requests == 50);
  CHECK(rate.remaining_requests == 49);
  CHECK(rate.reset_requests_ms == 13'000);
  CHECK(rate.limit_tokens == 40'000);
  CHECK(rate.remaining_tokens == 100);
  CHECK(rate.reset_tokens_ms == 70'000);
  headers.emplace_back("date", kDate);
  headers.emplace_back("anthropic-ratelimit-tokens-limit", "90000");
  headers.emplace_back("anthropic-ratelimit-tokens-reset", "2026-03-01T00:00:09Z");
  rate = read_anthropic_rates(headers, kNow);
  CHECK(rate.reset_requests_ms == 3000);
  CHECK(rate.limit_tokens == 90'000);
  CHECK_FALSE(rate.remaining_tokens.has_value());
  CHECK_FALSE(rate.reset_tokens_ms.has_value());  // already past
}
