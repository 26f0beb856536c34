#pragma once
// What a job of our own cost so far.

#include <optional>
#include <string>

#include "core/base/money.h"
#include "core/config/config.h"
#include "core/store/rows.h"
#include "core/store/store.h"

namespace aiq {

struct JobCost {
  std::optional<Int128>
      amount;            // nullopt: some of its use has no price, or prices in two currencies
  std::string currency;  // "" = nothing was used
  bool posted = false;   // all of it is in the ledger
};

// Use that is not posted yet counts as it would be posted now. nullopt: the job used nothing that
// is known, and was not answered from the cache either; such an answer costs 0.
[[nodiscard]] std::optional<JobCost> job_cost(const Config& config, Reader& reader,
                                              const JobRow& job);

}  // namespace aiq
