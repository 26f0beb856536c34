#pragma once
// Invoices: what a tenant is asked to pay for some hours in one currency. Reached through
// CostLedger::invoices(); what writes needs a Store and runs in its transaction.
//
// Nothing here decides: totals, rounding and who may change what are the business of core/money.
// The database keeps an issued invoice as it is, and an hour in one invoice that is not void.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/money.h"
#include "core/model/period.h"
#include "core/store/rows.h"
#include "core/store/store_error.h"

namespace aiq {

enum class InvoiceState : std::uint8_t { draft, held, issued, voided };
[[nodiscard]] std::string_view to_string(InvoiceState state);  // draft, held, issued, void
[[nodiscard]] std::optional<InvoiceState> parse_invoice_state(std::string_view text);

// The hours [start, end) of a tenant in one currency.
struct InvoiceSpan {
  std::string tenant, currency;
  UnixMs start = 0, end = 0;

  bool operator==(const InvoiceSpan&) const = default;
};

struct InvoiceRow {
  std::int64_t key = 0;          // 0: not stored yet
  std::string source, given_id;  // of another system
  InvoiceSpan span;
  InvoiceState state = InvoiceState::draft;
  Int128 total = 0;          // rounded to the minor unit
  Pico rounding = 0;         // total - exact sum of the lines
  std::string lines = "[]";  // JSON array
  std::string held_reason;
  UnixMs created_at = 0, updated_at = 0;
  std::optional<UnixMs> issued_at;
  std::string actor;
};

// The id that an operator sees and gives: as given, else the key.
[[nodiscard]] std::string invoice_id(const InvoiceRow& row);

// Ledger rows of one service period, kind, model and meter.
struct BilledLine {
  UnixMs service_period = 0;
  std::string kind;          // source_type of the rows
  std::string model, meter;  // "" = no event stands behind them
  Int128 units = 0;          // of usage rows
  Int128 amount = 0;
  std::int64_t rows = 0;
};

struct InvoiceFilter {
  std::string tenant, currency;  // "" = any
  std::optional<InvoiceState> state;
  std::optional<UnixMs> since, until;  // start of the period, half-open
};

// What keeps hours from being billed.
struct Unbilled {
  std::int64_t unposted = 0, unpriced = 0, frozen = 0;  // events not posted, by why
  std::int64_t conflicts = 0;                           // payloads nobody has decided on
};

class InvoiceBook {
 public:
  virtual ~InvoiceBook() = default;

  virtual std::optional<InvoiceRow> invoice(std::int64_t key) = 0;
  // Those whose id is `id`: given ids first, else the one of our own with this key.
  virtual std::vector<InvoiceRow> named(const std::string& id) = 0;
  // Newest first, by key.
  virtual std::vector<InvoiceRow> list(const InvoiceFilter& filter, const Page& page) = 0;
  // Invoices, not void, that have an hour of the span.
  virtual std::vector<InvoiceRow> of_span(const InvoiceSpan& span) = 0;
  // Own drafts that have the hour.
  virtual std::vector<std::int64_t> own_drafts(const TenantPeriod& hour) = 0;

  // The rows posted into the span, grouped, in order of service period, kind, model, meter.
  virtual std::vector<BilledLine> billed_lines(const InvoiceSpan& span) = 0;
  // Their exact sum.
  virtual Int128 billed_total(const InvoiceSpan& span) = 0;
  // Currencies of the rows posted into the hours of a tenant.
  virtual std::vector<std::string> billed_currencies(const std::string& tenant, UnixMs start,
                                                     UnixMs end) = 0;
  virtual Unbilled unbilled(const InvoiceSpan& span) = 0;

  // Takes the hours of the span too; none may belong to another invoice. Returns the key.
  virtual std::int64_t add(const InvoiceRow& row) = 0;
  // Replaces everything but tenant, currency, hours and creation of an invoice that is not issued.
  // Void: its hours are free; issued: they and it are final.
  virtual void update(const InvoiceRow& row) = 0;
};

}  // namespace aiq
