#pragma once
// Strict reading of a JSON text and its canonical form: two requests with the same meaning get
// the same bytes, two with different meaning never do.
//
// The canonical form is RFC 8785 (members sorted by UTF-16 code units, minimal escapes, numbers as
// ECMAScript prints doubles), with two differences:
//   - an integer literal keeps all its digits (RFC 8785 would round those beyond 2^53);
//   - a number too large for a double keeps its decimal digits and exponent in a normal form
//     instead of being an error.
// Text is not trimmed, folded or Unicode-normalised.
//
// Refused (JsonError): what is not JSON (RFC 8259), duplicate member names in one object, invalid
// UTF-8, lone surrogates in escapes, nesting deeper than kJsonMaxDepth. Nothing else is judged.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"

namespace aiq {

inline constexpr int kJsonMaxDepth = 128;  // arrays and objects, the outermost counted as 1

struct JsonError {
  enum class Kind { syntax, invalid_utf8, lone_surrogate, duplicate_member, too_deep };
  Kind kind;
  std::size_t offset;   // byte in the input at which it was seen
  std::string message;  // one sentence, without the offset
};

// One member of the outermost object, by position in the input text.
struct JsonMember {
  std::string name;         // decoded (escapes resolved)
  std::size_t value_begin;  // first byte of the value
  std::size_t value_end;    // one past its last byte
};

struct CanonicalJson {
  std::string text;                 // canonical, without the dropped members
  bool is_object = false;           // the outermost value is an object
  std::vector<JsonMember> members;  // of the outermost object, all of them, in input order
};

// Reads `input` (one JSON value, white space around it allowed) and prints it canonically.
// `drop`: names of members of the outermost object that are left out of `text`.
[[nodiscard]] Expected<CanonicalJson, JsonError> canonicalize_json(
    std::string_view input, const std::vector<std::string_view>& drop = {});

// JSON Pointers (RFC 6901) at which two canonical JSON texts differ, in order of the first text,
// then what only the second has. Equal texts: empty. At most `limit` pointers.
[[nodiscard]] std::vector<std::string> differing_pointers(std::string_view a, std::string_view b,
                                                          std::size_t limit = 100);

// Whether `bytes` are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms).
[[nodiscard]] bool is_valid_utf8(std::string_view bytes);

// `text` as a JSON string literal, quotes included, with minimal escapes. Bytes that are not UTF-8
// become U+FFFD, so that the result is always JSON.
void append_json_string(std::string& out, std::string_view text);

}  // namespace aiq
