#pragma once
// Postings by hand: decisions on conflicts, credits, reversals. Each runs in the
// caller's transaction; a Failure has written nothing. Summaries of the hours it touched are
// computed in the same transaction.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/config/config.h"
#include "core/store/cost_ledger.h"
#include "core/store/store.h"

namespace aiq {

struct PostingContext {
  const Config& config;
  UnixMs now = 0;
  std::string actor, reason;
};

// The row that an operator's id names: not found is exit 3, several imports' is exit 4.
[[nodiscard]] Expected<LedgerRow, Failure> find_ledger_row(Reader& reader, const std::string& id);

// The row whose reversal takes `row` out of force: itself, or, when it was taken back and put in
// force again, what put it there. nullopt: it is not in force.
[[nodiscard]] std::optional<LedgerRow> in_force(CostLedger& ledger, LedgerRow row);

// What takes `row` back, not appended yet: posted into the first hour, from the row's own on, that
// no issued invoice covers.
[[nodiscard]] LedgerRow reversal_row(CostLedger& ledger, const LedgerRow& row,
                                     const PostingContext& context);

// Whether a row was taken back and not put in force again.
[[nodiscard]] bool is_reversed(CostLedger& ledger, std::int64_t entry_id);

// Computes the summaries of hours anew that are not held as evidence of an import, and the own
// drafts of invoices that have one of these hours.
void recompute_hours(CostLedger& ledger, const std::set<TenantPeriod>& hours, UnixMs now);

struct Decision {
  UsageConflict conflict;
  std::vector<std::int64_t> reversed;  // entries that were posted of the payload before
  std::optional<std::int64_t> posted;  // entry of the payload that counts now
};
// The first payload holds; the other one is refused for good.
[[nodiscard]] Expected<Decision, Failure> keep_conflict(Store& store, std::int64_t conflict_id,
                                                        const PostingContext& context);
// The other payload counts: what was posted is reversed and the new amount posted. Nothing posted
// yet: aggregation will post the new payload only.
[[nodiscard]] Expected<Decision, Failure> replace_conflict(Store& store, std::int64_t conflict_id,
                                                           const PostingContext& context);

struct Credit {
  std::string id;
  std::string tenant;
  UnixMs period = 0;
  Pico amount = 0;       // above 0 reduces
  std::string currency;  // "" = the only one that the hour has
  std::string approved_by;
  bool allow_negative = false;
};
[[nodiscard]] Expected<LedgerRow, Failure> post_credit(Store& store, const Credit& credit,
                                                       const PostingContext& context);

// Takes a row back, once; gives the rows it appended, that of `id` first. With a usage row go its
// price corrections, and its event is waived: it is not posted again. A reversal can be reversed
// once, too, which puts the row in force again.
[[nodiscard]] Expected<std::vector<LedgerRow>, Failure> reverse_row(Store& store,
                                                                    const std::string& id,
                                                                    const PostingContext& context);

}  // namespace aiq
