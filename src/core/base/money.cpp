#include "core/base/money.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/check.h"

namespace aiq {
namespace {

__extension__ using UInt128 = unsigned __int128;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A decimal number taken apart: digits without the point, and where the point stands.
struct Decimal {
  bool negative = false;
  std::string digits;         // without leading zeros; "" is 0
  std::int64_t decimals = 0;  // how many of the digits stand after the point; may be negative
};

std::optional<std::int64_t> read_exponent(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text)
    value = std::min<std::int64_t>(value * 10 + (c - '0'), 1'000'000);
  return negative ? -value : value;
}

std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal out;
  if (!text.empty() && text.front() == '-') {
    out.negative = true;
    text.remove_prefix(1);
  }
  std::int64_t exponent = 0;
  if (const auto at = text.find_first_of("eE"); at != std::string_view::npos) {
    const auto read = read_exponent(text.substr(at + 1));
    if (!read) return std::nullopt;
    exponent = *read;
    text = text.substr(0, at);
  }
  const auto point = text.find('.');
  const std::string_view before = text.substr(0, point);
  const std::string_view after =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (before.empty() || (point != std::string_view::npos && after.empty())) return std::nullopt;
  for (const std::string_view part : {before, after}) {
    if (!std::all_of(part.begin(), part.end(), is_digit)) return std::nullopt;
  }
  out.digits.append(before).append(after);
  out.decimals = static_cast<std::int64_t>(after.size()) - exponent;
  while (!out.digits.empty() && out.decimals > 0 && out.digits.back() == '0') {
    out.digits.pop_back();
    --out.decimals;
  }
  out.digits.erase(0, out.digits.find_first_not_of('0'));
  return out;
}

constexpr std::array<std::string_view, 16> kNoMinor = {"BIF", "CLP", "DJF", "GNF", "ISK", "JPY",
                                                       "KMF", "KRW", "PYG", "RWF", "UGX", "UYI",
                                                       "VND", "VUV", "XAF", "XOF"};
constexpr std::array<std::string_view, 7> kThousandths = {"BHD", "IQD", "JOD", "KWD",
                                                          "LYD", "OMR", "TND"};

Int128 power_of_ten(int exponent) {
  Int128 out = 1;
  for (int i = 0; i < exponent; ++i)
    out *= 10;
  return out;
}

// At least two decimals, none that are zero beyond them.
std::string format_decimal(Int128 value, int scale) {
  const bool negative = value < 0;
  std::string digits = format_int128(negative ? -value : value);
  const auto places = static_cast<std::size_t>(scale);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  digits.insert(digits.size() - places, 1, '.');
  const std::size_t least = digits.find('.') + 3;
  while (digits.size() > least && digits.back() == '0')
    digits.pop_back();
  return negative ? "-" + digits : digits;
}

}  // namespace

Expected<std::int64_t, DecimalError> parse_scaled(std::string_view text, int scale) {
  AIQ_CHECK(scale >= 0 && scale <= 18);
  const auto decimal = read_decimal(text);
  if (!decimal) return Unexpected{DecimalError::syntax};
  if (decimal->digits.empty()) return std::int64_t{0};
  if (decimal->decimals > scale) return Unexpected{DecimalError::not_representable};
  // 19 digits are the most that an int64 has.
  const std::int64_t zeros = scale - decimal->decimals;
  if (static_cast<std::int64_t>(decimal->digits.size()) + zeros > 19)
    return Unexpected{DecimalError::overflow};
  UInt128 value = 0;
  for (const char c : decimal->digits)
    value = value * 10 + static_cast<unsigned>(c - '0');
  for (std::int64_t i = 0; i < zeros; ++i)
    value *= 10;
  const UInt128 most = static_cast<UInt128>(std::numeric_limits<std::int64_t>::max()) +
                       (decimal->negative ? 1U : 0U);
  if (value > most) return Unexpected{DecimalError::overflow};
  const auto signed_value = static_cast<Int128>(value);
  return static_cast<std::int64_t>(decimal->negative ? -signed_value : signed_value);
}

std::string format_money(Int128 pico) {
  return format_decimal(pico, 12);
}

std::string format_price_per_million(Pico unit_pico) {
  return format_decimal(unit_pico, 6);
}

std::optional<Pico> rate(std::int64_t units, Pico unit_pico) {
  AIQ_CHECK(units >= 0 && unit_pico >= 0);
  std::int64_t product = 0;
  if (__builtin_mul_overflow(units, unit_pico, &product)) return std::nullopt;
  return product;
}

std::optional<Int128> parse_int128(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  Int128 value = 0;
  for (const char c : text) {
    if (__builtin_mul_overflow(value, static_cast<Int128>(10), &value) ||
        __builtin_sub_overflow(value, static_cast<Int128>(c - '0'), &value))
      return std::nullopt;
  }
  // Counted downwards, since the least number has no positive counterpart.
  if (negative) return value;
  if (__builtin_sub_overflow(static_cast<Int128>(0), value, &value)) return std::nullopt;
  return value;
}

std::string format_int128(Int128 value) {
  const bool negative = value < 0;
  auto rest = negative ? UInt128{0} - static_cast<UInt128>(value) : static_cast<UInt128>(value);
  std::string out;
  do {
    out += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

Int128 round_to_minor(Int128 pico, int digits) {
  AIQ_CHECK(digits >= 0 && digits <= 4);
  const Int128 unit = power_of_ten(12 - digits);
  const Int128 half = unit / 2;
  return pico < 0 ? -((-pico + half) / unit) : (pico + half) / unit;
}

Int128 minor_to_pico(Int128 minor, int digits) {
  AIQ_CHECK(digits >= 0 && digits <= 4);
  return minor * power_of_ten(12 - digits);
}

int minor_digits(std::string_view currency) {
  if (std::find(kNoMinor.begin(), kNoMinor.end(), currency) != kNoMinor.end()) return 0;
  if (std::find(kThousandths.begin(), kThousandths.end(), currency) != kThousandths.end()) return 3;
  return currency == "CLF" || currency == "UYW" ? 4 : 2;
}

bool is_currency(std::string_view text) {
  return text.size() == 3 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

MoneyColumns to_columns(Int128 sum) {
  Int128 whole = sum / kPicoPerWhole;
  Int128 pico = sum % kPicoPerWhole;
  if (pico < 0) {
    pico += kPicoPerWhole;
    --whole;
  }
  AIQ_CHECK(whole >= std::numeric_limits<std::int64_t>::min() &&
            whole <= std::numeric_limits<std::int64_t>::max());
  return {static_cast<std::int64_t>(whole), static_cast<std::int64_t>(pico)};
}

}  // namespace aiq
