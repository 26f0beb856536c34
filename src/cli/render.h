#pragma once
// JSON of the operations as people read it.

#include <string>
#include <vector>

#include "cli/session.h"

namespace aiq::cli {

// A scalar in one line: null is "-", times have seconds, other values as they are; arrays and
// objects as compact JSON.
[[nodiscard]] std::string scalar_text(const Json& value);
// A member, "-" when it is absent.
[[nodiscard]] std::string member_text(const Json& object, const char* name);
// "3m ago" since the time in the member; "-" when there is none.
[[nodiscard]] std::string age_text(const Json& object, const char* name, UnixMs now);

// "key: value" lines with aligned values. null and empty members are left out, unless `all`.
// Members named in `skip` are left to the caller.
void print_members(Output& out, const Json& object, const std::vector<std::string>& skip = {},
                   bool all = false);
// The attempts of a job or dead letter; nothing when there are none.
void print_attempts(Output& out, const Json& attempts);

// "job 17 is dead_lettered: rejected: no such model (HTTP 404)"
[[nodiscard]] std::string job_sentence(const Json& job);

// The text in the answer of `result`. CommandFailed: exit 2 for embeddings, exit 1 when the
// answer holds none (a tool call, for example).
[[nodiscard]] const std::string& answer_text(const Json& result);
// It, with a newline at its end, and note_source().
void print_answer_text(Output& out, const Json& result);
// Says on standard error when the answer came from the cache or is stale.
void note_source(Output& out, const Json& result);

}  // namespace aiq::cli
