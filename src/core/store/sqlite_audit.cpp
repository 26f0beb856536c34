// The checks of the audit are texts of SQL, one file each in audit/, compiled in.

#include <limits>
#include <map>

#include "core/base/check.h"
#include "core/store/audit_sql.h"
#include "core/store/sqlite_audit.h"
#include "core/store/sqlite_prices.h"

namespace aiq {
namespace {

// The currency of an event: its own price's, else that of its posting.
constexpr const char* kTotals =
    "WITH events AS (SELECT u.tenant, coalesce(CASE WHEN u.unit_pico IS NOT NULL THEN u.currency "
    "END, (SELECT l.currency FROM cost_ledger l INDEXED BY cost_ledger_origin "
    "WHERE l.source_ref = u.event_id AND l.tenant = u.tenant AND l.source_type = 'usage' "
    "AND l.source = u.source LIMIT 1), '') AS currency, u.units FROM usage_events u "
    "WHERE (?1 = '' OR u.tenant = ?1) AND u.occurred_at >= ?2 AND u.occurred_at < ?3), "
    "parts AS (SELECT tenant, currency, count(*) AS events, pico_sum(units) AS units, "
    "0 AS ledger_rows, '0' AS amount FROM events GROUP BY 1, 2 UNION ALL "
    "SELECT tenant, currency, 0, '0', count(*), pico_sum(amount_pico) FROM cost_ledger "
    "WHERE (?1 = '' OR tenant = ?1) AND service_period >= ?2 AND service_period < ?3 "
    "GROUP BY 1, 2) SELECT tenant, currency, sum(events), pico_sum(units), sum(ledger_rows), "
    "pico_sum(amount) FROM parts GROUP BY 1, 2 ORDER BY 1, 2";
constexpr const char* kNegativeSummaries =
    "SELECT tenant, period, currency, pico_of(service_total_whole, service_total_pico) "
    "FROM tenant_cost_summary WHERE service_total_whole < 0 AND (?1 = '' OR tenant = ?1) "
    "AND period >= ?2 AND period < ?3 ORDER BY 1, 2, 3";

constexpr UnixMs kEver = std::numeric_limits<UnixMs>::max();

Int128 sum_of(const Query& query, int column) {
  const auto out = parse_int128(query.view(column));
  AIQ_CHECK(out.has_value());
  return *out;
}

constexpr const char* kAck =
    "SELECT finding_id, code, tenant, reason, actor, created_at FROM audit_acks "
    "WHERE finding_id = ?1";
constexpr const char* kAddAck =
    "INSERT INTO audit_acks (finding_id, code, tenant, reason, actor, created_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (finding_id) DO NOTHING";

// Kept for good: a connection knows its statements by the address of their text.
const std::map<std::string, std::string, std::less<>>& texts() {
  static const auto kTexts = [] {
    std::map<std::string, std::string, std::less<>> out;
    for (std::size_t i = 0; i < kAuditSqlCount; ++i) {
      out.emplace(kAuditSql[i].code, std::string(kAuditCommonSql) + kAuditSql[i].sql);
    }
    return out;
  }();
  return kTexts;
}

// Behind all names.
constexpr const char* kLastTenant = "\xf4\x8f\xbf\xbf";

// While a check runs: what does not fit into the page cache while it sorts goes to a file, so that
// memory does not grow with the ledger.
class Running {
 public:
  Running(SqliteDb& db, const AuditScope*& at, const AuditScope& scope)
      : db_(db), at_(at), spills_(!db.in_transaction()) {
    at_ = &scope;
    if (spills_) db_.exec("PRAGMA temp_store = FILE;");
  }
  ~Running() {
    at_ = nullptr;
    if (spills_) (void)sqlite3_exec(db_.handle(), kBack, nullptr, nullptr, nullptr);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  static constexpr const char* kBack = "PRAGMA temp_store = MEMORY;";
  SqliteDb& db_;
  const AuditScope*& at_;
  bool spills_;
};

}  // namespace

std::vector<std::string> SqliteAudit::codes() {
  std::vector<std::string> out;
  for (const auto& [code, sql] : texts())
    out.push_back(code);
  return out;
}

// price_id_at(vendor, model, meter, at, context_tokens, currency)
void SqliteAudit::price_id_at(sqlite3_context* context, int, sqlite3_value** in) {
  auto* self = static_cast<SqliteAudit*>(sqlite3_user_data(context));
  const auto text = [&](int i) {
    const auto* bytes = static_cast<const char*>(sqlite3_value_blob(in[i]));
    const int size = sqlite3_value_bytes(in[i]);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
  };
  std::string vendor = text(0);
  const auto known = self->scope_->price_vendors.find(vendor);
  if (known != self->scope_->price_vendors.end()) vendor = known->second;
  std::optional<std::int64_t> tokens;
  if (sqlite3_value_type(in[4]) != SQLITE_NULL) tokens = sqlite3_value_int64(in[4]);
  try {
    const auto price = SqlitePrices(self->db_).price_at(vendor, text(1), text(2),
                                                        sqlite3_value_int64(in[3]), tokens);
    const std::string currency = text(5);
    if (price && (currency.empty() || currency == price->currency))
      sqlite3_result_int64(context, price->price_id);
  } catch (const std::exception& error) {  // none may pass through SQLite
    sqlite3_result_error(context, error.what(), -1);
  }
}

void SqliteAudit::add_price_function() {
  if (has_price_function_) return;
  const int code = sqlite3_create_function_v2(db_.handle(), "price_id_at", 6, SQLITE_UTF8, this,
                                              price_id_at, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) db_.fail(code);
  has_price_function_ = true;
}

void SqliteAudit::run(std::string_view code, const AuditScope& scope,
                      const std::function<void(const AuditRow&)>& each) {
  const auto found = texts().find(code);
  AIQ_CHECK(found != texts().end());
  add_price_function();
  const Running running(db_, scope_, scope);
  Query query(db_, found->second.c_str(), scope.tenant,
              scope.tenant.empty() ? std::string_view(kLastTenant) : scope.tenant,
              scope.from.value_or(0), scope.to.value_or(kEver), scope.now, scope.grace_ms);
  while (query.step()) {
    AuditRow row;
    row.tenant = query.text(0);
    row.period = query.i64(1);
    if (!query.null(2)) row.amount = sum_of(query, 2);
    row.currency = query.text(3);
    row.refs = query.text(4);
    row.detail = query.text(5);
    row.resolved = query.flag(6);
    each(row);
  }
}

std::vector<AuditTotals> SqliteAudit::totals(const AuditScope& scope) {
  const Running running(db_, scope_, scope);
  Query query(db_, kTotals, scope.tenant, scope.from.value_or(0), scope.to.value_or(kEver));
  std::vector<AuditTotals> out;
  while (query.step()) {
    out.push_back({.tenant = query.text(0),
                   .currency = query.text(1),
                   .events = query.i64(2),
                   .ledger_rows = query.i64(4),
                   .units = sum_of(query, 3),
                   .amount = sum_of(query, 5)});
  }
  return out;
}

std::vector<NegativeSummary> SqliteAudit::negative_summaries(const AuditScope& scope) {
  Query query(db_, kNegativeSummaries, scope.tenant, scope.from.value_or(0),
              scope.to.value_or(kEver));
  std::vector<NegativeSummary> out;
  while (query.step())
    out.push_back({{query.text(0), query.i64(1)}, query.text(2), sum_of(query, 3)});
  return out;
}

std::optional<AuditAck> SqliteAudit::ack(const std::string& finding_id) {
  Query query(db_, kAck, finding_id);
  if (!query.step()) return std::nullopt;
  return AuditAck{.finding_id = query.text(0),
                  .code = query.text(1),
                  .tenant = query.text(2),
                  .reason = query.text(3),
                  .actor = query.text(4),
                  .created_at = query.i64(5)};
}

bool SqliteAudit::add_ack(const AuditAck& ack) {
  return aiq::run(db_, kAddAck, ack.finding_id, ack.code, ack.tenant, ack.reason, ack.actor,
                  ack.created_at) > 0;
}

}  // namespace aiq
