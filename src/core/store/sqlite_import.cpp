// Rows of other systems, written as they were found.

#include <map>

#include "core/base/check.h"
#include "core/store/sqlite_audit.h"
#include "core/store/sqlite_ledger.h"

namespace aiq {
namespace {

// The same delivery: accepted, as a redelivery, or kept apart.
constexpr const char* kKnownDelivery =
    "SELECT EXISTS (SELECT 1 FROM usage_events WHERE tenant = ?1 AND event_id = ?2 "
    "AND source = ?3 AND payload_hash = ?4 AND received_at = ?5) "
    "OR EXISTS (SELECT 1 FROM usage_conflicts WHERE tenant = ?1 AND event_id = ?2 "
    "AND source = ?3 AND payload_hash = ?4) "
    "OR EXISTS (SELECT 1 FROM usage_events u JOIN usage_duplicates d ON d.tenant = u.tenant "
    "AND d.event_id = u.event_id AND d.source = u.source WHERE u.tenant = ?1 "
    "AND u.event_id = ?2 AND u.source = ?3 AND u.payload_hash = ?4 AND d.received_at = ?5)";

constexpr const char* kSameLedgerRow =
    "SELECT tenant = ?3 AND source_type = ?4 AND source_ref = ?5 AND service_period = ?6 "
    "AND posting_period = ?7 AND posted_at = ?8 AND amount_pico = ?9 AND currency = ?10 "
    "AND payload_hash = ?11 AND coalesce(job_id, '') = ?12 AND retry_count = ?13 "
    "FROM cost_ledger WHERE given_id = ?1 AND source = ?2";
constexpr const char* kEntryGiven =
    "SELECT entry_id, usage_id FROM cost_ledger WHERE given_id = ?1 AND source = ?2";

constexpr const char* kSameSummary =
    "SELECT service_total_whole = ?4 AND service_total_pico = ?5 "
    "FROM tenant_cost_summary WHERE tenant = ?1 AND period = ?2 AND currency = ?3";
constexpr const char* kInsertSummary =
    "INSERT INTO tenant_cost_summary (source, tenant, period, currency, service_total_whole, "
    "service_total_pico, billed_total_whole, billed_total_pico, updated_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

constexpr const char* kSameRun =
    "SELECT finished_at IS ?7 AND outcome IS ?8 FROM cost_runs INDEXED BY cost_runs_unit "
    "WHERE tenant = ?1 AND period = ?2 AND source = ?3 AND coalesce(job_ref, '') = ?4 "
    "AND started_at = ?5 AND retry_count = ?6";
constexpr const char* kInsertRun =
    "INSERT INTO cost_runs (source, call_id, tenant, period, initiator, job_ref, started_at, "
    "finished_at, retry_count, outcome, correlation_id, actor) "
    "VALUES (?1, ?2, ?3, ?4, 'import', ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

constexpr const char* kSameCredit =
    "SELECT tenant = ?3 AND service_period = ?4 AND amount_pico = ?5 AND currency = ?6 "
    "AND status = ?7 FROM credit_notes WHERE credit_note_id = ?1 AND source = ?2";

// A draft may have been held since.
constexpr const char* kSameInvoice =
    "SELECT tenant = ?3 AND currency = ?4 AND period_start = ?5 AND period_end = ?6 "
    "AND total_whole = ?7 AND total_pico = ?8 AND created_at = ?9 "
    "AND (state = ?10 OR (state = 'held' AND ?10 = 'draft')) "
    "FROM invoices WHERE given_id = ?1 AND source = ?2";
constexpr const char* kHourTaken =
    "SELECT 1 FROM invoice_hours WHERE tenant = ?1 AND currency = ?2 AND period >= ?3 "
    "AND period < ?4";
constexpr const char* kInsertInvoice =
    "INSERT INTO invoices (source, given_id, tenant, currency, period_start, period_end, state, "
    "total_whole, total_pico, rounding_pico, lines, created_at, updated_at, issued_at, actor) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, '[]', ?10, ?10, ?11, ?12)";
constexpr const char* kInsertHour =
    "INSERT INTO invoice_hours (tenant, currency, period, invoice_key, issued) "
    "VALUES (?1, ?2, ?3, ?4, ?5)";

constexpr const char* kRangesOf =
    "SELECT period_from, period_to FROM freezes INDEXED BY freezes_in_force "
    "WHERE tenant = ?1 AND origin = ?2 AND lifted_at IS NULL";
constexpr const char* kDropRange =
    "DELETE FROM freezes WHERE tenant = ?1 AND origin = ?2 AND period_from = ?3 "
    "AND period_to = ?4 AND lifted_at IS NULL";

using Ranges = std::map<UnixMs, UnixMs>;  // start -> end, apart from each other

// Adds an hour; ranges that touch it become one.
void add_hour(Ranges& ranges, UnixMs hour) {
  UnixMs from = hour, to = hour + kHourMs;
  auto next = ranges.upper_bound(from);
  if (next != ranges.begin()) {
    const auto before = std::prev(next);
    if (before->second >= to) return;
    if (before->second >= from) {
      from = before->first;
      ranges.erase(before);
    }
  }
  next = ranges.lower_bound(from);
  if (next != ranges.end() && next->first == to) {
    to = next->second;
    ranges.erase(next);
  }
  ranges.emplace(from, to);
}

// nullopt: there is no such row.
std::optional<Imported> known(Query&& query) {
  if (!query.step()) return std::nullopt;
  return query.flag(0) ? Imported::duplicate : Imported::conflict;
}

}  // namespace

Imported SqliteAudit::import_usage(const UsageEvent& event) {
  const std::string hash = payload_hash(event);
  {
    Query query(db_, kKnownDelivery, event.tenant, event.event_id, event.source, hash,
                event.received_at);
    AIQ_CHECK(query.step());
    if (query.flag(0)) return Imported::duplicate;
  }
  switch (SqliteLedger(db_).add_usage(event)) {
    case AddUsage::accepted:
      return Imported::imported;
    case AddUsage::duplicate:
      return Imported::duplicate;
    case AddUsage::conflict:
      return Imported::conflict;
  }
  AIQ_CHECK(false);
}

Imported SqliteAudit::import_ledger(const LedgerRow& given) {
  const auto same = known(Query(db_, kSameLedgerRow, given.given_id, given.source, given.tenant,
                                given.source_type, given.source_ref, given.service_period,
                                given.posting_period, given.posted_at, given.amount, given.currency,
                                given.payload_hash, given.job_id, given.retry_count));
  if (same) return *same;
  LedgerRow row = given;
  if (row.source_type == "reversal") {
    // The audit looks by id as well: the reversed row may come later.
    Query query(db_, kEntryGiven, row.source_ref, row.source);
    if (query.step()) {
      row.reverses = query.i64(0);
      row.usage_id = query.opt_i64(1);
    }
  }
  SqliteLedger ledger(db_);
  if (!ledger.append(row)) {
    // A key that another row has is one of the faults to be found; here keys are unique.
    row.idempotency_key += "#" + row.given_id;
    AIQ_CHECK(ledger.append(row).has_value());
  }
  return Imported::imported;
}

Imported SqliteAudit::import_summary(const SummaryRow& row, UnixMs now) {
  const MoneyColumns total = to_columns(row.service_total);
  const auto same = known(
      Query(db_, kSameSummary, row.tenant, row.period, row.currency, total.whole, total.pico));
  if (same) return *same;
  std::optional<std::int64_t> whole, pico;
  if (row.billed_total) {
    const MoneyColumns billed = to_columns(*row.billed_total);
    whole = billed.whole;
    pico = billed.pico;
  }
  aiq::run(db_, kInsertSummary, row.source, row.tenant, row.period, row.currency, total.whole,
           total.pico, whole, pico, now);
  return Imported::imported;
}

Imported SqliteAudit::import_run(const RunRow& run) {
  const TextOrNull outcome{run.outcome};
  const auto same =
      known(Query(db_, kSameRun, run.unit.tenant, run.unit.period, run.source, run.job_ref,
                  run.started_at, run.retry_count, run.finished_at, outcome));
  if (same) return *same;
  aiq::run(db_, kInsertRun, run.source, run.call_id, run.unit.tenant, run.unit.period,
           TextOrNull{run.job_ref}, run.started_at, run.finished_at, run.retry_count, outcome,
           run.correlation_id, run.actor);
  return Imported::imported;
}

Imported SqliteAudit::import_credit(const CreditNote& note) {
  const auto same = known(Query(db_, kSameCredit, note.credit_note_id, note.source, note.tenant,
                                note.service_period, note.amount, note.currency, note.status));
  if (same) return *same;
  AIQ_CHECK(SqliteLedger(db_).add_credit_note(note).has_value());
  return Imported::imported;
}

Imported SqliteAudit::import_invoice(const ImportedInvoice& in, const std::string& actor) {
  const MoneyColumns total = to_columns(in.total);
  const auto same =
      known(Query(db_, kSameInvoice, in.invoice_id, in.source, in.tenant, in.currency, in.start,
                  in.end, total.whole, total.pico, in.created_at, in.state));
  if (same) return *same;
  const bool issued = in.state == "issued", has_hours = in.state != "void";
  if (has_hours) {
    Query query(db_, kHourTaken, in.tenant, in.currency, in.start, in.end);
    if (query.step()) return Imported::conflict;
  }
  aiq::run(db_, kInsertInvoice, in.source, in.invoice_id, in.tenant, in.currency, in.start, in.end,
           in.state, total.whole, total.pico, in.created_at,
           issued ? std::optional(in.created_at) : std::nullopt, actor);
  const std::int64_t key = db_.last_id();
  for (UnixMs hour = in.start; has_hours && hour < in.end; hour += kHourMs)
    aiq::run(db_, kInsertHour, in.tenant, in.currency, hour, key, issued);
  return Imported::imported;
}

void SqliteAudit::freeze_import(const std::string& origin, const std::set<TenantPeriod>& hours,
                                const std::string& actor, UnixMs now) {
  SqliteLedger ledger(db_);
  for (auto at = hours.begin(); at != hours.end();) {
    const std::string& tenant = at->tenant;
    Ranges before;
    {
      Query query(db_, kRangesOf, tenant, origin);
      while (query.step())
        before.emplace(query.i64(0), query.i64(1));
    }
    Ranges after = before;
    for (; at != hours.end() && at->tenant == tenant; ++at)
      add_hour(after, at->period);
    for (const auto& [from, to] : before) {
      const auto kept = after.find(from);
      if (kept == after.end() || kept->second != to)
        aiq::run(db_, kDropRange, tenant, origin, from, to);
    }
    for (const auto& [from, to] : after) {
      const auto was = before.find(from);
      if (was != before.end() && was->second == to) continue;
      (void)ledger.freeze({.tenant = tenant,
                           .from = from,
                           .to = to,
                           .origin = origin,
                           .reason = "imported as found",
                           .actor = actor,
                           .created_at = now});
    }
  }
}

}  // namespace aiq
