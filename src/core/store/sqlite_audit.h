#pragma once
// CostAudit over SQLite, on the connection of a reader or of the writer.

#include "core/store/cost_audit.h"
#include "core/store/sqlite_db.h"

namespace aiq {

class SqliteAudit final : public CostAudit {
 public:
  explicit SqliteAudit(SqliteDb& db) : db_(db) {}

  Imported import_usage(const UsageEvent& event) override;
  Imported import_ledger(const LedgerRow& row) override;
  Imported import_summary(const SummaryRow& row, UnixMs now) override;
  Imported import_run(const RunRow& run) override;
  Imported import_credit(const CreditNote& note) override;
  Imported import_invoice(const ImportedInvoice& invoice, const std::string& actor) override;
  void freeze_import(const std::string& origin, const std::set<TenantPeriod>& hours,
                     const std::string& actor, UnixMs now) override;

  std::vector<std::string> codes() override;
  void run(std::string_view code, const AuditScope& scope,
           const std::function<void(const AuditRow&)>& each) override;
  std::vector<AuditTotals> totals(const AuditScope& scope) override;
  std::vector<NegativeSummary> negative_summaries(const AuditScope& scope) override;
  std::optional<AuditAck> ack(const std::string& finding_id) override;
  bool add_ack(const AuditAck& ack) override;

  std::optional<CreditNote> credit_note(const std::string& source,
                                        const std::string& credit_note_id) override;
  std::vector<HourState> hour_state(const TenantPeriod& hour) override;
  std::vector<std::int64_t> invoices_of_hour(const TenantPeriod& hour) override;
  SourceMarks source_marks(UnixMs now) override;
  std::set<TenantPeriod> changed_sources(const SourceMarks& since) override;
  std::int64_t add_repair(const RepairRow& row) override;
  void finish_repair(std::int64_t repair_id, const std::string& snapshot,
                     const std::string& result) override;
  std::optional<RepairRow> repair(std::int64_t repair_id) override;
  std::optional<RepairRow> repair_of(const std::string& plan_hash) override;
  std::vector<RepairRow> list_repairs(const Page& page) override;

 private:
  static void price_id_at(sqlite3_context* context, int count, sqlite3_value** in);
  void add_price_function();

  SqliteDb& db_;
  const AuditScope* scope_ = nullptr;  // of the check that runs
  bool has_price_function_ = false;
};

}  // namespace aiq
