// tenant_cost_summary: computed from cost_ledger, never added to

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "core/base/check.h"
#include "core/store/sqlite_ledger.h"

namespace aiq {
namespace {

constexpr UnixMs kEver = std::numeric_limits<UnixMs>::max();

// Sums of amounts in two parts, since their sum may be beyond an int64: of up to 9 x 10^9 rows
// neither part is.
constexpr std::int64_t kSplit = 1'000'000'000;
constexpr const char* kByService =
    "SELECT currency, source_type, sum(amount_pico / 1000000000), sum(amount_pico % 1000000000), "
    "count(*), max(entry_id) FROM cost_ledger INDEXED BY cost_ledger_service "
    "WHERE tenant = ?1 AND service_period = ?2 GROUP BY currency, source_type";
constexpr const char* kByPosting =
    "SELECT currency, sum(amount_pico / 1000000000), sum(amount_pico % 1000000000), "
    "max(entry_id) FROM cost_ledger INDEXED BY cost_ledger_posting "
    "WHERE tenant = ?1 AND posting_period = ?2 GROUP BY currency";

#define AIQ_SUMMARY_COLUMNS                                                                     \
  "source, tenant, period, currency, service_total_whole, service_total_pico, "                 \
  "billed_total_whole, billed_total_pico, usage_whole, usage_pico, credit_whole, credit_pico, " \
  "correction_whole, correction_pico, ledger_rows, events, watermark, content_hash "            \
  "FROM tenant_cost_summary "
constexpr const char* kOfUnit =
    "SELECT " AIQ_SUMMARY_COLUMNS "WHERE tenant = ?1 AND period = ?2 ORDER BY currency";
constexpr const char* kList = "SELECT " AIQ_SUMMARY_COLUMNS
                              "WHERE (tenant, period) > (?1, ?2) AND period >= ?3 AND period < ?4 "
                              "ORDER BY tenant, period, currency LIMIT ?5";
constexpr const char* kListOfTenant =
    "SELECT " AIQ_SUMMARY_COLUMNS
    "WHERE tenant = ?1 AND period > ?2 AND period >= ?3 AND period < ?4 "
    "ORDER BY period, currency LIMIT ?5";
// A replaced row keeps its id.
constexpr const char* kReplace =
    "INSERT INTO tenant_cost_summary (source, tenant, period, currency, service_total_whole, "
    "service_total_pico, billed_total_whole, billed_total_pico, usage_whole, usage_pico, "
    "credit_whole, credit_pico, correction_whole, correction_pico, ledger_rows, events, "
    "watermark, content_hash, updated_at) VALUES ('', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
    "?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) ON CONFLICT (tenant, period, currency) DO UPDATE SET "
    "source = '', service_total_whole = ?4, service_total_pico = ?5, billed_total_whole = ?6, "
    "billed_total_pico = ?7, usage_whole = ?8, usage_pico = ?9, credit_whole = ?10, "
    "credit_pico = ?11, correction_whole = ?12, correction_pico = ?13, ledger_rows = ?14, "
    "events = ?15, watermark = ?16, content_hash = ?17, updated_at = ?18";
constexpr const char* kRemove =
    "DELETE FROM tenant_cost_summary WHERE tenant = ?1 AND period = ?2 AND currency = ?3";

// The last ids that an index of the ledger gives for an hour: no row is read.
constexpr const char* kNewestService =
    "SELECT entry_id FROM cost_ledger INDEXED BY cost_ledger_service WHERE tenant = ?1 "
    "AND service_period = ?2 ORDER BY entry_id DESC LIMIT 1";
constexpr const char* kNewestPosting =
    "SELECT entry_id FROM cost_ledger INDEXED BY cost_ledger_posting WHERE tenant = ?1 "
    "AND posting_period = ?2 ORDER BY entry_id DESC LIMIT 1";

constexpr const char* kNextSummary =
    "SELECT tenant, period FROM tenant_cost_summary WHERE (tenant, period) > (?1, ?2) "
    "ORDER BY tenant, period LIMIT 1";
constexpr const char* kNextService =
    "SELECT tenant, service_period FROM cost_ledger INDEXED BY cost_ledger_service "
    "WHERE (tenant, service_period) > (?1, ?2) ORDER BY tenant, service_period LIMIT 1";
constexpr const char* kNextPosting =
    "SELECT tenant, posting_period FROM cost_ledger INDEXED BY cost_ledger_posting "
    "WHERE (tenant, posting_period) > (?1, ?2) ORDER BY tenant, posting_period LIMIT 1";
constexpr const char* kLaterPostings =
    "SELECT DISTINCT posting_period FROM cost_ledger INDEXED BY cost_ledger_service "
    "WHERE tenant = ?1 AND service_period = ?2 AND posting_period <> ?2";
constexpr const char* kPostedEvents =
    "SELECT coalesce(sum(events), 0) FROM tenant_cost_summary WHERE source = ''";

#define AIQ_COST_COLUMNS                                                                   \
  "SELECT l.tenant, l.currency, l.source_type, l.service_period, l.posting_period, "       \
  "l.occurred_at, l.amount_pico, u.vendor, u.model, u.meter, u.job_id FROM cost_ledger l " \
  "LEFT JOIN usage_events u ON u.usage_id = l.usage_id "
constexpr const char* kLabels = "SELECT job_id, value FROM job_labels WHERE key = ?1";
constexpr const char* kCostByService = AIQ_COST_COLUMNS
    "WHERE (?1 = '' OR l.currency = ?1) AND l.service_period >= ?2 AND l.service_period < ?3";
constexpr const char* kCostByPosting = AIQ_COST_COLUMNS
    "WHERE (?1 = '' OR l.currency = ?1) AND l.posting_period >= ?2 AND l.posting_period < ?3";
constexpr const char* kCostByServiceOfTenant = AIQ_COST_COLUMNS
    "WHERE (?1 = '' OR l.currency = ?1) AND l.service_period >= ?2 AND l.service_period < ?3 "
    "AND l.tenant = ?4";
constexpr const char* kCostByPostingOfTenant = AIQ_COST_COLUMNS
    "WHERE (?1 = '' OR l.currency = ?1) AND l.posting_period >= ?2 AND l.posting_period < ?3 "
    "AND l.tenant = ?4";

Int128 joined(const Query& query, int first) {
  return static_cast<Int128>(query.i64(first)) * kSplit + query.i64(first + 1);
}

Int128 columns(const Query& query, int first) {
  return from_columns({query.i64(first), query.i64(first + 1)});
}

SummaryRow read_summary(const Query& query) {
  SummaryRow out;
  out.source = query.text(0);
  out.tenant = query.text(1);
  out.period = query.i64(2);
  out.currency = query.text(3);
  out.service_total = columns(query, 4);
  if (!query.null(6) && !query.null(7)) out.billed_total = columns(query, 6);
  out.usage = columns(query, 8);
  out.credit = columns(query, 10);
  out.correction = columns(query, 12);
  out.ledger_rows = query.i64(14);
  out.events = query.i64(15);
  out.watermark = query.i64(16);
  out.content_hash = query.text(17);
  return out;
}

std::vector<SummaryRow> read_summaries(Query& query) {
  std::vector<SummaryRow> out;
  while (query.step())
    out.push_back(read_summary(query));
  return out;
}

// Whether the stored row says what the ledger says. The hash alone does not tell: a total that
// somebody edited keeps it.
bool same(const SummaryRow& a, const SummaryRow& b) {
  return a.source == b.source && a.service_total == b.service_total &&
         a.billed_total == b.billed_total && a.usage == b.usage && a.credit == b.credit &&
         a.correction == b.correction && a.ledger_rows == b.ledger_rows && a.events == b.events &&
         a.watermark == b.watermark && a.content_hash == b.content_hash;
}

void replace(SqliteDb& db, const SummaryRow& row, UnixMs now) {
  const MoneyColumns service = to_columns(row.service_total);
  const MoneyColumns billed = to_columns(row.billed_total.value_or(0));
  const MoneyColumns usage = to_columns(row.usage);
  const MoneyColumns credit = to_columns(row.credit);
  const MoneyColumns correction = to_columns(row.correction);
  run(db, kReplace, row.tenant, row.period, row.currency, service.whole, service.pico, billed.whole,
      billed.pico, usage.whole, usage.pico, credit.whole, credit.pico, correction.whole,
      correction.pico, row.ledger_rows, row.events, row.watermark, row.content_hash, now);
}

}  // namespace

std::vector<SummaryRow> SqliteLedger::computed(const TenantPeriod& unit) {
  std::map<std::string, SummaryRow> rows;
  const auto at = [&](const std::string& currency) -> SummaryRow& {
    SummaryRow& row = rows[currency];
    row.tenant = unit.tenant;
    row.period = unit.period;
    row.currency = currency;
    if (!row.billed_total) row.billed_total = 0;
    return row;
  };
  {
    Query query(db_, kByService, unit.tenant, unit.period);
    while (query.step()) {
      SummaryRow& row = at(query.text(0));
      const Int128 sum = joined(query, 2);
      const std::string_view type = query.view(1);
      (type == "usage" ? row.usage : type == "credit_note" ? row.credit : row.correction) += sum;
      row.service_total += sum;
      row.ledger_rows += query.i64(4);
      if (type == "usage") row.events += query.i64(4);
      row.watermark = std::max(row.watermark, query.i64(5));
    }
  }
  {
    Query query(db_, kByPosting, unit.tenant, unit.period);
    while (query.step()) {
      SummaryRow& row = at(query.text(0));
      row.billed_total = joined(query, 1);
      row.watermark = std::max(row.watermark, query.i64(3));
    }
  }
  std::vector<SummaryRow> out;
  for (auto& [currency, row] : rows) {
    row.content_hash = content_hash(row);
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<SummaryChange> SqliteLedger::recompute(const TenantPeriod& unit, UnixMs now,
                                                   bool write) {
  std::map<std::string, SummaryChange> by_currency;
  for (SummaryRow& row : summaries(unit))
    by_currency[row.currency].before = std::move(row);
  for (SummaryRow& row : computed(unit))
    by_currency[row.currency].after = std::move(row);
  std::vector<SummaryChange> out;
  for (auto& [currency, change] : by_currency) {
    if (change.before && change.after && same(*change.before, *change.after)) continue;
    if (write && change.after) replace(db_, *change.after, now);
    if (write && !change.after) run(db_, kRemove, unit.tenant, unit.period, currency);
    change.unit = unit;
    change.currency = currency;
    out.push_back(std::move(change));
  }
  return out;
}

std::vector<SummaryRow> SqliteLedger::summaries(const TenantPeriod& unit) {
  Query query(db_, kOfUnit, unit.tenant, unit.period);
  return read_summaries(query);
}

std::vector<SummaryRow> SqliteLedger::list_summaries(const PeriodScope& scope,
                                                     const std::optional<TenantPeriod>& after,
                                                     int limit) {
  const bool one = !scope.tenant.empty();
  const std::string tenant = one ? scope.tenant : after ? after->tenant : std::string();
  Query query(db_, one ? kListOfTenant : kList, tenant, after ? after->period : -1,
              scope.from.value_or(0), scope.to.value_or(kEver), limit);
  std::vector<SummaryRow> out = read_summaries(query);
  if (static_cast<int>(out.size()) < limit || out.empty()) return out;
  // The last unit may go on after the limit: all of it, in place of what there is.
  const TenantPeriod last{out.back().tenant, out.back().period};
  std::erase_if(out, [&](const SummaryRow& row) {
    return row.tenant == last.tenant && row.period == last.period;
  });
  for (SummaryRow& row : summaries(last))
    out.push_back(std::move(row));
  return out;
}

bool SqliteLedger::summary_behind(const SummaryRow& row) {
  for (const char* sql : {kNewestService, kNewestPosting}) {
    Query query(db_, sql, row.tenant, row.period);
    if (query.step() && query.i64(0) > row.watermark) return true;
  }
  return false;
}

std::optional<TenantPeriod> SqliteLedger::next_summary_unit(
    const std::optional<TenantPeriod>& after, const PeriodScope& scope) {
  // Within the scope's tenant the walk begins just before its first hour.
  TenantPeriod at = after.value_or(TenantPeriod{scope.tenant, scope.from.value_or(0) - 1});
  for (;;) {
    std::optional<TenantPeriod> next;
    for (const char* sql : {kNextSummary, kNextService, kNextPosting}) {
      Query query(db_, sql, at.tenant, at.period);
      if (!query.step()) continue;
      TenantPeriod found{query.text(0), query.i64(1)};
      if (!next || found < *next) next = std::move(found);
    }
    if (!next) return std::nullopt;
    if (!scope.tenant.empty() && next->tenant != scope.tenant) return std::nullopt;
    if (scope.from && next->period < *scope.from) {
      at = {next->tenant, *scope.from - 1};
      continue;
    }
    if (scope.to && next->period >= *scope.to) {
      at = {next->tenant, kEver};
      continue;
    }
    return next;
  }
}

std::vector<UnixMs> SqliteLedger::later_postings(const TenantPeriod& unit) {
  Query query(db_, kLaterPostings, unit.tenant, unit.period);
  std::vector<UnixMs> out;
  while (query.step())
    out.push_back(query.i64(0));
  return out;
}

std::int64_t SqliteLedger::posted_events() {
  Query query(db_, kPostedEvents);
  return query.step() ? query.i64(0) : 0;
}

void SqliteLedger::each_cost(const CostFilter& filter,
                             const std::function<void(const CostRow&)>& each) {
  std::unordered_map<std::int64_t, std::string> labels;
  if (!filter.label_key.empty()) {
    Query query(db_, kLabels, filter.label_key);
    while (query.step())
      labels.emplace(query.i64(0), query.text(1));
  }
  const auto walk = [&](Query& query) {
    while (query.step()) {
      CostRow row;
      row.tenant = query.text(0);
      row.currency = query.text(1);
      row.source_type = query.text(2);
      row.service_period = query.i64(3);
      row.posting_period = query.i64(4);
      row.occurred_at = query.i64(5);
      row.amount = query.i64(6);
      row.vendor = query.text(7);
      row.model = query.text(8);
      row.meter = query.text(9);
      if (const auto label = labels.find(query.i64(10)); label != labels.end())
        row.label = label->second;
      each(row);
    }
  };
  const UnixMs from = filter.from.value_or(0), to = filter.to.value_or(kEver);
  if (filter.tenant.empty()) {
    Query query(db_, filter.billed ? kCostByPosting : kCostByService, filter.currency, from, to);
    walk(query);
  } else {
    Query query(db_, filter.billed ? kCostByPostingOfTenant : kCostByServiceOfTenant,
                filter.currency, from, to, filter.tenant);
    walk(query);
  }
}

}  // namespace aiq
