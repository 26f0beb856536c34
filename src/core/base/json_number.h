#pragma once
// Numbers of canonical JSON. Use json_canonical.h from outside.

#include <string>
#include <string_view>

namespace aiq {

// `literal` (of the grammar of RFC 8259) in canonical form. Without '.', 'e' and 'E' it is an
// integer and keeps all its digits; "-0" becomes "0". Otherwise it is the nearest double, printed
// by append_double; too large for a double, it keeps its significant digits: 12e400 and 1.2e401
// both become "1.2e+401".
void append_canonical_number(std::string& out, std::string_view literal);

// A finite double as ECMAScript's Number::toString prints it (ECMA-262, section 6.1.6.1.20): the
// shortest digits that read back as the same double, "1e+21" and "1e-7" beyond the plain range.
void append_double(std::string& out, double value);

}  // namespace aiq
