#pragma once
// A job: one paid request and its answer. This header holds its states and what may follow what.

#include <cstdint>
#include <optional>
#include <string_view>

namespace aiq {

using JobId = std::int64_t;         // AUTOINCREMENT, never reused
using SubmissionId = std::int64_t;  // likewise
using AttemptId = std::int64_t;     // likewise
using LaneId = std::int64_t;        // one per (tenant, vendor, model) ever seen

//            submit            lease                 answer stored
//   (none) ----------> queued ----------> processing ---------------> completed
//      \                 ^  ^ \             |  |  |
//       \  from cache    |  |  \ deadline   |  |  +--> dead_lettered --discard--> failed
//        +-> completed   |  |   +-----------|--|-----> dead_lettered
//                        |  +--- released --+  |            |
//                        |                     v            |
//                        |        lease     retrying        |
//                        |     <----------  (backoff)       |
//                        +--------------- replay -----------+
//   queued, retrying, processing --cancel--> cancelled
enum class JobState : std::uint8_t {
  queued,
  processing,
  retrying,
  completed,
  failed,
  dead_lettered,
  cancelled,
};
inline constexpr int kJobStateCount = 7;

[[nodiscard]] std::string_view to_string(JobState state);
[[nodiscard]] std::optional<JobState> parse_job_state(std::string_view name);

// Whether a job in `state` still wants to be worked on: queued, retrying, processing.
[[nodiscard]] bool is_live(JobState state);
// Whether the table of the operator's contract (section 4) has the row from -> to.
[[nodiscard]] bool is_legal_change(JobState from, JobState to);

enum class JobKind : std::uint8_t {
  request,  // somebody asked for it
  refresh,  // renews a cache entry past its soft TTL
};
[[nodiscard]] std::string_view to_string(JobKind kind);
[[nodiscard]] JobKind parse_job_kind(std::string_view name);  // aborts on an unknown name

// Why a job was dead-lettered.
enum class DeadReason : std::uint8_t {
  rejected,              // the vendor refused the request itself
  attempts_exhausted,    // max_attempts counted attempts failed
  deadline,              // its deadline passed
  crash_limit,           // its attempts ended with the process, crash_limit times
  unknown_limit,         // more attempts with an unknown bill than unknown_retries allows
  rate_limit_exhausted,  // rate-limited too often (uncounted_max) or for too long (give_up_after)
};
[[nodiscard]] std::string_view to_string(DeadReason reason);

inline constexpr int kPriorityMin = -100;
inline constexpr int kPriorityMax = 100;

}  // namespace aiq
