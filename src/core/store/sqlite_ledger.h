#pragma once
// CostLedger over SQLite, on the connection of a reader or of the writer. The methods stand in one
// file per group of tables (sqlite_ledger_usage.cpp, ...).

#include "core/store/cost_ledger.h"
#include "core/store/sqlite_db.h"
#include "core/store/sqlite_invoices.h"

namespace aiq {

class SqliteLedger final : public CostLedger {
 public:
  explicit SqliteLedger(SqliteDb& db) : db_(db), invoices_(db) {}

  AddUsage add_usage(const UsageEvent& event) override;
  std::optional<UsageEvent> usage(std::int64_t usage_id) override;
  std::optional<UsageEvent> find_usage(const std::string& tenant, const std::string& event_id,
                                       const std::string& source) override;
  std::vector<UsageEvent> usage_of_job(JobId job_id) override;
  std::vector<UsageRow> list_usage(const UsageFilter& filter, const Page& page) override;
  std::vector<UsageConflict> list_conflicts(const std::string& state, const Page& page) override;
  std::optional<UsageConflict> conflict(std::int64_t conflict_id) override;
  std::vector<UsageConflict> conflicts_of(const std::string& tenant, const std::string& event_id,
                                          const std::string& source) override;
  std::optional<UsageConflict> replacement(const std::string& tenant, const std::string& event_id,
                                           const std::string& source) override;
  bool decide_conflict(std::int64_t conflict_id, const std::string& state,
                       const std::string& reason, const std::string& actor, UnixMs now) override;
  void quarantine(const UsageEvent& event) override;

  bool collect_usage(int limit) override;
  std::int64_t uncollected_usage() override;
  void wake_pending(UnixMs now) override;
  std::optional<TenantPeriod> next_pending_unit(const std::optional<TenantPeriod>& after,
                                                const PeriodScope& scope, bool fresh_only) override;
  std::vector<UsageEvent> pending_events(const TenantPeriod& unit, std::int64_t after,
                                         int limit) override;
  void drop_pending(const TenantPeriod& unit, std::int64_t usage_id) override;
  void mark_pending(const TenantPeriod& unit, std::int64_t usage_id, Pending why) override;
  std::map<Pending, std::int64_t> count_pending(const PeriodScope& scope) override;
  std::vector<TenantPeriod> pending_units(const PeriodScope& scope) override;

  std::optional<std::int64_t> append(const LedgerRow& row) override;
  std::optional<LedgerRow> row(std::int64_t entry_id) override;
  std::vector<LedgerRow> rows_named(const std::string& id) override;
  std::vector<LedgerRow> rows_of(const std::string& source, const std::string& tenant,
                                 const std::string& source_type,
                                 const std::string& source_ref) override;
  std::optional<LedgerRow> reversal_of(std::int64_t entry_id) override;
  std::vector<LedgerRow> reprices_of(std::int64_t entry_id) override;
  std::vector<LedgerRow> list_rows(const LedgerFilter& filter, const Page& page) override;
  std::vector<LedgerRow> usage_rows(const PeriodScope& scope, std::int64_t after,
                                    int limit) override;
  UnixMs first_open_period(const std::string& tenant, const std::string& currency,
                           UnixMs from) override;

  std::vector<SummaryChange> recompute(const TenantPeriod& unit, UnixMs now, bool write) override;
  std::vector<SummaryRow> summaries(const TenantPeriod& unit) override;
  std::vector<SummaryRow> list_summaries(const PeriodScope& scope,
                                         const std::optional<TenantPeriod>& after,
                                         int limit) override;
  bool summary_behind(const SummaryRow& row) override;
  std::optional<TenantPeriod> next_summary_unit(const std::optional<TenantPeriod>& after,
                                                const PeriodScope& scope) override;
  std::vector<UnixMs> later_postings(const TenantPeriod& unit) override;
  std::int64_t posted_events() override;
  void each_cost(const CostFilter& filter,
                 const std::function<void(const CostRow&)>& each) override;

  OpenedRun open_run(const NewRun& run) override;
  void set_run(std::int64_t run_id, const RunCounts& counts, const std::string& outcome,
               UnixMs now) override;
  std::vector<RunRow> open_runs() override;
  std::vector<RunRow> list_runs(const RunFilter& filter, const Page& page) override;
  std::optional<std::string> lock_owner(const std::string& name, UnixMs now) override;

  std::int64_t freeze(const Freeze& freeze) override;
  std::optional<Freeze> freeze_of(const TenantPeriod& unit, UnixMs now) override;
  std::vector<Freeze> list_freezes(bool all, const std::string& tenant, UnixMs now,
                                   const Page& page) override;
  int lift_freezes(const std::string& tenant, UnixMs from, UnixMs to, const std::string& actor,
                   UnixMs now) override;
  int lift_origin(const std::string& origin, const std::string& actor, UnixMs now) override;
  std::optional<std::int64_t> add_credit_note(const CreditNote& note) override;

  std::optional<InvoiceHour> invoice_of_hour(const TenantPeriod& unit,
                                             const std::string& currency) override;
  InvoiceBook& invoices() override { return invoices_; }

 private:
  std::vector<SummaryRow> computed(const TenantPeriod& unit);

  SqliteDb& db_;
  SqliteInvoices invoices_;
};

// Columns of usage_events and usage_conflicts as kUsageColumns lists them, from `first` on.
inline constexpr int kUsageColumnCount = 16;
[[nodiscard]] UsageEvent read_usage(const Query& query, int first);

}  // namespace aiq
