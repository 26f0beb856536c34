#pragma once
// Money that was used, posted, summed up and invoiced. Reached through Reader::ledger() and
// Store::ledger(); what writes needs a Store and runs in its transaction.
//
// Nothing here decides: prices, periods, freezes and keys are the business of core/money. The
// ledger and the events are append-only, which the database enforces by itself.
//
// Amounts are pico; sums are 128 bits wide. Periods are starts of UTC hours.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/ledger.h"
#include "core/store/rows.h"
#include "core/store/store_error.h"

namespace aiq {

class InvoiceBook;

enum class AddUsage { accepted, duplicate, conflict };

struct UsageFilter {
  std::string tenant, model;           // "" = any
  std::string event_id;                // "" = any
  std::optional<UnixMs> since, until;  // occurred_at, half-open
  std::string state;                   // "" | posted | unposted | unpriced
};

struct UsageRow {
  UsageEvent event;
  std::string state;  // posted | unposted | unpriced | frozen
};

// A delivery of a known event with another payload.
struct UsageConflict {
  std::int64_t conflict_id = 0;
  UsageEvent event;   // usage_id 0
  std::string state;  // open | kept | replaced
  std::string reason, actor;
  std::optional<UnixMs> decided_at;
};

// Why an event is not posted yet.
enum class Pending { fresh, unpriced, frozen };

// Bounds of a work on tenant-hours; nullopt and "" = no bound. Half-open.
struct PeriodScope {
  std::string tenant;
  std::optional<UnixMs> from, to;

  [[nodiscard]] bool all() const { return tenant.empty() && !from && !to; }
};

struct RunCounts {
  std::int64_t posted = 0, replayed = 0, conflicts = 0, unpriced = 0, late = 0;

  // late ones are among the posted.
  [[nodiscard]] std::int64_t events() const { return posted + replayed + conflicts + unpriced; }
  bool operator==(const RunCounts&) const = default;
};

struct NewRun {
  std::string call_id, initiator;  // initiator: daemon | command
  TenantPeriod unit;
  UnixMs now = 0;
  std::string correlation_id, actor;
};

struct OpenedRun {
  std::int64_t run_id = 0;
  int retry_count = 0;
};

struct RunRow {
  std::int64_t run_id = 0;
  std::string source, call_id;
  TenantPeriod unit;
  std::string initiator, job_ref;
  UnixMs started_at = 0;
  std::optional<UnixMs> finished_at;
  // How many runs of this unit before it, without a gap, did not end in `done`.
  int retry_count = 0;
  std::string outcome;  // "" = open
  std::int64_t events = 0;
  RunCounts counts;
  std::string correlation_id, actor;
};

struct RunFilter {
  std::string tenant, outcome, call_id;        // "" = any
  std::optional<UnixMs> period, since, until;  // since, until: started_at
};

struct Freeze {
  std::int64_t freeze_id = 0;
  std::string tenant;
  UnixMs from = 0, to = 0;  // half-open
  std::string origin;       // operator | import:<id>
  std::optional<UnixMs> until;
  std::string reason, actor;
  UnixMs created_at = 0;
  std::optional<UnixMs> lifted_at;
  std::string lifted_by;
};

struct CreditNote {
  std::string source, credit_note_id, tenant;
  UnixMs service_period = 0;
  Pico amount = 0;  // as it is posted: negative reduces
  std::string currency, status, reason, approved_by;
  UnixMs created_at = 0;
};

struct LedgerFilter {
  std::string tenant, currency, source_type, source_ref;  // "" = any
  std::optional<UnixMs> from, to;                         // service period, half-open
  std::optional<UnixMs> since, until;                     // posted_at, half-open
};

// The invoice of an hour.
struct InvoiceHour {
  std::string invoice_id, currency, state;
  UnixMs start = 0, end = 0;
};

// A summary that a recomputation changed. nullopt: there was none, or there is none any more.
struct SummaryChange {
  TenantPeriod unit;
  std::string currency;
  std::optional<SummaryRow> before, after;
};

// A ledger row with what its event says, for grouping.
struct CostRow {
  std::string tenant, currency, source_type;
  UnixMs service_period = 0, posting_period = 0, occurred_at = 0;
  Pico amount = 0;
  std::string vendor, model, meter, label;  // "" = none
};

struct CostFilter {
  std::string tenant, currency;  // "" = any
  // Bounds of the service or (`billed`) of the posting period; the caller looks at the time itself.
  std::optional<UnixMs> from, to;
  bool billed = false;
  std::string label_key;  // "" = no label is looked up
};

class CostLedger {
 public:
  virtual ~CostLedger() = default;

  // ---- usage
  // Stores a delivery of an event. Known with an equal payload: kept as a redelivery; with
  // another one: kept apart as an open conflict, once per payload.
  virtual AddUsage add_usage(const UsageEvent& event) = 0;
  virtual std::optional<UsageEvent> usage(std::int64_t usage_id) = 0;
  virtual std::optional<UsageEvent> find_usage(const std::string& tenant,
                                               const std::string& event_id,
                                               const std::string& source) = 0;
  // Of a job of our own, in order.
  virtual std::vector<UsageEvent> usage_of_job(JobId job_id) = 0;
  // Newest first, by usage_id.
  virtual std::vector<UsageRow> list_usage(const UsageFilter& filter, const Page& page) = 0;
  // state "" = any. Newest first.
  virtual std::vector<UsageConflict> list_conflicts(const std::string& state, const Page& page) = 0;
  virtual std::optional<UsageConflict> conflict(std::int64_t conflict_id) = 0;
  virtual std::vector<UsageConflict> conflicts_of(const std::string& tenant,
                                                  const std::string& event_id,
                                                  const std::string& source) = 0;
  // The conflict by which a person replaced the payload of an event, the latest decision.
  virtual std::optional<UsageConflict> replacement(const std::string& tenant,
                                                   const std::string& event_id,
                                                   const std::string& source) = 0;
  // False: it is decided already, or not there.
  virtual bool decide_conflict(std::int64_t conflict_id, const std::string& state,
                               const std::string& reason, const std::string& actor, UnixMs now) = 0;
  // Keeps a payload apart that the posted one contradicts.
  virtual void quarantine(const UsageEvent& event) = 0;

  // ---- what is not posted yet
  // Takes events that no one has looked at into the list of pending ones; false: there was none.
  virtual bool collect_usage(int limit) = 0;
  virtual std::int64_t uncollected_usage() = 0;
  // Makes pending events fresh again whose freeze has ended or, when the price book grew since the
  // last call, that had no price.
  virtual void wake_pending(UnixMs now) = 0;
  // The next tenant-hour after `after` (nullopt: the first) with pending events; `fresh_only`:
  // with fresh ones.
  virtual std::optional<TenantPeriod> next_pending_unit(const std::optional<TenantPeriod>& after,
                                                        const PeriodScope& scope,
                                                        bool fresh_only) = 0;
  // Pending events of a unit with ids above `after`, in order.
  virtual std::vector<UsageEvent> pending_events(const TenantPeriod& unit, std::int64_t after,
                                                 int limit) = 0;
  virtual void drop_pending(const TenantPeriod& unit, std::int64_t usage_id) = 0;
  virtual void mark_pending(const TenantPeriod& unit, std::int64_t usage_id, Pending why) = 0;
  // Pending events of a scope by why they wait, what was not collected yet as fresh.
  virtual std::map<Pending, std::int64_t> count_pending(const PeriodScope& scope) = 0;
  // Tenant-hours with pending events, in order.
  virtual std::vector<TenantPeriod> pending_units(const PeriodScope& scope) = 0;

  // ---- the ledger
  // nullopt: the key is there already; nothing written.
  virtual std::optional<std::int64_t> append(const LedgerRow& row) = 0;
  virtual std::optional<LedgerRow> row(std::int64_t entry_id) = 0;
  // Rows whose id as an operator gives it is `id`: given ids first, else our own entry.
  virtual std::vector<LedgerRow> rows_named(const std::string& id) = 0;
  // Rows of a source, in order.
  virtual std::vector<LedgerRow> rows_of(const std::string& source, const std::string& tenant,
                                         const std::string& source_type,
                                         const std::string& source_ref) = 0;
  virtual std::optional<LedgerRow> reversal_of(std::int64_t entry_id) = 0;
  virtual std::vector<LedgerRow> reprices_of(std::int64_t entry_id) = 0;
  // Newest first, by entry_id.
  virtual std::vector<LedgerRow> list_rows(const LedgerFilter& filter, const Page& page) = 0;
  // Usage rows above `after` in order, for repricing.
  virtual std::vector<LedgerRow> usage_rows(const PeriodScope& scope, std::int64_t after,
                                            int limit) = 0;
  // The first hour from `from` on that no issued invoice of the tenant and currency covers.
  virtual UnixMs first_open_period(const std::string& tenant, const std::string& currency,
                                   UnixMs from) = 0;

  // ---- summaries
  // Computes the summaries of a tenant-hour anew from the ledger and replaces those that differ.
  // `write` false: only tells what would change.
  virtual std::vector<SummaryChange> recompute(const TenantPeriod& unit, UnixMs now,
                                               bool write) = 0;
  // Of a tenant-hour, by currency.
  virtual std::vector<SummaryRow> summaries(const TenantPeriod& unit) = 0;
  // Up to `limit` rows in order of tenant, period, currency; `after`: the last unit seen. All
  // rows of a unit come together.
  virtual std::vector<SummaryRow> list_summaries(const PeriodScope& scope,
                                                 const std::optional<TenantPeriod>& after,
                                                 int limit) = 0;
  // Whether rows were posted that the summary has not seen.
  virtual bool summary_behind(const SummaryRow& row) = 0;
  // The next tenant-hour that has a summary or a ledger row (by either period).
  virtual std::optional<TenantPeriod> next_summary_unit(const std::optional<TenantPeriod>& after,
                                                        const PeriodScope& scope) = 0;
  // Posting periods of the rows of a service period that a run posted, other than itself.
  virtual std::vector<UnixMs> later_postings(const TenantPeriod& unit) = 0;
  // Usage rows of the whole ledger, as the summaries have it.
  virtual std::int64_t posted_events() = 0;
  // Streams rows for grouping; `each` must not use the store.
  virtual void each_cost(const CostFilter& filter,
                         const std::function<void(const CostRow&)>& each) = 0;

  // ---- runs
  virtual OpenedRun open_run(const NewRun& run) = 0;
  // Counts so far; with an outcome the run is closed.
  virtual void set_run(std::int64_t run_id, const RunCounts& counts, const std::string& outcome,
                       UnixMs now) = 0;
  virtual std::vector<RunRow> open_runs() = 0;
  virtual std::vector<RunRow> list_runs(const RunFilter& filter, const Page& page) = 0;
  // Owner of a lock that has not expired.
  virtual std::optional<std::string> lock_owner(const std::string& name, UnixMs now) = 0;

  // ---- freezes and credit notes
  virtual std::int64_t freeze(const Freeze& freeze) = 0;
  // The freeze in force for a tenant-hour.
  virtual std::optional<Freeze> freeze_of(const TenantPeriod& unit, UnixMs now) = 0;
  // In force, or (`all`) ever. Newest first.
  virtual std::vector<Freeze> list_freezes(bool all, const std::string& tenant, UnixMs now,
                                           const Page& page) = 0;
  // Lifts the operator's and the imports' freezes of a tenant that overlap; how many.
  virtual int lift_freezes(const std::string& tenant, UnixMs from, UnixMs to,
                           const std::string& actor, UnixMs now) = 0;
  // Lifts those of one origin (`import:<id>`).
  virtual int lift_origin(const std::string& origin, const std::string& actor, UnixMs now) = 0;
  // nullopt: a note of this id is there.
  virtual std::optional<std::int64_t> add_credit_note(const CreditNote& note) = 0;

  // ---- invoices
  // The invoice, not void, that an hour belongs to.
  virtual std::optional<InvoiceHour> invoice_of_hour(const TenantPeriod& unit,
                                                     const std::string& currency) = 0;
  virtual InvoiceBook& invoices() = 0;
};

}  // namespace aiq
