#include "core/base/duration.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/base/random.h"

using namespace aiq;

namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

}  // namespace

TEST_CASE("duration: texts that are durations") {
  struct Row {
    std::string_view text;
    DurationMs ms;
  };
  const Row rows[] = {
      {"250ms", 250},
      {"5s", 5'000},
      {"2m", 120'000},
      {"12h", 43'200'000},
      {"7d", 604'800'000},
      {"0s", 0},
      {"0ms", 0},
      {"007s", 7'000},
      {"1h30m", 5'400'000},
      {"1d2h3m4s5ms", 93'784'005},
      {"1m90s", 150'000},
      {"36525d", 3'155'760'000'000},
      {"36524d24h", 3'155'760'000'000},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(parse_duration(row.text) == row.ms);
  }
}

TEST_CASE("duration: texts that are none") {
  for (const std::string_view text : {"",
                                      "5",
                                      "s",
                                      "-5s",
                                      "+5s",
                                      "1.5s",
                                      "5 s",
                                      " 5s",
                                      "5s ",
                                      "5S",
                                      "5sec",
                                      "5w",
                                      "5µs",
                                      "30m1h",
                                      "1h1h",
                                      "1ms1s",
                                      "1h 30m",
                                      "1h30",
                                      "h1",
                                      "36526d",
                                      "36525d1ms",
                                      "9223372036854775807d",
                                      "9223372036854775808ms",
                                      "99999999999999999999s"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text).has_value());
  }
}

TEST_CASE("duration: printed exactly, and for people") {
  struct Row {
    DurationMs ms;
    std::string_view exact;
    std::string_view age;
  };
  const Row rows[] = {
      {0, "0s", "0ms"},
      {1, "1ms", "1ms"},
      {250, "250ms", "250ms"},
      {999, "999ms", "999ms"},
      {1'000, "1s", "1s"},
      {3'249, "3s249ms", "3.2s"},
      {59'999, "59s999ms", "59.9s"},
      {60'000, "1m", "1m"},
      {90'000, "1m30s", "1m 30s"},
      {3'600'000, "1h", "1h"},
      {3'659'000, "1h59s", "1h"},
      {3'900'000, "1h5m", "1h 5m"},
      {86'400'000, "1d", "1d"},
      {93'784'005, "1d2h3m4s5ms", "1d 2h"},
      {-90'000, "-1m30s", "-1m 30s"},
      {kMin, "-106751991167d7h12m55s808ms", "-106751991167d 7h"},
  };
  for (const Row& row : rows) {
    CHECK(format_duration(row.ms) == row.exact);
    CHECK(format_age(row.ms) == row.age);
  }
}

TEST_CASE("duration: what is printed exactly is read back") {
  SeededRandom random(7);
  for (int i = 0; i < 2'000; ++i) {
    const auto ms = static_cast<DurationMs>(random.below(3'155'760'000'001U >> random.below(42)));
    CAPTURE(ms);
    CHECK(parse_duration(format_duration(ms)) == ms);
  }
}

TEST_CASE("size: texts that are sizes, and none") {
  struct Row {
    std::string_view text;
    std::optional<std::int64_t> bytes;
  };
  const Row rows[] = {
      {"0", 0},
      {"512", 512},
      {"64KiB", 65'536},
      {"16MiB", 16'777'216},
      {"1GiB", 1'073'741'824},
      {"2TiB", 2'199'023'255'552},
      {"1kB", 1'000},
      {"3MB", 3'000'000},
      {"4GB", 4'000'000'000},
      {"9223372036854775807", kMax},
      {"8388607TiB", 9'223'370'937'343'148'032},
      {"8388608TiB", std::nullopt},
      {"9223372036854775808", std::nullopt},
      {"", std::nullopt},
      {"KiB", std::nullopt},
      {"-1", std::nullopt},
      {"1.5MiB", std::nullopt},
      {"1 MiB", std::nullopt},
      {"1M", std::nullopt},
      {"1KB", std::nullopt},
      {"1mib", std::nullopt},
      {"1KiB ", std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(parse_size(row.text) == row.bytes);
  }
}

TEST_CASE("size: printed in the largest exact unit") {
  struct Row {
    std::int64_t bytes;
    std::string_view text;
  };
  const Row rows[] = {{0, "0"},
                      {1'000, "1000"},
                      {1'024, "1KiB"},
                      {1'536, "1536"},
                      {16'777'216, "16MiB"},
                      {1'073'741'824, "1GiB"},
                      {-1'024, "-1KiB"},
                      {2'199'023'255'552, "2TiB"}};
  for (const Row& row : rows) {
    CHECK(format_size(row.bytes) == row.text);
    if (row.bytes >= 0) CHECK(parse_size(row.text) == row.bytes);
  }
}

TEST_CASE("time: RFC 3339 texts") {
  constexpr UnixMs kMarch = 1'772'323'200'000;  // 2026-03-01T00:00:00Z
  struct Row {
    std::string_view text;
    UnixMs at;
  };
  const Row rows[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"2026-03-01T00:00:00Z", kMarch},
      {"2026-03-01t00:00:00z", kMarch},
      {"2026-03-01 00:00:00Z", kMarch},
      {"2026-03-01T05:30:00+05:30", kMarch},
      {"2026-02-28T16:00:00-08:00", kMarch},
      {"2026-03-01T00:00:00-00:00", kMarch},
      {"2026-03-01T00:00:00.5Z", kMarch + 500},
      {"2026-03-01T00:00:00.05Z", kMarch + 50},
      {"2026-03-01T00:00:00.123999999999Z", kMarch + 123},
      {"2024-02-29T00:00:00Z", 1'709'164'800'000},
      {"2000-02-29T00:00:00Z", 951'782'400'000},
      {"1990-12-31T23:59:60Z", 662'688'000'000},       // RFC 3339, section 5.8
      {"1990-12-31T15:59:60-08:00", 662'688'000'000},  // the same
      {"1985-04-12T23:20:50.52Z", 482'196'050'520},    // the same section
      {"1937-01-01T12:00:27.87+00:20", -1},            // before 1970: none
      {"9999-12-31T23:59:59.999Z", 253'402'300'799'999},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto at = parse_rfc3339(row.text);
    CHECK(at.value_or(-1) == row.at);
  }
}

TEST_CASE("time: texts that are no RFC 3339 time") {
  for (const std::string_view text : {"",
                                      "now",
                                      "2026-03-01",
                                      "2026-03-01T00:00Z",
                                      "2026-03-01T00:00:00",
                                      "2026-3-1T00:00:00Z",
                                      "2026-03-01T00:00:00.Z",
                                      "2026-03-01T00:00:00,5Z",
                                      "2026-03-01T00:00:00ZZ",
                                      "2026-03-01T00:00:00+0530",
                                      "2026-03-01T00:00:00+05",
                                      "2026-03-01T00:00:00+24:00",
                                      "2026-03-01T00:00:00+05:60",
                                      "2026-02-29T00:00:00Z",
                                      "2100-02-29T00:00:00Z",
                                      "2026-04-31T00:00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2026-01-00T00:00:00Z",
                                      "2026-01-01T24:00:00Z",
                                      "2026-01-01T00:60:00Z",
                                      "2026-01-01T00:00:61Z",
                                      "2026-01-01T12:00:60Z",
                                      "1970-01-01T00:00:00+00:01",
                                      "9999-12-31T23:59:59-00:01",
                                      "9999-12-31T23:59:60Z",
                                      " 2026-03-01T00:00:00Z",
                                      "+2026-03-01T00:00:00Z",
                                      "2026-03-01_00:00:00Z"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_rfc3339(text).has_value());
  }
}

TEST_CASE("time: printed with milliseconds, and read back") {
  CHECK(format_rfc3339(0) == "1970-01-01T00:00:00.000Z");
  CHECK(format_rfc3339(1'772'323'200'007) == "2026-03-01T00:00:00.007Z");
  CHECK(format_rfc3339(-1) == "1969-12-31T23:59:59.999Z");
  CHECK(format_rfc3339(kMax) == "9999-12-31T23:59:59.999Z");
  CHECK(format_rfc3339(kMin) == "0000-01-01T00:00:00.000Z");
  SeededRandom random(11);
  for (int i = 0; i < 2'000; ++i) {
    const auto at = static_cast<UnixMs>(random.below(253'402'300'800'000));
    CHECK(parse_rfc3339(format_rfc3339(at)) == at);
  }
}

TEST_CASE("time: the three date forms of HTTP") {
  constexpr UnixMs kExample = 784'111'777'000;  // the example of RFC 9110, section 5.6.7
  struct Row {
    std::string_view text;
    std::optional<UnixMs> at;
  };
  const Row rows[] = {
      {"Sun, 06 Nov 1994 08:49:37 GMT", kExample},
      {"Sunday, 06-Nov-94 08:49:37 GMT", kExample},
      {"Sun Nov  6 08:49:37 1994", kExample},
      {"Wed Nov 16 08:49:37 1994", kExample + 10 * 86'400'000},
      {"Sunday, 01-Mar-26 00:00:00 GMT", 1'772'323'200'000},
      {"Thursday, 01-Jan-70 00:00:00 GMT", 0},
      {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
      {"Sat, 31 Dec 2016 23:59:60 GMT", 1'483'228'800'000},
      {"Sun, 06 Nov 1994 08:49:37 UTC", std::nullopt},
      {"Sun, 06 Nov 1994 08:49:37 +0000", std::nullopt},
      {"Sun, 6 Nov 1994 08:49:37 GMT", std::nullopt},
      {"Xxx, 06 Nov 1994 08:49:37 GMT", std::nullopt},
      {"Sun, 06 Nvm 1994 08:49:37 GMT", std::nullopt},
      {"Sun, 31 Nov 1994 08:49:37 GMT", std::nullopt},
      {"Sun, 06 Nov 1994 25:49:37 GMT", std::nullopt},
      {"Sun, 06 Nov 1994 08:49:37 GMT ", std::nullopt},
      {"Wed, 31 Dec 1969 23:59:59 GMT", std::nullopt},
      {"Sun Nov 6 08:49:37 1994", std::nullopt},
      {"120", std::nullopt},
      {"", std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(parse_http_date(row.text) == row.at);
  }
}

TEST_CASE("time: a time or an age") {
  constexpr UnixMs kNow = 1'772'323'200'000;
  CHECK(parse_time_or_age("1h", kNow) == kNow - 3'600'000);
  CHECK(parse_time_or_age("0s", kNow) == kNow);
  CHECK(parse_time_or_age("1970-01-01T00:00:01Z", kNow) == 1'000);
  CHECK_FALSE(parse_time_or_age("yesterday", kNow).has_value());
  CHECK_FALSE(parse_time_or_age("", kNow).has_value());
}
