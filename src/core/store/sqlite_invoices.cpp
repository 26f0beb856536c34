// invoices, invoice_hours.

#include "core/store/sqlite_invoices.h"

#include <array>
#include <charconv>

#include "core/base/check.h"
#include "core/model/period.h"
#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

constexpr std::array<std::string_view, 4> kStates = {"draft", "held", "issued", "void"};

#define AIQ_INVOICE_COLUMNS                                                                       \
  "i.invoice_key, i.source, i.given_id, i.tenant, i.currency, i.period_start, i.period_end, "     \
  "i.state, i.total_whole, i.total_pico, i.rounding_pico, i.lines, i.held_reason, i.created_at, " \
  "i.updated_at, i.issued_at, i.actor "

constexpr const char* kByKey =
    "SELECT " AIQ_INVOICE_COLUMNS "FROM invoices i WHERE i.invoice_key = ?1";
constexpr const char* kByGivenId =
    "SELECT " AIQ_INVOICE_COLUMNS "FROM invoices i WHERE i.given_id = ?1 ORDER BY i.invoice_key";
constexpr const char* kList =
    "SELECT " AIQ_INVOICE_COLUMNS
    "FROM invoices i WHERE i.invoice_key < ?1 AND (?2 IS NULL OR i.tenant = ?2) "
    "AND (?3 IS NULL OR i.currency = ?3) AND (?4 IS NULL OR i.state = ?4) "
    "AND (?5 IS NULL OR i.period_start >= ?5) AND (?6 IS NULL OR i.period_start < ?6) "
    "ORDER BY i.invoice_key DESC LIMIT ?7";
constexpr const char* kOfSpan =
    "SELECT " AIQ_INVOICE_COLUMNS
    "FROM invoices i WHERE i.invoice_key IN (SELECT h.invoice_key FROM invoice_hours h "
    "WHERE h.tenant = ?1 AND h.currency = ?2 AND h.period >= ?3 AND h.period < ?4) "
    "ORDER BY i.invoice_key";
constexpr const char* kOwnDrafts =
    "SELECT DISTINCT i.invoice_key FROM invoices i INDEXED BY invoices_of_tenant "
    "WHERE i.tenant = ?1 AND i.source = '' AND i.state = 'draft' "
    "AND i.period_start <= ?2 AND i.period_end > ?2";
// A bare sum of amounts may pass int64: two sums, of millions and of what is left.
#define AIQ_SUM_OF(what) "sum(" what " / 1000000), sum(" what " % 1000000)"
#define AIQ_POSTED_INTO                                                         \
  "FROM cost_ledger l INDEXED BY cost_ledger_posting LEFT JOIN usage_events u " \
  "ON u.usage_id = l.usage_id WHERE l.tenant = ?1 AND l.currency = ?2 "         \
  "AND l.posting_period >= ?3 AND l.posting_period < ?4 "
constexpr const char* kBilledLines =
    "SELECT l.service_period, l.source_type, coalesce(u.model, ''), coalesce(u.meter, ''), "
    "count(*), " AIQ_SUM_OF("l.amount_pico") ", " AIQ_SUM_OF(
        "CASE WHEN l.source_type = 'usage' THEN coalesce(u.units, 0) ELSE 0 END") " " AIQ_POSTED_INTO
                                                                                  "GROUP BY 1, 2, "
                                                                                  "3, 4 ORDER BY "
                                                                                  "1, 2, 3, 4";
constexpr const char* kBilledTotal =
    "SELECT " AIQ_SUM_OF("amount_pico") " FROM cost_ledger INDEXED BY cost_ledger_posting "
    "WHERE tenant = ?1 AND currency = ?2 AND posting_period >= ?3 AND posting_period < ?4";
constexpr const char* kCurrencies =
    "SELECT DISTINCT currency FROM cost_ledger INDEXED BY cost_ledger_posting "
    "WHERE tenant = ?1 AND posting_period >= ?2 AND posting_period < ?3 ORDER BY 1";
constexpr const char* kPending =
    "SELECT count(*) FILTER (WHERE why = 'new'), count(*) FILTER (WHERE why = 'unpriced'), "
    "count(*) FILTER (WHERE why = 'frozen') FROM usage_pending "
    "WHERE tenant = ?1 AND period >= ?2 AND period < ?3";
constexpr const char* kUncollected =
    "SELECT count(*) FROM usage_events WHERE usage_id > "
    "(SELECT n FROM cost_state WHERE name = 'usage_seen') "
    "AND tenant = ?1 AND occurred_at >= ?2 AND occurred_at < ?3 AND source = ''";
constexpr const char* kOpenConflicts =
    "SELECT count(*) FROM usage_conflicts WHERE state = 'open' AND tenant = ?1 "
    "AND occurred_at >= ?2 AND occurred_at < ?3";
constexpr const char* kInsert =
    "INSERT INTO invoices (source, given_id, tenant, currency, period_start, period_end, state, "
    "total_whole, total_pico, rounding_pico, lines, held_reason, created_at, updated_at, "
    "issued_at, actor) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
constexpr const char* kInsertHour =
    "INSERT INTO invoice_hours (tenant, currency, period, invoice_key, issued) "
    "VALUES (?1, ?2, ?3, ?4, ?5)";
constexpr const char* kUpdate =
    "UPDATE invoices SET state = ?2, total_whole = ?3, total_pico = ?4, rounding_pico = ?5, "
    "lines = ?6, held_reason = ?7, updated_at = ?8, issued_at = ?9, actor = ?10 "
    "WHERE invoice_key = ?1";
constexpr const char* kFreeHours = "DELETE FROM invoice_hours WHERE invoice_key = ?1";
constexpr const char* kIssueHours = "UPDATE invoice_hours SET issued = 1 WHERE invoice_key = ?1";

InvoiceRow read_row(const Query& query) {
  InvoiceRow row;
  row.key = query.i64(0);
  row.source = query.text(1);
  row.given_id = query.text(2);
  row.span = {query.text(3), query.text(4), query.i64(5), query.i64(6)};
  const auto state = parse_invoice_state(query.view(7));
  AIQ_CHECK(state.has_value());
  row.state = *state;
  row.total = from_columns({query.i64(8), query.i64(9)});
  row.rounding = query.i64(10);
  row.lines = query.text(11);
  row.held_reason = query.text(12);
  row.created_at = query.i64(13);
  row.updated_at = query.i64(14);
  row.issued_at = query.opt_i64(15);
  row.actor = query.text(16);
  return row;
}

std::vector<InvoiceRow> read_rows(Query& query) {
  std::vector<InvoiceRow> rows;
  while (query.step())
    rows.push_back(read_row(query));
  return rows;
}

Int128 sum_at(const Query& query, int column) {
  return static_cast<Int128>(query.i64(column)) * 1'000'000 + query.i64(column + 1);
}

}  // namespace

std::string_view to_string(InvoiceState state) {
  return kStates[static_cast<std::size_t>(state)];
}

std::optional<InvoiceState> parse_invoice_state(std::string_view text) {
  for (std::size_t i = 0; i < kStates.size(); ++i)
    if (kStates[i] == text) return static_cast<InvoiceState>(i);
  return std::nullopt;
}

std::string invoice_id(const InvoiceRow& row) {
  return row.given_id.empty() ? std::to_string(row.key) : row.given_id;
}

std::optional<InvoiceRow> SqliteInvoices::invoice(std::int64_t key) {
  Query query(db_, kByKey, key);
  if (!query.step()) return std::nullopt;
  return read_row(query);
}

std::vector<InvoiceRow> SqliteInvoices::named(const std::string& id) {
  {
    Query query(db_, kByGivenId, id);
    auto rows = read_rows(query);
    if (!rows.empty()) return rows;
  }
  std::int64_t key = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), key);
  if (error != std::errc{} || end != id.data() + id.size()) return {};
  auto row = invoice(key);
  if (!row || !row->given_id.empty()) return {};
  return {*std::move(row)};
}

std::vector<InvoiceRow> SqliteInvoices::list(const InvoiceFilter& filter, const Page& page) {
  const std::string_view state = filter.state ? to_string(*filter.state) : "";
  Query query(db_, kList, first_id_below(page), TextOrNull{filter.tenant},
              TextOrNull{filter.currency}, TextOrNull{state}, filter.since, filter.until,
              page.limit);
  return read_rows(query);
}

std::vector<InvoiceRow> SqliteInvoices::of_span(const InvoiceSpan& span) {
  Query query(db_, kOfSpan, span.tenant, span.currency, span.start, span.end);
  return read_rows(query);
}

std::vector<std::int64_t> SqliteInvoices::own_drafts(const TenantPeriod& hour) {
  Query query(db_, kOwnDrafts, hour.tenant, hour.period);
  std::vector<std::int64_t> keys;
  while (query.step())
    keys.push_back(query.i64(0));
  return keys;
}

std::vector<BilledLine> SqliteInvoices::billed_lines(const InvoiceSpan& span) {
  Query query(db_, kBilledLines, span.tenant, span.currency, span.start, span.end);
  std::vector<BilledLine> lines;
  while (query.step()) {
    BilledLine& line = lines.emplace_back();
    line.service_period = query.i64(0);
    line.kind = query.text(1);
    line.model = query.text(2);
    line.meter = query.text(3);
    line.rows = query.i64(4);
    line.amount = sum_at(query, 5);
    line.units = sum_at(query, 7);
  }
  return lines;
}

Int128 SqliteInvoices::billed_total(const InvoiceSpan& span) {
  Query query(db_, kBilledTotal, span.tenant, span.currency, span.start, span.end);
  return query.step() && !query.null(0) ? sum_at(query, 0) : 0;
}

std::vector<std::string> SqliteInvoices::billed_currencies(const std::string& tenant, UnixMs start,
                                                           UnixMs end) {
  Query query(db_, kCurrencies, tenant, start, end);
  std::vector<std::string> out;
  while (query.step())
    out.push_back(query.text(0));
  return out;
}

Unbilled SqliteInvoices::unbilled(const InvoiceSpan& span) {
  Unbilled out;
  {
    Query query(db_, kPending, span.tenant, span.start, span.end);
    query.step();
    out = {query.i64(0), query.i64(1), query.i64(2), 0};
  }
  {
    Query query(db_, kUncollected, span.tenant, span.start, span.end);
    query.step();
    out.unposted += query.i64(0);
  }
  Query query(db_, kOpenConflicts, span.tenant, span.start, span.end);
  query.step();
  out.conflicts = query.i64(0);
  return out;
}

std::int64_t SqliteInvoices::add(const InvoiceRow& row) {
  const MoneyColumns total = to_columns(row.total);
  run(db_, kInsert, row.source, TextOrNull{row.given_id}, row.span.tenant, row.span.currency,
      row.span.start, row.span.end, to_string(row.state), total.whole, total.pico, row.rounding,
      row.lines, TextOrNull{row.held_reason}, row.created_at, row.updated_at, row.issued_at,
      row.actor);
  const std::int64_t key = db_.last_id();
  if (row.state == InvoiceState::voided) return key;
  for (UnixMs hour = row.span.start; hour < row.span.end; hour += kHourMs)
    run(db_, kInsertHour, row.span.tenant, row.span.currency, hour, key,
        row.state == InvoiceState::issued);
  return key;
}

void SqliteInvoices::update(const InvoiceRow& row) {
  const MoneyColumns total = to_columns(row.total);
  run(db_, kUpdate, row.key, to_string(row.state), total.whole, total.pico, row.rounding, row.lines,
      TextOrNull{row.held_reason}, row.updated_at, row.issued_at, row.actor);
  if (row.state == InvoiceState::voided) run(db_, kFreeHours, row.key);
  if (row.state == InvoiceState::issued) run(db_, kIssueHours, row.key);
}

}  // namespace aiq
