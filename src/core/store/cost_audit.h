#pragma once
// What is wrong in the money tables, and rows of other systems as found. Reached through
// Reader::audit() and Store::audit(); what writes needs a Store.

#include "core/store/store_error.h"

namespace aiq {

class CostAudit {
 public:
  virtual ~CostAudit() = default;
};

}  // namespace aiq
