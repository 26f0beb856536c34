#pragma once
// Aggregation: posts what was used and not posted yet, and computes the summaries of the hours that
// this touched. The daemon, cron and people may do it at the same time, and any of them may die at
// any point: the key of each row, in the transaction of the posting, is what keeps a use from being
// charged twice; locks and runs only save work and tell what happened.
//
// The work is cut into steps, each short enough for one transaction of the writer. Between steps
// all state is in AggregateState, a value: the daemon keeps it, or `aiq` carries it from one
// operation to the next.
//
//   collect   events that nobody has looked at become pending
//   units     each tenant-hour with pending events, or (in a scope) each there is, gets a run: its
//             events are posted, its summaries computed anew. A unit of up to kAggregateSlice
//             events is done in one transaction; a larger one keeps the lock `aggregate:T:HOUR`
//             until its last step.
//
// A process that dies in a unit leaves an open run. Whoever aggregates next sees that the owner of
// the lock is dead, calls the run abandoned and computes the summaries of its hours; what it had
// not posted is still pending.

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "core/config/config.h"
#include "core/store/cost_ledger.h"
#include "core/store/store.h"

namespace aiq {

inline constexpr int kAggregateSlice = 500;

struct AggregateCall {
  std::string call_id;
  std::string owner;      // process_name() of who drives the steps, and a random part
  std::string initiator;  // daemon | command
  std::string actor, correlation_id;
  PeriodScope scope;
  // Only units with fresh events: the daemon's turn leaves alone what waits for a price or for the
  // end of a freeze.
  bool fresh_only = false;
};

struct AggregateTotals {
  std::int64_t periods = 0;  // units that a run was made of
  std::int64_t posted = 0, replayed = 0, conflicts = 0, unpriced = 0, late = 0;
  std::int64_t frozen = 0;  // units in which a freeze held back events
  std::int64_t busy = 0;    // units that another process was working on
};

struct AggregateState {
  enum class Phase { collect, units, done };
  // A unit that takes more than one step.
  struct Unit {
    TenantPeriod at;
    std::int64_t run_id = 0;
    int retry_count = 0;
    std::int64_t after = 0;  // usage id of the last event looked at
    RunCounts counts;
    std::int64_t posted_here = 0;  // of the posted: with this service period
    bool frozen = false;
    std::set<UnixMs> touched;  // other hours of the tenant that got a row
  };

  Phase phase = Phase::collect;
  std::optional<TenantPeriod> after;  // the last unit done
  std::optional<Unit> unit;
  AggregateTotals totals;
};

// One step, in the transaction of the caller. Gives the state to go on with; done: the totals.
[[nodiscard]] AggregateState aggregate_step(Store& store, const Config& config,
                                            const AggregateCall& call, const AggregateState& state,
                                            UnixMs now);

// "aggregate:acme:2026-03-01T00"
[[nodiscard]] std::string aggregate_lock(const TenantPeriod& unit);

}  // namespace aiq
