#pragma once
// Repair of what the audit found: a plan that a person reads and reviews, and its execution in one
// transaction. Nothing of the ledger is ever changed or removed; rows are appended:
//
//   a reversal  for each wrong row: a second posting of a source, one without a source, a
//               correction of nothing
//   a posting   for each accepted event and approved credit note that has none
//
// A row is booked into the hour of what it repairs: a reversal into the posting period of its row,
// a posting into its service period. When an issued invoice has that hour, it may stay there only
// if the invoice billed the truth: if all reversals in the hours of the invoice, and the postings
// of all sources that were known before it was made, bring what is billed for these hours to the
// total of the invoice. Otherwise, and for sources known later, it goes into the first later hour
// without an issued invoice.
//
// Besides, summaries are computed anew, drafts that something was wrong with are held, and the
// hours that imports keep as found are set free.
//
// A plan rests on the contents of its tenant-hours: when one of them has changed since, it is not
// applied. A plan that was applied is known by its hash, and applied no second time.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/config/config.h"
#include "core/money/postings.h"
#include "core/store/cost_audit.h"
#include "core/store/invoice_book.h"
#include "core/store/store.h"

namespace aiq {

// A row to append. posted_at, actor and repair_id are set when that is done.
struct RepairEntry {
  LedgerRow row;
};

// A tenant's hour in one currency, before and after.
struct RepairPeriod {
  TenantPeriod unit;
  std::string currency;
  Int128 ledger_before = 0, ledger_after = 0;  // by service period
  Int128 billed_before = 0, billed_after = 0;  // by posting period
  std::optional<Int128> summary_before;
  std::string content_hash;  // of the hour, in all currencies
};

struct RepairInvoice {
  std::int64_t key = 0;
  std::string source, invoice_id;
  InvoiceSpan span;
  InvoiceState state = InvoiceState::draft;
  Int128 total = 0, expected = 0;  // now, and as it would be drafted after the repair
  bool hold = false;
};

// Hours that owe something and belong to no invoice.
struct RepairDraft {
  InvoiceSpan span;
  Int128 expected = 0;
};

struct RepairPlan {
  UnixMs created_at = 0;
  SourceMarks marks;
  std::vector<RepairEntry> entries;  // reversals, then postings, each in order of its key
  std::vector<RepairPeriod> periods;
  std::vector<RepairInvoice> invoices;
  std::vector<RepairDraft> to_draft;
  std::vector<std::string> freezes;  // origins to lift: "import:<id>"
};

[[nodiscard]] RepairPlan plan_repair(Reader& reader, const Config& config, UnixMs now);

// The posting of an event, and of a credit note, into its own hour. nullopt: no price covers it.
[[nodiscard]] std::optional<LedgerRow> usage_row(Reader& reader, const Config& config,
                                                 const UsageEvent& event);
[[nodiscard]] LedgerRow credit_row(const CreditNote& note);

// SHA-256 over what the ledger, the summaries and the invoices hold of a tenant's hour.
[[nodiscard]] std::string hour_hash(Reader& reader, const TenantPeriod& hour);

// The plan as a file for people; `plan_hash` in it is over all the rest.
[[nodiscard]] nlohmann::ordered_json json_plan(const RepairPlan& plan);
// What apply_repair() needs of it; the totals are for people. Failure, exit 2: it is no plan, or
// was changed after it was made.
struct GivenPlan {
  std::string hash, text;  // text: as it is kept
  SourceMarks marks;
  std::vector<LedgerRow> entries;  // key, source, tenant, kind, ref, periods, amount, currency
  std::map<TenantPeriod, std::string> hours;               // content hashes
  std::vector<std::pair<std::string, std::string>> holds;  // source and id of invoices
  std::vector<std::string> freezes;
};
[[nodiscard]] Expected<GivenPlan, Failure> read_plan(const nlohmann::ordered_json& json);

using CurrencyTotals = std::map<std::string, Int128>;

struct RepairOutcome {
  std::int64_t repair_id = 0;
  bool already_applied = false;
  std::int64_t rows_appended = 0, periods_rebuilt = 0, invoices_held = 0;
  CurrencyTotals before, after;  // of the ledger, over the plan's tenant-hours
};

// In the caller's transaction. Failure, exit 4 (plan_outdated): something that the plan rests on
// is not as it was; nothing is written.
[[nodiscard]] Expected<RepairOutcome, Failure> apply_repair(Store& store, const GivenPlan& plan,
                                                            const PostingContext& context);
// What an earlier application said of itself.
[[nodiscard]] nlohmann::ordered_json json_outcome(const RepairOutcome& outcome);

}  // namespace aiq
