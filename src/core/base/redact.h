#pragma once
// The one way secrets are kept out of everything that leaves the process or reaches the disk.
//
// Each secret that a process learns is registered once; every sink (log, database text, error,
// metric, trace, output) passes its text through redact(). Thread-safe.

#include <string>
#include <string_view>

namespace aiq {

inline constexpr std::string_view kRedacted = "[redacted]";

// Remembers a secret of at least 4 bytes (shorter ones would blank out ordinary words). Its
// JSON-escaped and percent-encoded and Base64 forms are remembered too; in a text, any of its bytes
// may be written as \u002d, %2D, &#45; or &amp;.
void register_secret(std::string_view secret);

// `text` with every registered secret replaced by kRedacted, and also what looks like a
// credential in it: values of Authorization and x-api-key, "Bearer ...", "sk-..." keys.
[[nodiscard]] std::string redact(std::string_view text);

// Replaces only the registered secrets, leaving look-alikes: for vendor bodies, where an answer
// that merely mentions "sk-..." is the customer's text. Returns whether anything was replaced.
bool redact_secrets(std::string& text);

}  // namespace aiq
