#pragma once
// One value of a JSON text changed in place, by its JSON Pointer (RFC 6901). The text is spliced,
// not read and printed again: every byte outside of the value stays as it was, so that integers
// keep all their digits and floats the way they were written.

#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace aiq {

struct PointerError {
  enum class Kind {
    syntax,    // not a JSON Pointer
    no_place,  // it leads through, or to, something that is not there
  };
  Kind kind;
  std::string message;  // one sentence, names the pointer and where it ends
};

// `text` with `value` at `pointer`. Both are JSON that canonicalize_json() takes, checked by the
// caller.
//   ""        replaces all of the text
//   a member  is replaced, or added as the last one when the object has none of this name
//   an index  is replaced; there must be such an element
//   "-"       as the last step through an array: appended
[[nodiscard]] Expected<std::string, PointerError> set_at_pointer(std::string_view text,
                                                                 std::string_view pointer,
                                                                 std::string_view value);

}  // namespace aiq
