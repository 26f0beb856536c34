#pragma once
// The price book: append-only rows with the time from which each holds. Reached through
// Reader::prices() and Store::prices(); what writes needs a Store.
//
// A series is one (vendor, model, meter, above_tokens). The row of a series that holds at a time is
// the one with the latest effective_from not after it, and of these the one that was added last. A
// wrong price is corrected by another row with the same effective_from.
//
// LiteLLM's file names models of most vendors "VENDOR/MODEL" and those of some as they are. The
// book keeps its names, so where it has no MODEL of a vendor, it is asked for "VENDOR/MODEL".

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/price.h"
#include "core/store/rows.h"
#include "core/store/store_error.h"

namespace aiq {

struct PriceFilter {
  std::string vendor, model, meter;  // "" = any
  std::optional<UnixMs> at;          // only the rows that hold at this time
};

class PriceBook {
 public:
  virtual ~PriceBook() = default;

  // The price of an event: of the series of its meter whose above_tokens is the largest below
  // `context_tokens` (prompt tokens of its request; nullopt: not known, as 0), the row that holds
  // at `at`. nullopt: unpriced, which is not a price of 0.
  // `vendor` "" (an event that names none): when each vendor that prices the model has the same
  // price, that one; else nullopt.
  virtual std::optional<Price> price_at(const std::string& vendor, const std::string& model,
                                        const std::string& meter, UnixMs at,
                                        std::optional<std::int64_t> context_tokens) = 0;

  // Under which name the book has a model of a vendor: `model` or "VENDOR/MODEL". nullopt: neither.
  virtual std::optional<std::string> name_of(const std::string& vendor,
                                             const std::string& model) = 0;

  // Newest row first.
  virtual std::vector<PriceRow> list(const PriceFilter& filter, const Page& page) = 0;

  // Adds a row. nullopt: the last one of its series with the same effective_from says the same.
  virtual std::optional<PriceId> add(const PriceRow& row) = 0;
  // Whether the row of its series that holds at row.effective_from says the same, so that an import
  // of the same book adds nothing.
  virtual bool holds(const PriceRow& row) = 0;
};

}  // namespace aiq
