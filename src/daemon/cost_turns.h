#pragma once
// The daemon's share in the work on money: aggregation every daemon.aggregate_every, step by step,
// so that no other work of the maintenance thread waits for it. Not thread-safe.

#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/engine/runtime.h"
#include "core/money/aggregate.h"
#include "core/store/writer.h"

namespace aiq {

class CostTurns {
 public:
  CostTurns(Writer& writer, RuntimeHolder& runtime, Clock& clock, Random& random);

  // Works for about `share_ms` on what is due. True: there is more to do at once.
  bool work(DurationMs share_ms);

 private:
  void begin();
  void finish();

  Writer& writer_;
  RuntimeHolder& runtime_;
  Clock& clock_;
  Random& random_;
  const std::string owner_;
  MonoMs next_ = 0;
  AggregateCall call_;
  std::optional<AggregateState> state_;  // of the turn that is under way
};

}  // namespace aiq
