#pragma once
// JSON text laid out anew without being read into values: every token keeps its bytes.

#include <string>
#include <string_view>

namespace aiq {

// JSON on one line: without the carriage returns and line feeds between its tokens.
[[nodiscard]] std::string one_line_json(std::string_view text);

// JSON for people: a member or element on each line, two spaces deeper per level; empty objects
// and arrays on one line. Any text is taken; what is not JSON keeps at least its tokens.
[[nodiscard]] std::string indented_json(std::string_view text);

}  // namespace aiq
