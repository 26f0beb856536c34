#pragma once
// Option values as people type them. What can't be read is CommandFailed, exit 2, and names the
// option. The input members of an operation are set only when the option was given.

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/output.h"
#include "core/base/clock.h"
#include "core/base/duration.h"

namespace aiq::cli {

[[noreturn]] void fail_usage(const std::string& code, const std::string& message,
                             const std::string& hint);

[[nodiscard]] DurationMs duration_value(const std::string& option, const std::string& text);
[[nodiscard]] std::int64_t whole_value(const std::string& option, const std::string& text,
                                       std::int64_t least, std::int64_t most);
// RFC 3339.
[[nodiscard]] UnixMs time_value(const std::string& option, const std::string& text);
// RFC 3339, or a duration from `now` on.
[[nodiscard]] UnixMs future_value(const std::string& option, const std::string& text, UnixMs now);
// RFC 3339, or an age before `now`.
[[nodiscard]] UnixMs past_value(const std::string& option, const std::string& text, UnixMs now);

void set_text(Json& in, const char* member, const Text& text);
void set_flag(Json& in, const char* member, bool flag);
void set_past(Json& in, const char* member, const std::string& option, const Text& text,
              UnixMs now);
void set_duration(Json& in, const char* member, const std::string& option, const Text& text);
// One "k=v"; the operation checks the key.
void set_label(Json& in, const Text& label);
// "k=v"... -> {"labels":{"k":"v"}}; a key given twice is an error.
void set_labels(Json& in, const Texts& labels);

// The contents of a file ("-" = standard input), at most `max_bytes` (0 = 1 GiB).
// Can't be read: exit 2. Too large: exit 5.
[[nodiscard]] std::string read_input(const std::string& option, const std::string& path,
                                     std::int64_t max_bytes);

}  // namespace aiq::cli
