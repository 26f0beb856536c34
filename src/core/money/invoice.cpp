#include "core/money/invoice.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "core/base/duration.h"
#include "core/money/audit.h"

namespace aiq {
namespace {

using Json = nlohmann::ordered_json;

Int128 rounded(Int128 exact, const std::string& currency) {
  const int digits = minor_digits(currency);
  return minor_to_pico(round_to_minor(exact, digits), digits);
}

Json whole_number(Int128 value) {
  if (value <= std::numeric_limits<std::int64_t>::max()) return static_cast<std::int64_t>(value);
  return format_int128(value);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json json_line(const BilledLine& line, UnixMs start) {
  return {{"kind", line.kind},
          {"service_period", format_rfc3339(line.service_period)},
          {"model", text_or_null(line.model)},
          {"meter", text_or_null(line.meter)},
          {"units", line.kind == "usage" ? whole_number(line.units) : Json(nullptr)},
          {"amount", format_money(line.amount)},
          {"ledger_rows", line.rows},
          {"late", line.service_period < start}};
}

Json rounding_line(Pico rounding) {
  return {{"kind", "rounding"},     {"service_period", nullptr},
          {"model", nullptr},       {"meter", nullptr},
          {"units", nullptr},       {"amount", format_money(rounding)},
          {"ledger_rows", nullptr}, {"late", false}};
}

// Lines, total and rounding as the ledger has it now.
void fill(InvoiceBook& book, InvoiceRow& row) {
  Json lines = Json::array();
  Int128 exact = 0;
  for (const BilledLine& line : book.billed_lines(row.span)) {
    lines.push_back(json_line(line, row.span.start));
    exact += line.amount;
  }
  row.total = rounded(exact, row.span.currency);
  row.rounding = static_cast<Pico>(row.total - exact);
  if (row.rounding != 0) lines.push_back(rounding_line(row.rounding));
  row.lines = lines.dump();
}

std::string span_text(const InvoiceSpan& span) {
  return format_rfc3339(span.start) + " to " + format_rfc3339(span.end);
}

Failure conflict(std::string code, std::string message, std::string hint) {
  return {Exit::conflict, std::move(code), std::move(message), std::move(hint)};
}

Failure is_issued(const InvoiceRow& row) {
  return conflict("issued",
                  "invoice " + invoice_id(row) + " of " + row.span.tenant + " for " +
                      span_text(row.span) + " is issued and never changes",
                  "what is posted from now on goes into the next hour without an issued invoice");
}

std::string events(std::int64_t n) {
  return std::to_string(n) + (n == 1 ? " event" : " events");
}

// Why the hours of an invoice can't be issued yet.
std::optional<Failure> not_billable(Reader& reader, const InvoiceRow& row, UnixMs now) {
  const std::string of = " of " + row.span.tenant + " in " + span_text(row.span);
  for (UnixMs hour = row.span.start; hour < row.span.end; hour += kHourMs)
    if (const auto freeze = reader.ledger().freeze_of({row.span.tenant, hour}, now))
      return conflict("frozen", "hours" + of + " are frozen: " + freeze->reason,
                      "`aiq cost unfreeze` when that is settled, or `aiq repair apply`");
  const Unbilled unbilled = reader.ledger().invoices().unbilled(row.span);
  if (unbilled.unposted + unbilled.frozen > 0)
    return conflict("unposted_usage",
                    events(unbilled.unposted + unbilled.frozen) + of + " is not posted yet",
                    "`aiq cost aggregate` posts it");
  if (unbilled.unpriced > 0)
    return conflict(
        "unpriced_usage", events(unbilled.unpriced) + of + " has no price",
        "`aiq price set` with an --effective-from before it, then `aiq cost aggregate`");
  if (unbilled.conflicts > 0)
    return conflict("event_id_conflict",
                    events(unbilled.conflicts) + of +
                        " came again with another payload, and nobody has decided which is right",
                    "`aiq usage conflicts list`, then keep or replace");
  return std::nullopt;
}

std::optional<Failure> not_sound(Reader& reader, const InvoiceRow& row, UnixMs now) {
  const AuditScope scope{
      .tenant = row.span.tenant, .from = row.span.start, .to = row.span.end, .now = now};
  if (const std::int64_t errors = unacknowledged_errors(reader.audit(), scope); errors > 0)
    return conflict("audit_errors",
                    "the audit has " + std::to_string(errors) +
                        (errors == 1 ? " error" : " errors") + " of " + row.span.tenant + " in " +
                        span_text(row.span) + " that nobody acknowledged",
                    "`aiq audit` shows them; `aiq repair plan`, or `aiq audit ack`");
  return std::nullopt;
}

Expected<InvoiceRow, Failure> issue(Store& store, InvoiceRow row, const InvoiceActor& by) {
  if (row.state == InvoiceState::held)
    return Unexpected{conflict("held",
                               "invoice " + invoice_id(row) + " is held" +
                                   (row.held_reason.empty() ? "" : ": " + row.held_reason),
                               "`aiq invoice release` when that is settled")};
  if (auto why = not_billable(store, row, by.now)) return Unexpected{*std::move(why)};
  const InvoiceRow seen = row;
  fill(store.ledger().invoices(), row);
  if (row.total != seen.total || (seen.source.empty() && row.lines != seen.lines))
    return Unexpected{conflict("outdated",
                               "invoice " + invoice_id(row) + " says " + format_money(seen.total) +
                                   ", and " + format_money(row.total) +
                                   " is billed for its hours now",
                               "`aiq invoice draft` for its hours brings it up to date")};
  if (auto why = not_sound(store, row, by.now)) return Unexpected{*std::move(why)};
  row.state = InvoiceState::issued;
  row.issued_at = by.now;
  return row;
}

// The invoice after the move; nothing to write when it is there already.
Expected<InvoiceRow, Failure> moved(Store& store, InvoiceRow row, InvoiceMove move,
                                    const std::string& reason, const InvoiceActor& by) {
  if (row.state == InvoiceState::issued) return Unexpected{is_issued(row)};
  if (row.state == InvoiceState::voided && move != InvoiceMove::make_void)
    return Unexpected{conflict("void", "invoice " + invoice_id(row) + " is void",
                               "`aiq invoice draft` makes a new one")};
  switch (move) {
    case InvoiceMove::hold:
      row.state = InvoiceState::held;
      row.held_reason = reason;
      return row;
    case InvoiceMove::release:
      row.state = InvoiceState::draft;
      row.held_reason.clear();
      return row;
    case InvoiceMove::make_void:
      row.state = InvoiceState::voided;
      return row;
    case InvoiceMove::issue:
      return issue(store, std::move(row), by);
  }
  AIQ_CHECK(false);
}

}  // namespace

Expected<InvoiceRow, Failure> draft_invoice(Store& store, const InvoiceSpan& span,
                                            const InvoiceActor& by) {
  InvoiceBook& book = store.ledger().invoices();
  InvoiceRow row;
  for (InvoiceRow& other : book.of_span(span)) {
    if (other.span != span)
      return Unexpected{conflict("period_invoiced",
                                 "invoice " + invoice_id(other) + " (" +
                                     std::string(to_string(other.state)) + ") of " + span.tenant +
                                     " for " + span_text(other.span) + " has hours of it",
                                 "an hour belongs to one invoice; `aiq invoice void` frees those "
                                 "of one that is not issued")};
    if (other.state == InvoiceState::issued) return Unexpected{is_issued(other)};
    row = std::move(other);
  }
  const bool is_new = row.key == 0;
  row.span = span;
  if (is_new) row.created_at = by.now;
  row.updated_at = by.now;
  row.actor = by.actor;
  fill(book, row);
  if (is_new)
    row.key = book.add(row);
  else
    book.update(row);
  return row;
}

Expected<InvoiceRow, Failure> find_invoice(Reader& reader, const std::string& id) {
  auto rows = reader.ledger().invoices().named(id);
  if (rows.empty())
    return Unexpected{Failure{Exit::not_found, "no_such_invoice", "there is no invoice " + id,
                              "`aiq invoice list` shows them"}};
  if (rows.size() > 1)
    return Unexpected{conflict("ambiguous", "several systems have an invoice " + id,
                               "`aiq invoice list` shows them")};
  return std::move(rows.front());
}

Expected<InvoiceRow, Failure> move_invoice(Store& store, const std::string& id, InvoiceMove move,
                                           const std::string& reason, const InvoiceActor& by) {
  auto found = find_invoice(store, id);
  if (!found) return found;
  auto row = moved(store, *found, move, reason, by);
  if (!row) return row;
  row->updated_at = by.now;
  row->actor = by.actor;
  store.ledger().invoices().update(*row);
  return row;
}

std::vector<std::int64_t> recompute_drafts(CostLedger& ledger, const std::set<TenantPeriod>& hours,
                                           UnixMs now) {
  InvoiceBook& book = ledger.invoices();
  std::set<std::int64_t> keys;
  for (const TenantPeriod& hour : hours)
    for (const std::int64_t key : book.own_drafts(hour))
      keys.insert(key);
  for (const std::int64_t key : keys) {
    auto row = book.invoice(key);
    AIQ_CHECK(row.has_value());
    fill(book, *row);
    row->updated_at = now;
    book.update(*row);
  }
  return {keys.begin(), keys.end()};
}

InvoiceCheck verify_invoice(Reader& reader, const InvoiceRow& row) {
  InvoiceCheck check;
  check.billed = reader.ledger().invoices().billed_total(row.span);
  check.rounded = rounded(check.billed, row.span.currency);
  check.delta = row.total - check.rounded;
  return check;
}

}  // namespace aiq
