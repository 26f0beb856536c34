#pragma once
// From an event to the invoice and back: what was used, what was posted for it and why, what took
// it back, which summary and which invoice it is in.

#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/store/cost_ledger.h"
#include "core/store/store.h"

namespace aiq {

// One of: ledger_id; event_id, perhaps of one tenant; tenant and period.
struct ExplainQuery {
  std::string ledger_id, event_id, tenant;
  std::optional<UnixMs> period;
};

struct ExplainedRow {
  LedgerRow row;
  std::optional<UsageEvent> event;  // as it was delivered first
  bool in_force = true;             // not taken back
  std::string reversed_by;          // ledger id, "" = by none
  std::vector<std::string> repriced_by;
  std::optional<InvoiceHour> invoice;  // of its posting period
};

struct Explained {
  std::vector<UsageRow> events;          // the events asked for
  std::vector<ExplainedRow> rows;        // oldest first
  std::vector<SummaryRow> summaries;     // of the hours of these rows
  std::vector<UsageConflict> conflicts;  // of these events
  std::optional<Freeze> freeze;          // of the period
  bool truncated = false;                // there are more rows
};

// Failure: exit 3 when there is no such row, event or period, exit 4 when an id is ambiguous.
[[nodiscard]] Expected<Explained, Failure> explain_cost(Reader& reader, const ExplainQuery& query,
                                                        UnixMs now);

}  // namespace aiq
