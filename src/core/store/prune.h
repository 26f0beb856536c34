#pragma once
// Removing what is over, in slices that hold the writer for milliseconds.
//
// Never removed: live jobs, open dead letters, usage and what is booked from it, and an answer that
// a job or a cache entry still needs. A job goes with its request, submissions, attempts, edits,
// closed dead letters and lines of batches, and its labels unless it used something; a batch goes
// with its last line. The answer goes
// with the last job or entry that needs it. Events go by their age alone, client keys outlive jobs.

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/clock.h"

namespace aiq {

// What ended before these moments goes; nullopt = all is kept.
struct PruneRules {
  std::optional<UnixMs> completed, failed, cancelled;  // jobs, since they are final
  std::optional<UnixMs>
      client_keys;                 // since they were given or, if later, since their job is final
  std::optional<UnixMs> outbox;    // events
  std::optional<UnixMs> attempts;  // of final jobs, since the job is final
};

// How far a pass has come.
struct PruneCursor {
  enum class Phase { jobs, attempts, batches, client_keys, outbox, done };
  Phase phase = Phase::jobs;
  std::int64_t after = 0;          // the id last looked at
  std::string tenant, client_key;  // the same, of client_keys
};

struct PruneCounts {
  std::int64_t jobs = 0, attempts = 0, results = 0, batches = 0, client_keys = 0, events = 0;

  PruneCounts& operator+=(const PruneCounts& other);
};

struct PruneSlice {
  PruneCounts counts;
  PruneCursor next;  // phase done: the pass is over
};

}  // namespace aiq
