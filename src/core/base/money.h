#pragma once
// Exact money. The unit is the pico, 10^-12 of a currency. Nothing here is floating point and
// nothing rounds, but round_to_minor(), which says so.
//
// One row holds an int64: -9,223,372.036854775808 to 9,223,372.036854775807 of the currency.
// Sums are 128 bits wide.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace aiq {

__extension__ using Int128 = __int128;

using Pico = std::int64_t;  // an amount of one row

inline constexpr std::int64_t kPicoPerWhole = 1'000'000'000'000;

enum class DecimalError {
  syntax,             // not a decimal number
  not_representable,  // more decimals than the unit has
  overflow,           // beyond int64 in the unit
};

// `text` x 10^scale as an integer, exactly. "-1.50", "2e-07", "1E3"; no blanks, no '+', no
// separators, digits before and after a point. scale 0 .. 18. Zeros at the end of the fraction do
// not count: "1.500" at scale 1 is 15.
[[nodiscard]] Expected<std::int64_t, DecimalError> parse_scaled(std::string_view text, int scale);

// "12.50" of a currency as pico.
[[nodiscard]] inline Expected<Pico, DecimalError> parse_money(std::string_view text) {
  return parse_scaled(text, 12);
}
// A price of X per million units as pico per unit: X x 10^6, so at most six decimals.
[[nodiscard]] inline Expected<Pico, DecimalError> parse_price_per_million(std::string_view text) {
  return parse_scaled(text, 6);
}
// A price per single unit ("1.5e-07", as LiteLLM's file has it) as pico per unit.
[[nodiscard]] inline Expected<Pico, DecimalError> parse_price_per_unit(std::string_view text) {
  return parse_scaled(text, 12);
}

// The exact decimal: at least two places, no exponent, no zeros beyond them. 1500000 ->
// "0.0000015", -245000000000 -> "-0.245", 0 -> "0.00".
[[nodiscard]] std::string format_money(Int128 pico);
// Pico per unit as a price per million units: 2500000 -> "2.50".
[[nodiscard]] std::string format_price_per_million(Pico unit_pico);

// units x unit_pico; nullopt beyond int64. Both >= 0.
[[nodiscard]] std::optional<Pico> rate(std::int64_t units, Pico unit_pico);

// A decimal integer of up to 128 bits ("-27000000000000000000").
[[nodiscard]] std::optional<Int128> parse_int128(std::string_view text);
[[nodiscard]] std::string format_int128(Int128 value);

// Rounds to the minor unit with `digits` decimals (2: cents), half away from zero: the number of
// minor units. digits 0 .. 4.
[[nodiscard]] Int128 round_to_minor(Int128 pico, int digits);
// That many minor units as pico.
[[nodiscard]] Int128 minor_to_pico(Int128 minor, int digits);
// Decimals of the minor unit of a currency (ISO 4217): 2, but 0 for JPY, 3 for KWD, ...
[[nodiscard]] int minor_digits(std::string_view currency);
// Three capital letters.
[[nodiscard]] bool is_currency(std::string_view text);

// A sum as two integer columns: whole x 10^12 + pico, pico 0 .. 10^12 - 1 (also when negative:
// -0.25 is whole -1, pico 750000000000).
struct MoneyColumns {
  std::int64_t whole = 0, pico = 0;

  bool operator==(const MoneyColumns&) const = default;
};
// Aborts when `sum` is beyond 9.2 x 10^18 whole units.
[[nodiscard]] MoneyColumns to_columns(Int128 sum);
[[nodiscard]] inline Int128 from_columns(MoneyColumns columns) {
  return static_cast<Int128>(columns.whole) * kPicoPerWhole + columns.pico;
}

}  // namespace aiq
