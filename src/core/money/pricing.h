#pragma once
// What a use costs: by its own price, or by the price book at the time of use.

#include <optional>
#include <string>

#include "core/config/config.h"
#include "core/model/ledger.h"
#include "core/store/store.h"

namespace aiq {

struct Rated {
  Pico amount = 0;
  std::string currency;
  std::optional<std::int64_t> price_id;  // nullopt: its own price
};

// Name of a vendor of the configuration in the price book.
[[nodiscard]] std::string price_vendor(const Config& config, const std::string& vendor);

// nullopt: no price covers it, or its amount is beyond what a row holds. That is not 0.
[[nodiscard]] std::optional<Rated> rate_usage(const Config& config, Reader& reader,
                                              const UsageEvent& event);

}  // namespace aiq
