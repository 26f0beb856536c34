#include "core/base/json_number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <system_error>

#include "core/base/check.h"

namespace aiq {
namespace {

// A decimal number 0.d1d2d3... x 10^point, digits without zeros at either end. The exponent of the
// literal may have any number of digits, so it is kept apart, as text.
struct Decimal {
  bool negative = false;
  std::string digits;  // empty: the number is 0
  std::int64_t point = 0;
  bool exponent_negative = false;
  std::string_view exponent;  // without sign and leading zeros; empty: 0
};

Decimal split(std::string_view literal) {
  Decimal out;
  out.negative = literal.front() == '-';
  if (out.negative) literal.remove_prefix(1);
  const std::size_t e = literal.find_first_of("eE");
  const std::string_view mantissa = literal.substr(0, e);
  if (e != std::string_view::npos) {
    out.exponent = literal.substr(e + 1);
    out.exponent_negative = out.exponent.front() == '-';
    if (out.exponent.front() == '-' || out.exponent.front() == '+') out.exponent.remove_prefix(1);
    out.exponent.remove_prefix(std::min(out.exponent.find_first_not_of('0'), out.exponent.size()));
  }
  const std::size_t dot = std::min(mantissa.find('.'), mantissa.size());
  out.digits = mantissa.substr(0, dot);
  if (dot < mantissa.size()) out.digits += mantissa.substr(dot + 1);
  const std::size_t zeros = std::min(out.digits.find_first_not_of('0'), out.digits.size());
  out.digits.erase(0, zeros);
  out.digits.erase(out.digits.find_last_not_of('0') + 1);
  out.point = static_cast<std::int64_t>(dot) - static_cast<std::int64_t>(zeros);
  return out;
}

// Whether a number that no double holds is too large (true) or too close to zero (false). The
// exponents in question are beyond +308 or -323, so the sign of the sum decides.
bool is_too_large(const Decimal& number) {
  if (number.digits.empty()) return false;
  // So many digits outweigh those of any text.
  if (number.exponent.size() > 17) return !number.exponent_negative;
  std::int64_t exponent = 0;
  std::from_chars(number.exponent.data(), number.exponent.data() + number.exponent.size(),
                  exponent);
  return (number.exponent_negative ? -exponent : exponent) + number.point > 0;
}

// exponent + shift in decimal, for a positive sum; the exponent may be beyond 64 bits.
std::string add(std::string_view exponent, std::int64_t shift) {
  std::string sum;
  std::int64_t carry = shift;
  for (std::size_t i = exponent.size(); i > 0 || carry > 0; i -= i > 0 ? 1 : 0) {
    carry += i > 0 ? exponent[i - 1] - '0' : 0;
    const std::int64_t digit = ((carry % 10) + 10) % 10;
    sum += static_cast<char>('0' + digit);
    carry = (carry - digit) / 10;
  }
  sum.erase(sum.find_last_not_of('0') + 1);
  std::reverse(sum.begin(), sum.end());
  return sum;
}

void append_large(std::string& out, const Decimal& number) {
  if (number.negative) out += '-';
  out += number.digits.front();
  if (number.digits.size() > 1) {
    out += '.';
    out.append(number.digits, 1);
  }
  out += "e+";
  if (number.exponent_negative) {
    // Large in spite of it: the literal has more digits than the exponent takes away.
    std::int64_t exponent = 0;
    std::from_chars(number.exponent.data(), number.exponent.data() + number.exponent.size(),
                    exponent);
    out += std::to_string(number.point - 1 - exponent);
  } else {
    out += add(number.exponent, number.point - 1);
  }
}

}  // namespace

void append_canonical_number(std::string& out, std::string_view literal) {
  if (literal.find_first_of(".eE") == std::string_view::npos) {
    out += literal == "-0" ? std::string_view("0") : literal;
    return;
  }
  double value = 0;
  const auto read = std::from_chars(literal.data(), literal.data() + literal.size(), value);
  if (read.ec == std::errc() && std::isfinite(value)) {
    append_double(out, value);
    return;
  }
  const Decimal number = split(literal);
  if (is_too_large(number)) {
    append_large(out, number);
  } else {
    out += '0';
  }
}

void append_double(std::string& out, double value) {
  AIQ_CHECK(std::isfinite(value));
  if (value == 0) {
    out += '0';  // -0 too, as ECMAScript does
    return;
  }
  std::array<char, 32> buffer{};
  const auto printed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(value),
                                     std::chars_format::scientific);
  AIQ_CHECK(printed.ec == std::errc());
  const std::string_view text(buffer.data(), static_cast<std::size_t>(printed.ptr - buffer.data()));
  const std::size_t e = text.find('e');
  int exponent = 0;
  const std::size_t sign = text[e + 1] == '+' ? 2 : 1;  // from_chars takes '-' but not '+'
  std::from_chars(text.data() + e + sign, text.data() + text.size(), exponent);

  std::array<char, 20> digits{};
  int count = 0;
  for (const char c : text.substr(0, e)) {
    if (c != '.') digits[static_cast<std::size_t>(count++)] = c;
  }
  const auto put = [&](int from, int to) { out.append(digits.data() + from, digits.data() + to); };
  const auto zeros = [&](int n) { out.append(static_cast<std::size_t>(n), '0'); };
  const int point = exponent + 1;  // the value is 0.digits x 10^point

  if (value < 0) out += '-';
  if (count <= point && point <= 21) {
    put(0, count);
    zeros(point - count);
  } else if (0 < point && point <= 21) {
    put(0, point);
    out += '.';
    put(point, count);
  } else if (-6 < point && point <= 0) {
    out += "0.";
    zeros(-point);
    put(0, count);
  } else {
    put(0, 1);
    if (count > 1) out += '.';
    put(1, count);
    out += exponent < 0 ? "e-" : "e+";
    out += std::to_string(std::abs(exponent));
  }
}

}  // namespace aiq
