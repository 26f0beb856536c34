#pragma once
// The price book: append-only rows with the time from which each holds. Reached through
// Reader::prices() and Store::prices(); what writes needs a Store.

#include "core/store/store_error.h"

namespace aiq {

class PriceBook {
 public:
  virtual ~PriceBook() = default;
};

}  // namespace aiq
