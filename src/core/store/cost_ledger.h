#pragma once
// Money that was used, posted, summed up and invoiced. Reached through
// Reader::ledger() and Store::ledger(); what writes needs a Store.

#include "core/store/store_error.h"

namespace aiq {

class CostLedger {
 public:
  virtual ~CostLedger() = default;
};

}  // namespace aiq
