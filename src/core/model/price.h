#pragma once
// Prices of use: what one unit of a meter costs from a time on.

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/money.h"

namespace aiq {

using PriceId = std::int64_t;  // AUTOINCREMENT, never reused

// A row of the price book.
struct PriceRow {
  PriceId price_id = 0;  // 0: not stored yet
  std::string vendor, model, meter;
  std::string currency;  // ISO 4217
  // Holds for requests with more prompt tokens than this; 0: for all that no higher row holds for.
  std::int64_t above_tokens = 0;
  // Pico of the currency per unit, >= 0. nullopt: known to have no price, which is not a price of
  // 0.
  std::optional<Pico> unit_pico;
  UnixMs effective_from = 0;
  std::string origin;  // set | litellm | aiq
  std::string actor;   // uid:1000
  UnixMs created_at = 0;
};

// The price that holds for one event.
struct Price {
  PriceId price_id = 0;
  Pico unit_pico = 0;
  std::string currency;

  bool operator==(const Price&) const = default;
};

}  // namespace aiq
