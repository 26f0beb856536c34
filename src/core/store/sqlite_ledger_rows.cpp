// cost_ledger: appended rows, and what is asked of them

#include <charconv>
#include <limits>

#include "core/store/sqlite_ledger.h"
#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

constexpr UnixMs kEver = std::numeric_limits<UnixMs>::max();

constexpr const char* kAppend =
    "INSERT INTO cost_ledger (source, given_id, idempotency_key, tenant, source_type, source_ref, "
    "service_period, posting_period, occurred_at, posted_at, amount_pico, currency, usage_id, "
    "price_id, reverses, reprices, repair_id, payload_hash, job_id, run_id, retry_count, "
    "correlation_id, reason, actor) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
    "?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24) "
    "ON CONFLICT (idempotency_key, source) DO NOTHING";

#define AIQ_LEDGER_COLUMNS                                                                       \
  "l.entry_id, l.source, l.given_id, l.idempotency_key, l.tenant, l.source_type, l.source_ref, " \
  "l.service_period, l.posting_period, l.occurred_at, l.posted_at, l.amount_pico, l.currency, "  \
  "l.usage_id, l.price_id, l.reverses, l.reprices, l.repair_id, l.payload_hash, l.job_id, "      \
  "l.run_id, l.retry_count, l.correlation_id, l.reason, l.actor FROM cost_ledger l "

constexpr const char* kRow = "SELECT " AIQ_LEDGER_COLUMNS "WHERE l.entry_id = ?1";
// No index leads with given_id alone, but the one on it and the source serves.
constexpr const char* kRowsGiven = "SELECT " AIQ_LEDGER_COLUMNS
                                   "INDEXED BY cost_ledger_given WHERE l.given_id = ?1 "
                                   "ORDER BY l.source";
constexpr const char* kRowsOf = "SELECT " AIQ_LEDGER_COLUMNS
                                "INDEXED BY cost_ledger_origin WHERE l.source_ref = ?1 "
                                "AND l.tenant = ?2 AND l.source_type = ?3 AND l.source = ?4 "
                                "ORDER BY l.entry_id";
constexpr const char* kReversalOf =
    "SELECT " AIQ_LEDGER_COLUMNS "WHERE l.reverses = ?1 ORDER BY l.entry_id LIMIT 1";
constexpr const char* kRepricesOf =
    "SELECT " AIQ_LEDGER_COLUMNS "WHERE l.reprices = ?1 ORDER BY l.entry_id";
constexpr const char* kListRows =
    "SELECT " AIQ_LEDGER_COLUMNS
    "WHERE l.entry_id < ?1 AND (?2 = '' OR l.currency = ?2) AND (?3 = '' OR l.source_type = ?3) "
    "AND (?4 = '' OR l.source_ref = ?4) AND l.service_period >= ?5 AND l.service_period < ?6 "
    "AND l.posted_at >= ?7 AND l.posted_at < ?8 ORDER BY l.entry_id DESC LIMIT ?9";
// Of one tenant, by the index of its periods. The tenant comes last so that both take the same.
constexpr const char* kListRowsOfTenant =
    "SELECT " AIQ_LEDGER_COLUMNS
    "WHERE l.entry_id < ?1 AND (?2 = '' OR l.currency = ?2) AND (?3 = '' OR l.source_type = ?3) "
    "AND (?4 = '' OR l.source_ref = ?4) AND l.service_period >= ?5 AND l.service_period < ?6 "
    "AND l.posted_at >= ?7 AND l.posted_at < ?8 AND l.tenant = ?10 "
    "ORDER BY l.entry_id DESC LIMIT ?9";
constexpr const char* kUsageRows =
    "SELECT " AIQ_LEDGER_COLUMNS
    "WHERE l.entry_id > ?1 AND l.source_type = 'usage' AND (?2 = '' OR l.tenant = ?2) "
    "AND l.service_period >= ?3 AND l.service_period < ?4 ORDER BY l.entry_id LIMIT ?5";
constexpr const char* kIssuedHours =
    "SELECT period FROM invoice_hours WHERE tenant = ?1 AND currency = ?2 AND period >= ?3 "
    "AND issued = 1 ORDER BY period";

constexpr const char* kInvoiceOfHour =
    "SELECT coalesce(i.given_id, i.invoice_key), i.currency, i.state, i.period_start, i.period_end "
    "FROM invoice_hours h JOIN invoices i ON i.invoice_key = h.invoice_key "
    "WHERE h.tenant = ?1 AND h.currency = ?2 AND h.period = ?3";

LedgerRow read_row(const Query& query) {
  LedgerRow out;
  int c = -1;
  out.entry_id = query.i64(++c);
  out.source = query.text(++c);
  out.given_id = query.text(++c);
  out.idempotency_key = query.text(++c);
  out.tenant = query.text(++c);
  out.source_type = query.text(++c);
  out.source_ref = query.text(++c);
  out.service_period = query.i64(++c);
  out.posting_period = query.i64(++c);
  out.occurred_at = query.i64(++c);
  out.posted_at = query.i64(++c);
  out.amount = query.i64(++c);
  out.currency = query.text(++c);
  out.usage_id = query.opt_i64(++c);
  out.price_id = query.opt_i64(++c);
  out.reverses = query.opt_i64(++c);
  out.reprices = query.opt_i64(++c);
  out.repair_id = query.opt_i64(++c);
  out.payload_hash = query.text(++c);
  out.job_id = query.text(++c);
  out.run_id = query.opt_i64(++c);
  out.retry_count = query.i32(++c);
  out.correlation_id = query.text(++c);
  out.reason = query.text(++c);
  out.actor = query.text(++c);
  return out;
}

std::optional<std::int64_t> parse_entry_id(std::string_view text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 1) return std::nullopt;
  return id;
}

std::vector<LedgerRow> read_all(Query& query) {
  std::vector<LedgerRow> out;
  while (query.step())
    out.push_back(read_row(query));
  return out;
}

std::optional<LedgerRow> read_one(Query& query) {
  return query.step() ? std::optional(read_row(query)) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> SqliteLedger::append(const LedgerRow& row) {
  const int added =
      run(db_, kAppend, row.source, TextOrNull{row.given_id}, row.idempotency_key, row.tenant,
          row.source_type, row.source_ref, row.service_period, row.posting_period, row.occurred_at,
          row.posted_at, row.amount, row.currency, row.usage_id, row.price_id, row.reverses,
          row.reprices, row.repair_id, row.payload_hash, TextOrNull{row.job_id}, row.run_id,
          row.retry_count, TextOrNull{row.correlation_id}, TextOrNull{row.reason},
          TextOrNull{row.actor});
  return added > 0 ? std::optional(db_.last_id()) : std::nullopt;
}

std::optional<LedgerRow> SqliteLedger::row(std::int64_t entry_id) {
  Query query(db_, kRow, entry_id);
  return read_one(query);
}

std::vector<LedgerRow> SqliteLedger::rows_named(const std::string& id) {
  // SOURCE/ID names one when several imports gave the same id.
  const std::size_t slash = id.find('/');
  std::vector<LedgerRow> out;
  {
    Query query(db_, kRowsGiven, id);
    out = read_all(query);
  }
  if (out.empty() && slash != std::string::npos) {
    const std::string source = id.substr(0, slash), given = id.substr(slash + 1);
    Query query(db_, kRowsGiven, given);
    for (LedgerRow& row : read_all(query)) {
      if (row.source == source) out.push_back(std::move(row));
    }
  }
  if (!out.empty()) return out;
  const auto entry_id = parse_entry_id(id);
  if (!entry_id) return out;
  if (auto own = row(*entry_id); own && own->given_id.empty()) out.push_back(std::move(*own));
  return out;
}

std::vector<LedgerRow> SqliteLedger::rows_of(const std::string& source, const std::string& tenant,
                                             const std::string& source_type,
                                             const std::string& source_ref) {
  Query query(db_, kRowsOf, source_ref, tenant, source_type, source);
  return read_all(query);
}

std::optional<LedgerRow> SqliteLedger::reversal_of(std::int64_t entry_id) {
  Query query(db_, kReversalOf, entry_id);
  return read_one(query);
}

std::vector<LedgerRow> SqliteLedger::reprices_of(std::int64_t entry_id) {
  Query query(db_, kRepricesOf, entry_id);
  return read_all(query);
}

std::vector<LedgerRow> SqliteLedger::list_rows(const LedgerFilter& f, const Page& page) {
  const UnixMs from = f.from.value_or(0), to = f.to.value_or(kEver);
  const UnixMs since = f.since.value_or(0), until = f.until.value_or(kEver);
  if (f.tenant.empty()) {
    Query query(db_, kListRows, first_id_below(page), f.currency, f.source_type, f.source_ref, from,
                to, since, until, page.limit);
    return read_all(query);
  }
  Query query(db_, kListRowsOfTenant, first_id_below(page), f.currency, f.source_type, f.source_ref,
              from, to, since, until, page.limit, f.tenant);
  return read_all(query);
}

std::vector<LedgerRow> SqliteLedger::usage_rows(const PeriodScope& scope, std::int64_t after,
                                                int limit) {
  Query query(db_, kUsageRows, after, scope.tenant, scope.from.value_or(0),
              scope.to.value_or(kEver), limit);
  return read_all(query);
}

std::optional<InvoiceHour> SqliteLedger::invoice_of_hour(const TenantPeriod& unit,
                                                         const std::string& currency) {
  Query query(db_, kInvoiceOfHour, unit.tenant, currency, unit.period);
  if (!query.step()) return std::nullopt;
  return InvoiceHour{.invoice_id = query.text(0),
                     .currency = query.text(1),
                     .state = query.text(2),
                     .start = query.i64(3),
                     .end = query.i64(4)};
}

UnixMs SqliteLedger::first_open_period(const std::string& tenant, const std::string& currency,
                                       UnixMs from) {
  Query query(db_, kIssuedHours, tenant, currency, from);
  UnixMs period = from;
  while (query.step() && query.i64(0) == period)
    period += kHourMs;
  return period;
}

}  // namespace aiq
