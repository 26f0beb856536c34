#pragma once
// One JSON object by member, read strictly, with the literal text of its values: an amount of money
// must not pass through a double.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/expected.h"
#include "core/base/json_canonical.h"

namespace aiq {

// Views into the text it was read from.
class JsonObject {
 public:
  // Error: not one JSON object; duplicate members are none.
  [[nodiscard]] static Expected<JsonObject, JsonError> read(std::string_view text);

  // In order of the text.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string_view>>& members() const {
    return members_;
  }
  // The literal of a member; nullopt when absent or null.
  [[nodiscard]] std::optional<std::string_view> literal(std::string_view name) const;
  // The text of a string member; nullopt when absent, null or no string.
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string_view>> members_;
};

[[nodiscard]] bool is_json_string(std::string_view literal);
[[nodiscard]] bool is_json_number(std::string_view literal);
// What a string literal says. Aborts when it is none.
[[nodiscard]] std::string decode_json_string(std::string_view literal);

}  // namespace aiq
