#pragma once
// After a price was corrected: what the price book says now about usage that it rated, and postings
// of the differences. Usage with a price of its own is left alone, and so is what was taken back.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/money/postings.h"

namespace aiq {

struct Reprice {
  LedgerRow row;      // the usage row
  Int128 booked = 0;  // for it, with earlier corrections
  LedgerRow posting;  // the difference; entry_id 0: not posted
};

struct RepriceSlice {
  std::vector<Reprice> changes;
  // Rows that can't be corrected by a posting: the price is gone, is in another currency, or the
  // difference fits no row.
  std::int64_t skipped = 0;
  std::optional<std::int64_t> next_after;  // entry id to go on after; nullopt: the end
};

// Usage rows of the scope with entry ids above `after`, at most `limit`. Writes nothing.
[[nodiscard]] RepriceSlice plan_reprice(Reader& reader, const PeriodScope& scope,
                                        std::int64_t after, int limit,
                                        const PostingContext& context);
// The same, and posts the differences.
[[nodiscard]] RepriceSlice post_reprice(Store& store, const PeriodScope& scope, std::int64_t after,
                                        int limit, const PostingContext& context);

}  // namespace aiq
