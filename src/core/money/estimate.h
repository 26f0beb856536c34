#pragma once
// What a request may cost before it is sent: the worst case by the price book.

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/money.h"
#include "core/store/price_book.h"

namespace aiq {

struct EstimateInput {
  std::string vendor, model;  // vendor: as the price book names it
  UnixMs at = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;  // the most that it may answer with
};

struct Estimate {
  Int128 amount = 0;
  std::string currency;
};

// Every prompt token at the dearest price that one may have (plain, or written to the vendor's
// cache), every output token that is allowed. nullopt: no price of input or output, a price in
// another currency, or an amount beyond what a row can hold.
[[nodiscard]] std::optional<Estimate> estimate_cost(PriceBook& book, const EstimateInput& input);

}  // namespace aiq
