#pragma once
// Reads the input of an operation member by member. Absent and null are the same. The first
// problem is kept and every later read gives a default, so that a caller checks once at the end.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op.h"

namespace aiq {

class Input {
 public:
  // `known`: the members that the operation has; another one is a problem (unknown_option).
  Input(const Json& in, std::initializer_list<std::string_view> known);

  [[nodiscard]] std::string text(const char* name);  // "" when absent
  [[nodiscard]] std::optional<std::string> maybe_text(const char* name);
  // Problems: missing_option when absent or "".
  [[nodiscard]] std::string required_text(const char* name);
  [[nodiscard]] bool flag(const char* name);
  [[nodiscard]] std::optional<std::int64_t> whole(const char* name, std::int64_t min,
                                                  std::int64_t max);
  [[nodiscard]] std::optional<UnixMs> instant(const char* name);       // RFC 3339
  [[nodiscard]] std::optional<DurationMs> duration(const char* name);  // ms, not negative
  [[nodiscard]] std::vector<std::string> texts(const char* name);      // array of strings
  [[nodiscard]] Labels labels(const char* name);                       // object of strings
  // A positive id as decimal digits or as a number. Problem: missing_option, invalid_id.
  [[nodiscard]] std::int64_t id(const char* name);
  // "b17", or 17; nullopt when absent. Problem: invalid_id.
  [[nodiscard]] std::optional<std::int64_t> batch_id(const char* name);
  // "k=v" as {k, v}; both "" when absent.
  [[nodiscard]] std::pair<std::string, std::string> label(const char* name);
  // limit (1 .. 1000, default 100) and after (an id of the list).
  [[nodiscard]] Page page();

  void problem(std::string code, std::string message);
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }

 private:
  [[nodiscard]] const Json* find(const char* name) const;
  void wrong_type(const char* name, const char* expected);

  const Json& in_;
  std::optional<Failure> failure_;
};

// Decimal digits of a positive id; nullopt for anything else.
[[nodiscard]] std::optional<std::int64_t> parse_id(std::string_view text);

}  // namespace aiq
