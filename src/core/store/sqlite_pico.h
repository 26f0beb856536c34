#pragma once
// Exact money inside SQL. SQLite's own sum() turns to an error beyond int64 and its product to
// floating point; these take INTEGERs and TEXTs of decimal integers and give TEXTs, 128 bits wide:
//
//   pico_sum(x)             aggregate; 0 without rows, NULLs do not count
//   pico_add(a, b), pico_sub(a, b)
//   pico_mul(units, price)  NULL beyond the int64 of one row
//   pico_of(whole, pico)    a sum in two columns, see MoneyColumns
//   pico_round(x, digits)   to the minor unit with that many decimals, half away from zero, in pico
//   pico_sign(x), pico_cmp(a, b)  INTEGER -1, 0 or 1
//   pico_digits(currency)   decimals of its minor unit
//
// NULL in gives NULL out; anything that is no integer, or beyond 128 bits, is an error.

#include <sqlite3.h>

namespace aiq {

// SQLite's result code.
[[nodiscard]] int register_pico_functions(sqlite3* handle);

}  // namespace aiq
