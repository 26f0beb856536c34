#include "core/store/sqlite_sql_functions.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "core/base/duration.h"
#include "core/base/money.h"

namespace aiq {
namespace {

constexpr int kExactDigits = 15;  // that a number of SQLite with a fraction keeps
// From here on SQLite prints it with an exponent.
constexpr Int128 kExponentFrom = static_cast<Int128>(100'000'000'000'000) * kPicoPerWhole;

std::string_view text_of(sqlite3_value* value) {
  const auto* text = sqlite3_value_text(value);
  return text == nullptr ? std::string_view()
                         : std::string_view(reinterpret_cast<const char*>(text),
                                            static_cast<std::size_t>(sqlite3_value_bytes(value)));
}

void give_text(sqlite3_context* context, const std::string& text) {
  sqlite3_result_text(context, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

std::size_t significant_digits(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c >= '0' && c <= '9') digits += c;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (!digits.empty() && digits.back() == '0')
    digits.pop_back();
  return digits.size();
}

// As a number where that is exact, else as text.
void give_money(sqlite3_context* context, Int128 pico) {
  const std::string text = format_money(pico);
  if (significant_digits(text) > kExactDigits || pico >= kExponentFrom || pico <= -kExponentFrom) {
    give_text(context, text);
    return;
  }
  // Up to 15 digits come out of SQLite as they went in.
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  sqlite3_result_double(context, number);
}

// ---- aiq_time, aiq_money, aiq_sign

void time_function(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) != SQLITE_INTEGER) return;  // NULL
  give_text(context, format_rfc3339(sqlite3_value_int64(values[0])));
}

std::optional<Int128> columns_of(sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL || sqlite3_value_type(values[1]) == SQLITE_NULL)
    return std::nullopt;
  return from_columns({sqlite3_value_int64(values[0]), sqlite3_value_int64(values[1])});
}

void money_function(sqlite3_context* context, int, sqlite3_value** values) {
  if (const auto pico = columns_of(values)) give_money(context, *pico);
}

void sign_function(sqlite3_context* context, int, sqlite3_value** values) {
  if (const auto pico = columns_of(values))
    sqlite3_result_int(context, *pico < 0 ? -1 : (*pico > 0 ? 1 : 0));
}

// ---- sum

struct Sum {
  Int128 whole = 0;  // of integers
  Int128 pico = 0;   // of decimals
  std::int64_t values = 0, decimals = 0;
  bool inexact = false;
};

Sum* sum_of(sqlite3_context* context, bool make) {
  return static_cast<Sum*>(
      sqlite3_aggregate_context(context, make ? static_cast<int>(sizeof(Sum)) : 0));
}

std::optional<Pico> small_pico(std::string_view text) {
  const auto pico = parse_money(text);
  return pico ? std::optional(*pico) : std::nullopt;
}

std::optional<Int128> pico_of(sqlite3_value* value) {
  const std::string text =
      sqlite3_value_type(value) == SQLITE_FLOAT ? decimal_text(value) : std::string(text_of(value));
  if (const auto pico = small_pico(text)) return *pico;
  if (text.find_first_of("eEnN") != std::string::npos) return std::nullopt;
  // Beyond one row's range: the whole part and the rest apart.
  const std::size_t point = std::min(text.find('.'), text.size());
  const bool negative = !text.empty() && text.front() == '-';
  const auto whole = parse_int128(text.substr(0, point));
  const auto rest = point == text.size() ? std::optional<Pico>(0)
                                         : small_pico((negative ? "-0" : "0") + text.substr(point));
  if (!whole || !rest) return std::nullopt;
  constexpr Int128 kWholeMax = std::numeric_limits<std::int64_t>::max();
  if (*whole > kWholeMax || *whole < -kWholeMax) return std::nullopt;
  return *whole * kPicoPerWhole + *rest;
}

void count(sqlite3_context* context, sqlite3_value* value, int sign) {
  const int type = sqlite3_value_type(value);
  Sum* sum = sum_of(context, true);
  if (sum == nullptr) return sqlite3_result_error_nomem(context);
  if (type == SQLITE_NULL) return;
  sum->values += sign;
  if (type == SQLITE_INTEGER) {
    sum->whole += static_cast<Int128>(sqlite3_value_int64(value)) * sign;
    return;
  }
  sum->decimals += sign;
  if (const auto pico = pico_of(value))
    sum->pico += *pico * sign;
  else
    sum->inexact = true;
}

void sum_step(sqlite3_context* context, int, sqlite3_value** values) {
  count(context, values[0], 1);
}
void sum_inverse(sqlite3_context* context, int, sqlite3_value** values) {
  count(context, values[0], -1);
}
void sum_value(sqlite3_context* context) {
  const Sum* sum = sum_of(context, false);
  if (sum == nullptr || sum->values == 0) return;  // NULL
  if (sum->inexact) return sqlite3_result_error(context, "sum() of what is no decimal number", -1);
  if (sum->decimals > 0) return give_money(context, sum->whole * kPicoPerWhole + sum->pico);
  if (sum->whole >= std::numeric_limits<std::int64_t>::min() &&
      sum->whole <= std::numeric_limits<std::int64_t>::max())
    return sqlite3_result_int64(context, static_cast<std::int64_t>(sum->whole));
  give_text(context, format_int128(sum->whole));
}

// ---- the collation of times

std::optional<UnixMs> time_of(std::string_view text) {
  if (const auto at = parse_rfc3339(text)) return at;
  const std::string whole(text);
  switch (text.size()) {
    case 4:
      return parse_rfc3339(whole + "-01-01T00:00:00Z");
    case 7:
      return parse_rfc3339(whole + "-01T00:00:00Z");
    case 10:
      return parse_rfc3339(whole + "T00:00:00Z");
    case 13:
      return parse_rfc3339(whole + ":00:00Z");
    case 16:
      return parse_rfc3339(whole + ":00Z");
    default:
      return parse_rfc3339(whole + "Z");
  }
}

int compare_times(void*, int a_size, const void* a, int b_size, const void* b) {
  const std::string_view x(static_cast<const char*>(a), static_cast<std::size_t>(a_size));
  const std::string_view y(static_cast<const char*>(b), static_cast<std::size_t>(b_size));
  if (x == y) return 0;
  const auto left = time_of(x), right = time_of(y);
  // What is no time stands after all times, in the order of its bytes.
  if (left && right) return *left < *right ? -1 : (*left > *right ? 1 : 0);
  if (left || right) return left ? -1 : 1;
  return x.compare(y) < 0 ? -1 : 1;
}

std::string plain_decimal(std::string text) {
  if (text.find_first_of("eEnN") != std::string::npos) {
    const auto pico = parse_money(text);  // "1e-06"
    return pico ? format_money(*pico) : text;
  }
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return text + ".00";
  if (text.size() - point == 2) text += '0';
  return text;
}

std::string digits_of(const unsigned char* text) {
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

}  // namespace

// SQLite prints a number with a fraction by "%!.15g".
std::string decimal_text(sqlite3_value* value) {
  return plain_decimal(digits_of(sqlite3_value_text(value)));
}
std::string decimal_text(sqlite3_stmt* statement, int column) {
  return plain_decimal(digits_of(sqlite3_column_text(statement, column)));
}

void register_sql_functions(sqlite3* handle) {
  constexpr int kPure = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  sqlite3_create_function_v2(handle, "aiq_time", 1, kPure, nullptr, time_function, nullptr, nullptr,
                             nullptr);
  sqlite3_create_function_v2(handle, "aiq_money", 2, kPure, nullptr, money_function, nullptr,
                             nullptr, nullptr);
  sqlite3_create_function_v2(handle, "aiq_sign", 2, kPure, nullptr, sign_function, nullptr, nullptr,
                             nullptr);
  sqlite3_create_window_function(handle, "sum", 1, kPure, nullptr, sum_step, sum_value, sum_value,
                                 sum_inverse, nullptr);
  sqlite3_create_collation_v2(handle, "aiq_time", SQLITE_UTF8, nullptr, compare_times, nullptr);
}

}  // namespace aiq
