#include "daemon/cost_turns.h"

#include "core/base/log.h"
#include "core/base/process.h"

namespace aiq {

CostTurns::CostTurns(Writer& writer, RuntimeHolder& runtime, Clock& clock, Random& random)
    : writer_(writer),
      runtime_(runtime),
      clock_(clock),
      random_(random),
      owner_(process_name() + ":" + random.token()) {}

bool CostTurns::work(DurationMs share_ms) {
  const auto runtime = runtime_.get();
  const auto every = runtime->config.daemon.aggregate_every_ms;
  const MonoMs begun = clock_.mono_ms();
  if (!state_ && (!every || begun < next_)) return false;
  if (!state_) {
    begin();
    next_ = begun + *every;
  }
  while (state_->phase != AggregateState::Phase::done) {
    if (clock_.mono_ms() - begun >= share_ms) return true;
    try {
      state_ = writer_.run(WritePriority::maintenance, [&](Store& store) {
        return aggregate_step(store, runtime->config, call_, *state_, clock_.wall_ms());
      });
    } catch (const StoreError&) {
      // The next turn finds the run that this one leaves open, and says that it failed.
      state_.reset();
      throw;
    }
  }
  finish();
  return false;
}

void CostTurns::begin() {
  call_ = {};
  call_.call_id = random_.token();
  call_.owner = owner_;
  call_.initiator = "daemon";
  call_.actor = "aiqd";
  call_.correlation_id = call_.call_id;
  call_.fresh_only = true;
  state_.emplace();
}

void CostTurns::finish() {
  const AggregateTotals totals = state_->totals;
  state_.reset();
  if (totals.periods == 0 && totals.busy == 0) return;
  log_info("aggregated", {{"run_id", call_.call_id},
                          {"periods", totals.periods},
                          {"posted", totals.posted},
                          {"replayed", totals.replayed},
                          {"conflicts", totals.conflicts},
                          {"unpriced", totals.unpriced},
                          {"frozen", totals.frozen},
                          {"busy", totals.busy},
                          {"correlation_id", call_.correlation_id}});
}

}  // namespace aiq
