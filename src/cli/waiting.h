#pragma once
// wait_for_jobs() on the real world: the session's database and daemon, the terminal's progress.

#include "cli/session.h"
#include "cli/wait_loop.h"

namespace aiq::cli {

// `ended` is called once per job. The request's reconnect time is set from --busy-timeout.
// Throws CommandFailed for an unknown job and what else keeps a job from being shown.
[[nodiscard]] WaitEnd wait_in_session(Session& session, WaitRequest request,
                                      const std::function<void(const Json& job)>& ended);

// What the wait's end means for the exit code when it is not `completed`. `not_completed` names
// what is missing, for example "2 of 3 jobs did not complete".
[[nodiscard]] Failure failure_of_wait(const Session& session, WaitEnd end,
                                      const std::string& not_completed, const std::string& hint);

}  // namespace aiq::cli
