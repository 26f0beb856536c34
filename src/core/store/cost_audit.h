#pragma once
// What is wrong in the money tables, and rows of other systems as found. Reached through
// Reader::audit() and Store::audit(); what writes needs a Store.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/ledger.h"
#include "core/store/cost_ledger.h"
#include "core/store/store_error.h"

namespace aiq {

// imported: it is new. duplicate: it is there already, with the same content. conflict: its id is
// there with another content, and nothing was written.
enum class Imported { imported, duplicate, conflict };

// An invoice of another system. Its hours are [start, end).
struct ImportedInvoice {
  std::string source, invoice_id, tenant, currency, state;  // state: draft | held | issued | void
  UnixMs start = 0, end = 0;
  Int128 total = 0;  // of minor units, as pico
  UnixMs created_at = 0;
};

struct AuditScope {
  std::string tenant;              // "" = all
  std::optional<UnixMs> from, to;  // hours, half-open
  UnixMs now = 0;
  // An event that is not posted counts as missing once it was received longer ago than this.
  DurationMs grace_ms = 60'000;
  // Names of vendors in the price book, where they are others than in events.
  std::map<std::string, std::string> price_vendors;
};

// One row that a check found, before anything is decided about it.
struct AuditRow {
  std::string tenant;
  UnixMs period = 0;
  std::optional<Int128> amount;  // nullopt: there is none, or it can't be known
  std::string currency;          // "" = none
  std::string refs, detail;      // JSON: an array of texts, an object
  bool resolved = false;         // what it names was reversed or decided since
};

struct AuditAck {
  std::string finding_id, code, tenant, reason, actor;
  UnixMs created_at = 0;
};

// What a tenant used and owes in some hours, in one currency.
struct AuditTotals {
  std::string tenant, currency;  // "" = events without a price of their own, not posted
  std::int64_t events = 0, ledger_rows = 0;
  Int128 units = 0, amount = 0;
};

// A summary below 0.
struct NegativeSummary {
  TenantPeriod unit;
  std::string currency;
  Int128 total = 0;
};

// Currency by currency what the ledger holds of a tenant's hour.
struct HourState {
  std::string currency;
  std::int64_t service_rows = 0, posting_rows = 0;
  std::int64_t newest = 0;  // entry_id
  Int128 service_total = 0, billed_total = 0;
};

// How far the tables had got that a repair looks at beside the ledger.
struct SourceMarks {
  std::int64_t usage = 0, conflicts = 0, credits = 0;  // latest ids
  UnixMs decided = 0;                                  // conflicts decided before this are known
};

struct RepairRow {
  std::int64_t repair_id = 0;
  std::string plan_hash;
  std::string plan, snapshot, result;  // JSON
  std::string actor;
  UnixMs applied_at = 0;
};

class CostAudit {
 public:
  virtual ~CostAudit() = default;

  // ---- rows of another system, as found. `source` is never "".
  // As CostLedger::add_usage; a delivery that was imported before, to its time, is no new one.
  virtual Imported import_usage(const UsageEvent& event) = 0;
  virtual Imported import_ledger(const LedgerRow& row) = 0;
  virtual Imported import_summary(const SummaryRow& row, UnixMs now) = 0;
  virtual Imported import_run(const RunRow& run) = 0;
  virtual Imported import_credit(const CreditNote& note) = 0;
  virtual Imported import_invoice(const ImportedInvoice& invoice, const std::string& actor) = 0;
  // Adds hours to the freezes of `origin`; neighbours become one range.
  virtual void freeze_import(const std::string& origin, const std::set<TenantPeriod>& hours,
                             const std::string& actor, UnixMs now) = 0;

  // ---- audit
  // Codes that run() knows, in order.
  [[nodiscard]] virtual std::vector<std::string> codes() = 0;
  // Rows of one check in order of tenant, period and refs; `each` must not use the store.
  virtual void run(std::string_view code, const AuditScope& scope,
                   const std::function<void(const AuditRow&)>& each) = 0;
  // Events by the hour of their use, ledger rows by service period; in order.
  virtual std::vector<AuditTotals> totals(const AuditScope& scope) = 0;
  virtual std::vector<NegativeSummary> negative_summaries(const AuditScope& scope) = 0;
  virtual std::optional<AuditAck> ack(const std::string& finding_id) = 0;
  // False: it was acknowledged before, and stays as it was.
  virtual bool add_ack(const AuditAck& ack) = 0;

  // ---- repairs
  virtual std::optional<CreditNote> credit_note(const std::string& source,
                                                const std::string& credit_note_id) = 0;
  // By currency, in order.
  virtual std::vector<HourState> hour_state(const TenantPeriod& hour) = 0;
  // Keys of the invoices, not void, that have the hour, in any currency.
  virtual std::vector<std::int64_t> invoices_of_hour(const TenantPeriod& hour) = 0;
  virtual SourceMarks source_marks(UnixMs now) = 0;
  // Hours of events, conflicts and credit notes that came, and of conflicts decided, since.
  virtual std::set<TenantPeriod> changed_sources(const SourceMarks& since) = 0;
  // `snapshot` and `result` are set when it is done.
  virtual std::int64_t add_repair(const RepairRow& row) = 0;
  virtual void finish_repair(std::int64_t repair_id, const std::string& snapshot,
                             const std::string& result) = 0;
  virtual std::optional<RepairRow> repair(std::int64_t repair_id) = 0;
  virtual std::optional<RepairRow> repair_of(const std::string& plan_hash) = 0;
  // Newest first.
  virtual std::vector<RepairRow> list_repairs(const Page& page) = 0;
};

}  // namespace aiq
