#pragma once
// Rows of the store as the JSON of the operator's contract: times RFC 3339 UTC with milliseconds,
// ids as strings, what is not known as null and never as 0.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op.h"

namespace aiq {

[[nodiscard]] Json json_time(std::optional<UnixMs> at);
[[nodiscard]] Json json_id(std::int64_t id);
[[nodiscard]] Json json_batch_id(std::int64_t id);  // "b17"
// "" is null. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] Json json_text(std::string_view text);
template <class T>
[[nodiscard]] Json json_number(const std::optional<T>& number) {
  return number ? Json(*number) : Json(nullptr);
}
// A body is never read: a general reader would change integers beyond 64 bits and floats. It goes
// as its text, in a member named NAME_text; `aiq --json` prints it as NAME, verbatim.
[[nodiscard]] Json json_body_text(const std::optional<std::string>& body);

// `aiq show` without attempt_log and result; a row of `aiq list`.
[[nodiscard]] Json json_job(const JobRow& job);
[[nodiscard]] Json json_attempts(const std::vector<AttemptRow>& attempts);
[[nodiscard]] Json json_dead_letter(const DeadLetter& letter);
[[nodiscard]] Json json_cache_entry(const CacheEntry& entry, UnixMs now);
[[nodiscard]] Json json_cache_stats(const CacheStats& stats);
[[nodiscard]] Json json_lock(const LockRow& lock, UnixMs now);
[[nodiscard]] Json json_pause(const Pause& pause);

// One page of a list; `last` is the place to go on after, used when the page is full.
[[nodiscard]] Json json_page(Json rows, const Page& page, std::int64_t last);

}  // namespace aiq
