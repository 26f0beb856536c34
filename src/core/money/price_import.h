#pragma once
// Reads price books of others: LiteLLM's model_prices_and_context_window.json, and our own rows as
// `aiq price list --json` prints them. Pure; prices are taken from the text of their literals and
// never pass through floating point.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/model/price.h"

namespace aiq {

// Something in the file that did not become a price, or that a person should know of a model.
struct PriceProblem {
  std::string model;
  std::string key;    // of LiteLLM's file; "" = the model as a whole
  std::string value;  // as the file has it; "" = none
  std::string code;
};

struct PriceFile {
  std::vector<PriceRow> rows;  // in the order in which they are to be added
  std::vector<PriceProblem> problems;
  // A price that looks wrong and was kept out: outlier, negative, price_not_representable,
  // amount_overflow, not_a_number, invalid_name.
  std::int64_t quarantined = 0;
  // A price of something that is no meter here (per_image, batch, ...), and a model without any
  // price of a token (no_token_price).
  std::int64_t skipped = 0;
};

// Above this a price per million tokens is taken for a slip of the unit.
inline constexpr Pico kOutlierUnitPico = 200 * 1'000'000;

struct LitellmOptions {
  UnixMs effective_from = 0;
  bool allow_outliers = false;  // lets in outliers, and nothing else that is quarantined
};

// Models keep their names ("groq/llama-3.1-8b-instant"); the vendor is litellm_provider. Meters:
//   input_cost_per_token                            input
//   output_cost_per_token                           output
//   cache_read_input_token_cost                     cache_read (else
//   input_cost_per_token_cache_hit) cache_creation_input_token_cost                 cache_write_5m
//   cache_creation_input_token_cost_above_1hr       cache_write_1h
// each also with _above_Nk_tokens: of requests with more than N x 1000 prompt tokens. A model with
// such a threshold and a meter without a price above it has an unpriced step there
// (no_tier_price), because its smaller price does not hold. A price of 0 in the file is a price of
// 0: that is how the file says that something is free. Failure: not such a file; exit 2.
[[nodiscard]] Expected<PriceFile, Failure> read_litellm_prices(std::string_view text,
                                                               const LitellmOptions& options);

// Rows as JSON Lines. Of rows of one series and effective_from only the last one
// (the highest price_id, where given) counts. `effective_from`: in place of the rows' own.
// Failure: exit 2, names the line; a book is moved whole or not at all.
[[nodiscard]] Expected<PriceFile, Failure> read_aiq_prices(std::string_view text,
                                                           std::optional<UnixMs> effective_from);

}  // namespace aiq
