#include "core/money/pricing.h"

#include "core/store/price_book.h"

namespace aiq {

std::string price_vendor(const Config& config, const std::string& vendor) {
  const auto section = config.vendors.find(vendor);
  return section == config.vendors.end() ? vendor : section->second.price_vendor;
}

std::optional<Rated> rate_usage(const Config& config, Reader& reader, const UsageEvent& event) {
  Rated out;
  std::optional<Pico> unit = event.unit_pico;
  if (unit) {
    out.currency = event.currency;
  } else {
    const auto price =
        reader.prices().price_at(price_vendor(config, event.vendor), event.model, event.meter,
                                 event.occurred_at, event.context_tokens);
    if (!price) return std::nullopt;
    if (!event.currency.empty() && event.currency != price->currency) return std::nullopt;
    unit = price->unit_pico;
    out.currency = price->currency;
    out.price_id = price->price_id;
  }
  const auto amount = rate(event.units, *unit);
  if (!amount) return std::nullopt;
  out.amount = *amount;
  return out;
}

}  // namespace aiq
