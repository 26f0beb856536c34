#pragma once
// Waiting for jobs to end, by asking again and again: soon at first, then five times a second.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/ops/op.h"

namespace aiq::cli {

// The world that a wait looks at; tests have their own.
struct WaitWorld {
  std::function<Expected<Json, Failure>(const std::string& job_id)> show;
  std::function<bool()> daemon_runs;
  std::function<void(DurationMs)> pause;  // sleeps
  Clock& clock;                           // only its monotonic side
};

struct WaitRequest {
  std::vector<std::string> job_ids;  // at least one
  bool any = false;                  // one completed job is enough
  std::optional<DurationMs> timeout_ms;
  DurationMs reconnect_ms = 10'000;  // how long a daemon may be away
};

struct WaitProgress {
  std::size_t jobs = 0, ended = 0, completed = 0;
  DurationMs waited_ms = 0;
};

struct WaitEvents {
  std::function<void(const Json& job)> ended;  // once per job, in the order seen
  std::function<void(const WaitProgress&)> progress;
};

enum class WaitEnd {
  completed,      // all (any) completed
  not_completed,  // all that could still end have, and it is not enough
  timed_out,
  daemon_gone,  // jobs are open and no daemon has answered for reconnect_ms
  no_daemon,    // the same, from the beginning
};

// A job that can't be shown is the Failure of that (unknown id: exit 3), before any waiting.
[[nodiscard]] Expected<WaitEnd, Failure> wait_for_jobs(const WaitWorld& world,
                                                       const WaitRequest& request,
                                                       const WaitEvents& events);

}  // namespace aiq::cli
