#pragma once
// Waiting for the lines of a batch: looks at all of them once, then follows what happens to jobs,
// so that a poll costs by events and not by lines.

#include <functional>
#include <optional>
#include <string>

#include "cli/session.h"
#include "cli/wait_loop.h"

namespace aiq::cli {

// `ended`: once per job, when it is seen to have ended; may be empty. With `any` one completed job
// is enough. Throws CommandFailed for an unknown batch.
[[nodiscard]] WaitEnd wait_for_batch(Session& session, const std::string& batch_id, bool any,
                                     std::optional<DurationMs> timeout_ms,
                                     const std::function<void(const std::string& job_id)>& ended);

// Lines by state, over all of them.
[[nodiscard]] Json batch_counts(Session& session, const std::string& batch_id);
// {"batch_id","created_at","lines","counts",...}
[[nodiscard]] Json batch_with_counts(Session& session, Json batch);

// "3 of 10 lines did not complete", of a batch with counts.
[[nodiscard]] std::string not_completed_sentence(const Json& batch);

// Withdraws the lines that are not final; `force` stops their jobs also where others ask for them.
void cancel_batch_lines(Session& session, const std::string& batch_id, bool force,
                        const std::function<void(const Json& row)>& cancelled);

}  // namespace aiq::cli
