#pragma once
// Invoices: drafts follow the ledger, issued ones never change.
//
//   draft <-> held      draft, held -> void      draft -> issued, which is final
//
// An invoice bills what was posted into its hours. Its total is the exact sum of its lines, rounded
// once to the minor unit of its currency, half away from zero; the difference is a line of its
// own. A line of a service period before the invoice's own is `late`.
//
// Everything here runs in the transaction of the caller.

#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/model/period.h"
#include "core/store/cost_ledger.h"
#include "core/store/invoice_book.h"
#include "core/store/store.h"

namespace aiq {

struct InvoiceActor {
  std::string actor;
  UnixMs now = 0;
};

// Makes a draft of a span, or brings the draft or held invoice of exactly these hours up to date;
// an imported one too. Failure, exit 4: an hour of it belongs to another invoice, or the invoice is
// issued.
[[nodiscard]] Expected<InvoiceRow, Failure> draft_invoice(Store& store, const InvoiceSpan& span,
                                                          const InvoiceActor& by);

enum class InvoiceMove { hold, release, issue, make_void };
// Moves an invoice from state to state; one that is there already stays as it is. Failure: exit 3,
// no such invoice; exit 4, ambiguous, issued already, void, or not to be issued: held, outdated,
// unposted, unpriced or frozen use, an undecided conflict, an unacknowledged error of the audit.
[[nodiscard]] Expected<InvoiceRow, Failure> move_invoice(Store& store, const std::string& id,
                                                         InvoiceMove move,
                                                         const std::string& reason,
                                                         const InvoiceActor& by);

// The one invoice of this id. Failure: exit 3; exit 4 when several systems have one.
[[nodiscard]] Expected<InvoiceRow, Failure> find_invoice(Reader& reader, const std::string& id);

// Brings own drafts up to date that have one of these hours. Returns their keys. What posts does it
// through recompute_hours(), see postings.h.
std::vector<std::int64_t> recompute_drafts(CostLedger& ledger, const std::set<TenantPeriod>& hours,
                                           UnixMs now);

// An invoice against what is billed for its hours now.
struct InvoiceCheck {
  Int128 billed = 0;   // exact
  Int128 rounded = 0;  // to the minor unit
  Int128 delta = 0;    // total of the invoice - rounded
};
[[nodiscard]] InvoiceCheck verify_invoice(Reader& reader, const InvoiceRow& row);

}  // namespace aiq
