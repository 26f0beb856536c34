#include "core/store/sqlite_pico.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/money.h"

namespace aiq {
namespace {

std::string_view text_of(sqlite3_value* value) {
  const auto* text = static_cast<const char*>(sqlite3_value_blob(value));
  const int size = sqlite3_value_bytes(value);
  return text == nullptr ? std::string_view()
                         : std::string_view(text, static_cast<std::size_t>(size));
}

std::optional<Int128> integer_of(sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      return sqlite3_value_int64(value);
    case SQLITE_TEXT:
      return parse_int128(text_of(value));
    default:
      return std::nullopt;
  }
}

void give(sqlite3_context* context, Int128 value) {
  const std::string text = format_int128(value);
  sqlite3_result_text(context, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

void refuse(sqlite3_context* context, const char* why) {
  sqlite3_result_error(context, why, -1);
}

constexpr const char* kNoInteger = "an amount is a whole number";
constexpr const char* kTooLarge = "an amount is beyond 128 bits";

struct Pair {
  Int128 a = 0, b = 0;
};

// nullopt: the result is set already.
std::optional<Pair> pair_of(sqlite3_context* context, sqlite3_value** in) {
  if (sqlite3_value_type(in[0]) == SQLITE_NULL || sqlite3_value_type(in[1]) == SQLITE_NULL)
    return std::nullopt;
  const auto a = integer_of(in[0]), b = integer_of(in[1]);
  if (a && b) return Pair{*a, *b};
  refuse(context, kNoInteger);
  return std::nullopt;
}

void add(sqlite3_context* context, int, sqlite3_value** in) {
  const auto pair = pair_of(context, in);
  Int128 sum = 0;
  if (!pair) return;
  if (__builtin_add_overflow(pair->a, pair->b, &sum)) return refuse(context, kTooLarge);
  give(context, sum);
}

void sub(sqlite3_context* context, int, sqlite3_value** in) {
  const auto pair = pair_of(context, in);
  Int128 difference = 0;
  if (!pair) return;
  if (__builtin_sub_overflow(pair->a, pair->b, &difference)) return refuse(context, kTooLarge);
  give(context, difference);
}

void mul(sqlite3_context* context, int, sqlite3_value** in) {
  const auto pair = pair_of(context, in);
  Int128 product = 0;
  if (!pair || __builtin_mul_overflow(pair->a, pair->b, &product)) return;
  if (product < std::numeric_limits<Pico>::min() || product > std::numeric_limits<Pico>::max())
    return;
  give(context, product);
}

void of_columns(sqlite3_context* context, int, sqlite3_value** in) {
  const auto pair = pair_of(context, in);
  Int128 whole = 0, sum = 0;
  if (!pair) return;
  if (__builtin_mul_overflow(pair->a, static_cast<Int128>(kPicoPerWhole), &whole) ||
      __builtin_add_overflow(whole, pair->b, &sum))
    return refuse(context, kTooLarge);
  give(context, sum);
}

void round_minor(sqlite3_context* context, int, sqlite3_value** in) {
  const auto pair = pair_of(context, in);
  if (!pair) return;
  if (pair->b < 0 || pair->b > 4) return refuse(context, "a minor unit has 0 to 4 decimals");
  const int digits = static_cast<int>(pair->b);
  give(context, minor_to_pico(round_to_minor(pair->a, digits), digits));
}

void compare(sqlite3_context* context, int, sqlite3_value** in) {
  const auto pair = pair_of(context, in);
  if (pair)
    sqlite3_result_int(context,
                       static_cast<int>(pair->a > pair->b) - static_cast<int>(pair->a < pair->b));
}

void sign(sqlite3_context* context, int, sqlite3_value** in) {
  if (sqlite3_value_type(in[0]) == SQLITE_NULL) return;
  const auto value = integer_of(in[0]);
  if (!value) return refuse(context, kNoInteger);
  sqlite3_result_int(context, static_cast<int>(*value > 0) - static_cast<int>(*value < 0));
}

void digits_of(sqlite3_context* context, int, sqlite3_value** in) {
  if (sqlite3_value_type(in[0]) != SQLITE_TEXT) return;
  sqlite3_result_int(context, minor_digits(text_of(in[0])));
}

// SQLite keeps it zeroed per group; it is not aligned for 128 bits, so it holds halves.
struct SumState {
  std::uint64_t low;
  std::int64_t high;
};

void sum_step(sqlite3_context* context, int, sqlite3_value** in) {
  if (sqlite3_value_type(in[0]) == SQLITE_NULL) return;
  const auto value = integer_of(in[0]);
  if (!value) return refuse(context, kNoInteger);
  auto* state = static_cast<SumState*>(sqlite3_aggregate_context(context, sizeof(SumState)));
  if (state == nullptr) return sqlite3_result_error_nomem(context);
  Int128 sum = (static_cast<Int128>(state->high) << 64) + static_cast<Int128>(state->low);
  if (__builtin_add_overflow(sum, *value, &sum)) return refuse(context, kTooLarge);
  state->low = static_cast<std::uint64_t>(sum);
  state->high = static_cast<std::int64_t>(sum >> 64);
}

void sum_end(sqlite3_context* context) {
  const auto* state = static_cast<const SumState*>(sqlite3_aggregate_context(context, 0));
  if (state == nullptr) return give(context, 0);
  give(context, (static_cast<Int128>(state->high) << 64) + static_cast<Int128>(state->low));
}

using Function = void (*)(sqlite3_context*, int, sqlite3_value**);
struct Named {
  const char* name;
  int arguments;
  Function function;
};
constexpr Named kFunctions[] = {
    {"pico_add", 2, add},       {"pico_sub", 2, sub},           {"pico_mul", 2, mul},
    {"pico_of", 2, of_columns}, {"pico_round", 2, round_minor}, {"pico_cmp", 2, compare},
    {"pico_sign", 1, sign},     {"pico_digits", 1, digits_of},
};

}  // namespace

int register_pico_functions(sqlite3* handle) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  for (const Named& f : kFunctions) {
    const int code = sqlite3_create_function_v2(handle, f.name, f.arguments, kFlags, nullptr,
                                                f.function, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return code;
  }
  return sqlite3_create_function_v2(handle, "pico_sum", 1, kFlags, nullptr, nullptr, sum_step,
                                    sum_end, nullptr);
}

}  // namespace aiq
