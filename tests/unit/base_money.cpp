// Exact decimals, products, rounding and columns of money.

#include <doctest/doctest.h>

#include <limits>
#include <random>
#include <string>

#include "core/base/money.h"

namespace aiq {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

struct Row {
  const char* text;
  int scale;
  std::int64_t value;
};

TEST_CASE("money: a decimal is read exactly, with or without an exponent") {
  const Row rows[] = {
      {"0", 12, 0},
      {"-0", 12, 0},
      {"0.000000000000000000000", 12, 0},
      {"0e99", 12, 0},
      {"2.50", 6, 2'500'000},
      {"0.15", 6, 150'000},
      {"10", 6, 10'000'000},
      {"1.5e-07", 12, 150'000},
      {"1.5E-7", 12, 150'000},
      {"2e+0", 12, 2'000'000'000'000},
      {"2e0", 0, 2},
      {"0.0000020", 6, 2},
      {"1500e-3", 1, 15},
      {"-0.245", 12, -245'000'000'000},
      {"9223372.036854775807", 12, kMax},
      {"-9223372.036854775808", 12, kMin},
      {"000123.4500", 2, 12'345},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto read = parse_scaled(row.text, row.scale);
    REQUIRE(read.has_value());
    CHECK(*read == row.value);
  }
}

TEST_CASE("money: what is no decimal, too fine or too large is told apart") {
  struct Bad {
    const char* text;
    int scale;
    DecimalError error;
  };
  const Bad rows[] = {
      {"", 12, DecimalError::syntax},
      {"-", 12, DecimalError::syntax},
      {".5", 12, DecimalError::syntax},
      {"5.", 12, DecimalError::syntax},
      {"+5", 12, DecimalError::syntax},
      {" 5", 12, DecimalError::syntax},
      {"1,000", 12, DecimalError::syntax},
      {"1e", 12, DecimalError::syntax},
      {"1e5.0", 12, DecimalError::syntax},
      {"0x10", 12, DecimalError::syntax},
      {"NaN", 12, DecimalError::syntax},
      {"inf", 12, DecimalError::syntax},
      {"1.2.3", 12, DecimalError::syntax},
      {"0.0000001", 6, DecimalError::not_representable},
      {"1e-13", 12, DecimalError::not_representable},
      {"1e-999999999999999999999", 12, DecimalError::not_representable},
      {"9223372.036854775808", 12, DecimalError::overflow},
      {"-9223372.036854775809", 12, DecimalError::overflow},
      {"10000000.00", 12, DecimalError::overflow},
      {"1e999999999999999999999", 0, DecimalError::overflow},
  };
  for (const Bad& row : rows) {
    CAPTURE(row.text);
    const auto read = parse_scaled(row.text, row.scale);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error() == row.error);
  }
}

TEST_CASE("money: an amount prints as the exact decimal with at least two places") {
  CHECK(format_money(0) == "0.00");
  CHECK(format_money(1) == "0.000000000001");
  CHECK(format_money(-1) == "-0.000000000001");
  CHECK(format_money(150'000) == "0.00000015");
  CHECK(format_money(1'500'000'000'000) == "1.50");
  CHECK(format_money(-245'000'000'000) == "-0.245");
  CHECK(format_money(kMin) == "-9223372.036854775808");
  CHECK(format_money(static_cast<Int128>(27'000'000) * kPicoPerWhole) == "27000000.00");
  CHECK(format_price_per_million(2'500'000) == "2.50");
  CHECK(format_price_per_million(37'500) == "0.0375");
}

TEST_CASE("money: what is printed is read back as the same amount (law)") {
  const std::uint64_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 5'000; ++i) {
    // Every length of number is as likely.
    const auto value = static_cast<std::int64_t>(random()) >> (random() % 64);
    CAPTURE(value);
    const auto read = parse_money(format_money(value));
    REQUIRE(read.has_value());
    REQUIRE(*read == value);
    const Int128 wide = static_cast<Int128>(value) * static_cast<std::int64_t>(random() >> 32);
    REQUIRE(parse_int128(format_int128(wide)) == wide);
    REQUIRE(from_columns(to_columns(wide)) == wide);
    REQUIRE(to_columns(wide).pico >= 0);
    REQUIRE(to_columns(wide).pico < kPicoPerWhole);
  }
}

TEST_CASE("money: the cost vectors of the vendors come out to the last digit") {
  // Anthropic: input 3 at 3, write 12,304 at 3.75, output 550 at 15.
  const auto per_million = [](const char* text) { return *parse_price_per_million(text); };
  CHECK(format_money(*rate(3, per_million("3")) + *rate(12'304, per_million("3.75")) +
                     *rate(550, per_million("15"))) == "0.054399");
  // OpenAI: 1,000 prompt tokens of which 800 cached, 100 out.
  CHECK(format_money(*rate(200, per_million("1.25")) + *rate(800, per_million("0.125")) +
                     *rate(100, per_million("10"))) == "0.00135");
  CHECK(format_money(*rate(24, per_million("0.15")) + *rate(15, per_million("0.60"))) ==
        "0.0000126");
}

TEST_CASE("money: a product beyond int64 is refused") {
  CHECK(rate(9'000'000, 1'000'000'000'000) == 9'000'000'000'000'000'000);
  CHECK_FALSE(rate(10'000'000, 1'000'000'000'000).has_value());
  CHECK(rate(kMax, 1) == kMax);
  CHECK_FALSE(rate(kMax, 2).has_value());
  CHECK(rate(0, kMax) == 0);
}

TEST_CASE("money: rounding to the minor unit is half away from zero, both ways") {
  struct Rounding {
    const char* amount;
    int digits;
    int minor;
  };
  const Rounding rows[] = {
      {"0.005", 2, 1},    {"-0.005", 2, -1},   {"0.004999999999", 2, 0}, {"-0.004999999999", 2, 0},
      {"-0.245", 2, -25}, {"0.125", 2, 13},    {"1.125", 2, 113},        {"0.5", 0, 1},
      {"-0.5", 0, -1},    {"1.0005", 3, 1001},
  };
  for (const Rounding& row : rows) {
    CAPTURE(row.amount);
    CHECK(round_to_minor(*parse_money(row.amount), row.digits) == row.minor);
  }
  CHECK(minor_to_pico(-25, 2) == *parse_money("-0.25"));
  CHECK(minor_digits("USD") == 2);
  CHECK(minor_digits("JPY") == 0);
  CHECK(minor_digits("KWD") == 3);
  CHECK(is_currency("EUR"));
  CHECK_FALSE(is_currency("eur"));
  CHECK_FALSE(is_currency("EURO"));
}

TEST_CASE("money: the ends of 128 bits are read, what is beyond is not") {
  const char* least = "-170141183460469231731687303715884105728";
  CHECK(format_int128(*parse_int128(least)) == least);
  CHECK(parse_int128("170141183460469231731687303715884105727").has_value());
  CHECK_FALSE(parse_int128("170141183460469231731687303715884105728").has_value());
  CHECK_FALSE(parse_int128("-170141183460469231731687303715884105729").has_value());
  CHECK_FALSE(parse_int128("").has_value());
  CHECK_FALSE(parse_int128("1.0").has_value());
}

}  // namespace
}  // namespace aiq
