// repairs, and what a repair asks of the other tables

#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "core/store/sqlite_audit.h"
#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

constexpr const char* kCreditNote =
    "SELECT source, credit_note_id, tenant, service_period, amount_pico, currency, status, reason, "
    "approved_by, created_at FROM credit_notes WHERE credit_note_id = ?1 AND source = ?2";

constexpr const char* kByService =
    "SELECT currency, count(*), max(entry_id), pico_sum(amount_pico) FROM cost_ledger "
    "INDEXED BY cost_ledger_service WHERE tenant = ?1 AND service_period = ?2 GROUP BY currency";
constexpr const char* kByPosting =
    "SELECT currency, count(*), max(entry_id), pico_sum(amount_pico) FROM cost_ledger "
    "INDEXED BY cost_ledger_posting WHERE tenant = ?1 AND posting_period = ?2 GROUP BY currency";
constexpr const char* kInvoicesOfHour =
    "SELECT DISTINCT invoice_key FROM invoice_hours WHERE tenant = ?1 AND period = ?2 ORDER BY 1";

constexpr const char* kMarks =
    "SELECT coalesce((SELECT max(usage_id) FROM usage_events), 0), "
    "coalesce((SELECT max(conflict_id) FROM usage_conflicts), 0), "
    "coalesce((SELECT max(credit_id) FROM credit_notes), 0)";
constexpr const char* kChanged =
    "SELECT tenant, occurred_at - occurred_at % 3600000 FROM usage_events WHERE usage_id > ?1 "
    "UNION SELECT tenant, occurred_at - occurred_at % 3600000 FROM usage_conflicts "
    "WHERE conflict_id > ?2 OR decided_at >= ?4 "
    "UNION SELECT tenant, service_period FROM credit_notes WHERE credit_id > ?3";

constexpr const char* kAdd =
    "INSERT INTO repairs (plan_hash, plan, snapshot, result, actor, applied_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
constexpr const char* kFinish =
    "UPDATE repairs SET snapshot = ?2, result = ?3 WHERE repair_id = ?1";
#define AIQ_REPAIR_COLUMNS \
  "SELECT repair_id, plan_hash, plan, snapshot, result, actor, applied_at FROM repairs "
constexpr const char* kById = AIQ_REPAIR_COLUMNS "WHERE repair_id = ?1";
constexpr const char* kByPlan = AIQ_REPAIR_COLUMNS "WHERE plan_hash = ?1";
constexpr const char* kList =
    AIQ_REPAIR_COLUMNS "WHERE repair_id < ?1 ORDER BY repair_id DESC LIMIT ?2";

RepairRow read_repair(const Query& query) {
  return {.repair_id = query.i64(0),
          .plan_hash = query.text(1),
          .plan = query.text(2),
          .snapshot = query.text(3),
          .result = query.text(4),
          .actor = query.text(5),
          .applied_at = query.i64(6)};
}

std::optional<RepairRow> read_one(Query&& query) {
  return query.step() ? std::optional(read_repair(query)) : std::nullopt;
}

Int128 sum_of(const Query& query, int column) {
  const auto out = parse_int128(query.view(column));
  AIQ_CHECK(out.has_value());
  return *out;
}

}  // namespace

std::optional<CreditNote> SqliteAudit::credit_note(const std::string& source,
                                                   const std::string& credit_note_id) {
  Query query(db_, kCreditNote, credit_note_id, source);
  if (!query.step()) return std::nullopt;
  return CreditNote{.source = query.text(0),
                    .credit_note_id = query.text(1),
                    .tenant = query.text(2),
                    .service_period = query.i64(3),
                    .amount = query.i64(4),
                    .currency = query.text(5),
                    .status = query.text(6),
                    .reason = query.text(7),
                    .approved_by = query.text(8),
                    .created_at = query.i64(9)};
}

std::vector<HourState> SqliteAudit::hour_state(const TenantPeriod& hour) {
  std::map<std::string, HourState> states;
  const auto take = [&](Query&& query, std::int64_t HourState::*rows, Int128 HourState::*total) {
    while (query.step()) {
      HourState& state = states[query.text(0)];
      state.*rows = query.i64(1);
      state.newest = std::max(state.newest, query.i64(2));
      state.*total = sum_of(query, 3);
    }
  };
  take(Query(db_, kByService, hour.tenant, hour.period), &HourState::service_rows,
       &HourState::service_total);
  take(Query(db_, kByPosting, hour.tenant, hour.period), &HourState::posting_rows,
       &HourState::billed_total);
  std::vector<HourState> out;
  for (auto& [currency, state] : states) {
    state.currency = currency;
    out.push_back(std::move(state));
  }
  return out;
}

std::vector<std::int64_t> SqliteAudit::invoices_of_hour(const TenantPeriod& hour) {
  Query query(db_, kInvoicesOfHour, hour.tenant, hour.period);
  std::vector<std::int64_t> out;
  while (query.step())
    out.push_back(query.i64(0));
  return out;
}

SourceMarks SqliteAudit::source_marks(UnixMs now) {
  Query query(db_, kMarks);
  AIQ_CHECK(query.step());
  return {
      .usage = query.i64(0), .conflicts = query.i64(1), .credits = query.i64(2), .decided = now};
}

std::set<TenantPeriod> SqliteAudit::changed_sources(const SourceMarks& since) {
  Query query(db_, kChanged, since.usage, since.conflicts, since.credits, since.decided);
  std::set<TenantPeriod> out;
  while (query.step())
    out.insert({query.text(0), query.i64(1)});
  return out;
}

std::int64_t SqliteAudit::add_repair(const RepairRow& row) {
  aiq::run(db_, kAdd, row.plan_hash, row.plan, row.snapshot, row.result, row.actor, row.applied_at);
  return db_.last_id();
}

void SqliteAudit::finish_repair(std::int64_t repair_id, const std::string& snapshot,
                                const std::string& result) {
  aiq::run(db_, kFinish, repair_id, snapshot, result);
}

std::optional<RepairRow> SqliteAudit::repair(std::int64_t repair_id) {
  return read_one(Query(db_, kById, repair_id));
}

std::optional<RepairRow> SqliteAudit::repair_of(const std::string& plan_hash) {
  return read_one(Query(db_, kByPlan, plan_hash));
}

std::vector<RepairRow> SqliteAudit::list_repairs(const Page& page) {
  Query query(db_, kList, first_id_below(page), page.limit);
  std::vector<RepairRow> out;
  while (query.step())
    out.push_back(read_repair(query));
  return out;
}

}  // namespace aiq
