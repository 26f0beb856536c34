#pragma once
// Pieces that the reader and the printer of JSON text share. Use json_canonical.h from outside.

#include <string>
#include <string_view>

namespace aiq {

// Length of the well-formed UTF-8 sequence at `p` (1 to 4), or 0. `p` < `end`.
[[nodiscard]] int utf8_length(const char* p, const char* end);

// The first byte in [p, end) that can't stand in a JSON string as it is: a quote, a backslash, a
// control character below 0x20, or a byte that is not well-formed UTF-8. `end` if there is none.
[[nodiscard]] const char* find_special(const char* p, const char* end);

// The minimal escape of one ASCII character that needs one: \" \\ \b \t \n \f \r or \u00xx.
void append_escape(std::string& out, unsigned char c);

// `code_point` (not a surrogate) as UTF-8.
void append_utf8(std::string& out, char32_t code_point);

// Orders valid UTF-8 as its UTF-16 code units would be: like bytes, except that characters beyond
// U+FFFF (surrogates in UTF-16) come before U+E000..U+FFFF.
[[nodiscard]] bool utf16_less(std::string_view a, std::string_view b);

}  // namespace aiq
