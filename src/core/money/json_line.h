#pragma once
// One line of a JSON Lines file of money: an object, read strictly, with numbers as they are
// written. No number passes through floating point: 0.1 stays the text "0.1".
//
// Members are read by name; absent and null are the same. The first problem is kept, and every
// later read gives a default, so that a caller checks once at the end.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/json_canonical.h"
#include "core/base/money.h"

namespace aiq {

// What is wrong with a line. Codes: invalid_json_line, invalid_utf8, missing_field, unknown_field,
// invalid_<member>, and what a reader of a format adds.
struct LineError {
  std::string code, message;
};

class JsonLine {
 public:
  // `line` must outlive it.
  [[nodiscard]] static Expected<JsonLine, LineError> read(std::string_view line);

  [[nodiscard]] bool has(std::string_view name) const;
  // A string; "" when absent.
  [[nodiscard]] std::string text(std::string_view name);
  // The same; missing_field when absent or "".
  [[nodiscard]] std::string required_text(std::string_view name);
  // A whole number, as a number or as a string of digits.
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view name);
  [[nodiscard]] std::optional<Int128> whole_128(std::string_view name);
  // A decimal number as it is written, as a number or as a string; "" when absent.
  [[nodiscard]] std::string decimal(std::string_view name);
  // RFC 3339.
  [[nodiscard]] std::optional<UnixMs> instant(std::string_view name);
  [[nodiscard]] UnixMs required_instant(std::string_view name);

  // A member that none of the reads above asked for is a problem (unknown_field).
  void refuse_unread();

  void problem(std::string code, std::string message);
  // problem() with code invalid_<name>.
  void invalid(std::string_view name, const std::string& expected);
  void missing(std::string_view name);
  [[nodiscard]] const std::optional<LineError>& error() const { return error_; }

 private:
  struct Member {
    std::string name;
    std::string_view value;  // its JSON
    bool read = false;
  };
  // The JSON of a member, "" when it is absent or null.
  std::string_view value(std::string_view name);
  // A string's text or a number's literal; nullopt for other types.
  static std::optional<std::string> scalar(std::string_view json);

  std::vector<Member> members_;
  std::optional<LineError> error_;
};

// What a decimal error is called in an answer: price_not_representable, amount_overflow or
// invalid_<name>.
[[nodiscard]] std::string decimal_code(DecimalError error, std::string_view name);

}  // namespace aiq
