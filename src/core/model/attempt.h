#pragma once
// An attempt: one lease of a job, at most one request on the wire, exactly one outcome.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/model/job.h"
#include "core/model/usage.h"

namespace aiq {

// What was seen.
enum class Outcome : std::uint8_t {
  completed,
  rate_limited,        // 429: wait
  vendor_quota,        // spend limit: a person must act
  overloaded,          // 503, 529
  server_error,        // other 5xx, 408, 409, 425
  connect_timeout,     // no connection in time: nothing sent
  first_byte_timeout,  // sent, no byte of an answer in time
  total_timeout,       // sent, not all in time
  network,             // DNS, connect, TLS failure, or a reset after sending
  bad_response,        // an answer that can't be one: HTML, cut, invalid JSON, too large
  empty_response,      // valid, but without content
  rejected,            // the request itself is refused
  auth,                // 401, 403
  unknown,             // found open after its process died
  lease_lost,          // its holder lost the lease before the answer came
  cancelled,           // the job was cancelled while the request ran
  released,            // given back at shutdown
  crashed,             // like unknown, at a vendor that costs nothing (echo)
};
[[nodiscard]] std::string_view to_string(Outcome outcome);
[[nodiscard]] std::optional<Outcome> parse_outcome(std::string_view name);

// Whether an attempt with this outcome uses one of max_attempts.
[[nodiscard]] bool counts(Outcome outcome);

// What the attempt may have cost.
enum class Billed : std::uint8_t {
  no,     // nothing sent, or an explicit error status
  yes,    // usage received
  maybe,  // sent, no usage seen
};
[[nodiscard]] std::string_view to_string(Billed billed);

enum class UsageState : std::uint8_t {
  none,     // no answer that should have had usage
  ok,       // usage is recorded
  missing,  // an answer without usage
  invalid,  // impossible usage (cached above prompt, negative, not whole): not recorded
};
[[nodiscard]] std::string_view to_string(UsageState state);

// Everything that a finished attempt says; one value from the transfer thread to the row.
struct AttemptResult {
  Outcome outcome = Outcome::unknown;
  Billed billed = Billed::maybe;
  // Decides a retry for server_error, overloaded and rejected; from x-should-retry or the table.
  bool retryable = true;
  std::string error_code;     // the vendor's code or ours: "rate_limit_exceeded", "invalid_json"
  std::string error_message;  // redacted, at most 2 KiB
  std::string excerpt;        // first 2 KiB of the body of a failing answer, redacted
  std::optional<int> http_status;
  std::string vendor_request_id;
  std::optional<DurationMs> connect_ms, first_byte_ms, total_ms;
  std::optional<DurationMs> retry_after_ms;  // the wait that this answer asked for
  UsageState usage_state = UsageState::none;
  Usage usage;                // meaningful when usage_state == ok
  std::string body;           // the vendor's body as received; only when outcome == completed
  bool truncated = false;     // finish_reason length / stop_reason max_tokens
  bool spent_vendor = false;  // auth by 401 or vendor_quota: the whole vendor pauses
  bool spent_model = false;   // auth by 403: vendor + model pauses
};

}  // namespace aiq
