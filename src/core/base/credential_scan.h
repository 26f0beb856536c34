#pragma once
// What looks like a credential, without knowing it. A part of redact(); use redact.h from outside.

#include <string>
#include <string_view>

namespace aiq {

// `text` with kRedacted in place of
//   - the value after a name that ends in "authorization" or "api-key" and ':' or '=', as in
//     headers, query strings and JSON, there also inside of a JSON string;
//   - the token after "Bearer";
//   - "sk-" and six or more characters of a key.
// Case does not matter in names. JSON stays JSON.
[[nodiscard]] std::string without_credentials(std::string_view text);

}  // namespace aiq
