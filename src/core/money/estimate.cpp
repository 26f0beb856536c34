#include "core/money/estimate.h"

#include <algorithm>

namespace aiq {

std::optional<Estimate> estimate_cost(PriceBook& book, const EstimateInput& input) {
  const auto price = [&](const char* meter) {
    return book.price_at(input.vendor, input.model, meter, input.at, input.prompt_tokens);
  };
  const auto plain = price("input");
  const auto output = price("output");
  if (!plain || !output || plain->currency != output->currency) return std::nullopt;
  Pico dearest = plain->unit_pico;
  for (const char* meter : {"cache_write_5m", "cache_write_1h"}) {
    const auto written = price(meter);
    if (!written) continue;
    if (written->currency != plain->currency) return std::nullopt;
    dearest = std::max(dearest, written->unit_pico);
  }
  const auto in = rate(input.prompt_tokens, dearest);
  const auto out = rate(input.output_tokens, output->unit_pico);
  if (!in || !out) return std::nullopt;
  return Estimate{static_cast<Int128>(*in) + *out, plain->currency};
}

}  // namespace aiq
