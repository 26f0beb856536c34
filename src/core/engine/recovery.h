#pragma once
// What a daemon does with the leases of a dead owner, before it leases anything itself. That the
// owner is dead is proven by the owner lock, so nobody has to wait for a lease to run out.

#include <functional>
#include <string>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/engine/runtime.h"
#include "core/store/writer.h"

namespace aiq {

struct RecoveryReport {
  int attempts = 0;       // found open and closed
  int dead_lettered = 0;  // of these, jobs that reached a limit by it
  int locks = 0;          // freed
};

// Closes every open attempt: `unknown`, billed maybe (nothing durable tells sent from not sent),
// or `crashed` at a vendor where nothing is paid; frees all locks; removes unpublished stages and
// batches, and loads published batches to their end.
// In slices of 1,000, each committed. Can be cut short anywhere and run again.
[[nodiscard]] RecoveryReport recover(Writer& writer, const Runtime& runtime, Clock& clock,
                                     Random& random);

// One short transaction of what the loader of an all-or-nothing batch left to do after it was
// published. False: there is nothing to do.
bool load_published_batch(Writer& writer, Clock& clock, WritePriority priority);

// Closes leases that nobody in this living process holds any more and whose stored time is over.
// `held`: whether a token's request still runs here. At most `limit` leases are looked at, from
// job id `after` on; returns the last one looked at, 0 at the end.
[[nodiscard]] JobId sweep_orphans(Writer& writer, const Runtime& runtime, Clock& clock,
                                  Random& random,
                                  const std::function<bool(const std::string&)>& held, JobId after,
                                  int limit);

}  // namespace aiq
