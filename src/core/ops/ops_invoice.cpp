#include "core/base/names.h"
#include "core/base/time_zone.h"
#include "core/money/invoice.h"
#include "core/ops/money_input.h"
#include "core/ops/money_render.h"
#include "core/ops/op_groups.h"
#include "core/store/cost_ledger.h"

namespace aiq {
namespace {

Json json_head(const InvoiceRow& row) {
  return {{"invoice_id", invoice_id(row)},
          {"source", json_text(row.source)},
          {"tenant", row.span.tenant},
          {"period_start", json_time(row.span.start)},
          {"period_end", json_time(row.span.end)},
          {"currency", row.span.currency},
          {"state", to_string(row.state)},
          {"total", json_money(row.total)},
          {"rounding", json_money(row.rounding)},
          {"held_reason", json_text(row.held_reason)},
          {"created_at", json_time(row.created_at)},
          {"updated_at", json_time(row.updated_at)},
          {"issued_at", json_time(row.issued_at)},
          {"actor", row.actor}};
}

// Amounts in the stored lines are text, so nothing is lost in reading them.
Json json_invoice(const InvoiceRow& row) {
  Json out = json_head(row);
  out["lines"] = Json::parse(row.lines, nullptr, false);
  return out;
}

Expected<OpResult, Failure> answer_of(const Expected<InvoiceRow, Failure>& row) {
  if (!row) return Unexpected{row.error()};
  OpResult result;
  result.out = json_invoice(*row);
  return result;
}

// ---- draft

std::optional<Span> read_span(Input& in) {
  const std::string by = in.required_text("by");
  const auto at = in.instant("period");
  if (!at) in.problem("missing_option", "period is missing");
  if (by != "hour" && by != "day" && by != "month") {
    in.problem("invalid_by", by + " is none of hour, day, month");
    return std::nullopt;
  }
  if (!at) return std::nullopt;
  const Calendar unit = by == "hour"  ? Calendar::hour
                        : by == "day" ? Calendar::day
                                      : Calendar::month;
  const Span span = TimeZone::find("UTC")->span(unit, *at);
  if (span.start != *at)
    in.problem("invalid_period", "the period begins within a UTC " + by + ", which begins at " +
                                     format_rfc3339(span.start));
  return span;
}

// The currency of an invoice of which none is said: that of what was posted.
Expected<std::string, Failure> currency_of(Store& store, const std::string& tenant,
                                           const Span& span) {
  const auto found = store.ledger().invoices().billed_currencies(tenant, span.start, span.end);
  if (found.empty()) return std::string("USD");
  if (found.size() == 1) return found.front();
  std::string names;
  for (const std::string& name : found)
    names += (names.empty() ? "" : ", ") + name;
  return Unexpected{Failure{Exit::usage, "several_currencies",
                            tenant + " owes in " + names + " for these hours",
                            "give one of them with --currency; each has an invoice of its own"}};
}

Expected<WriteStep, Failure> prepare_draft(const OpEnv& env, const Json& json) {
  Input in(json, {"tenant", "period", "by", "currency"});
  const std::string tenant = in.required_text("tenant");
  if (!tenant.empty() && !is_tenant_name(tenant))
    in.problem("invalid_tenant", tenant + " is not a tenant name");
  const auto span = read_span(in);
  const std::string currency = read_currency(in);
  if (in.failure()) return Unexpected{*in.failure()};
  const InvoiceActor by{.actor = env.actor, .now = env.clock.wall_ms()};
  return WriteStep([=](Store& store) -> Expected<OpResult, Failure> {
    std::string in_currency = currency;
    if (in_currency.empty()) {
      auto found = currency_of(store, tenant, *span);
      if (!found) return Unexpected{found.error()};
      in_currency = *std::move(found);
    }
    auto result =
        answer_of(draft_invoice(store, {tenant, in_currency, span->start, span->end}, by));
    if (result && span->end > by.now)
      result->out["warnings"] = {"the period is not over: what is used until its end is missing"};
    return result;
  });
}

// ---- moves

template <InvoiceMove Move>
Expected<WriteStep, Failure> prepare_move(const OpEnv& env, const Json& json) {
  Input in(json, {"invoice_id", "reason"});
  const std::string id = in.required_text("invoice_id");
  const std::string reason = read_note(in, "reason");
  if (in.failure()) return Unexpected{*in.failure()};
  const InvoiceActor by{.actor = env.actor, .now = env.clock.wall_ms()};
  return WriteStep(
      [=](Store& store) { return answer_of(move_invoice(store, id, Move, reason, by)); });
}

// ---- reading

InvoiceFilter read_filter(Input& in) {
  InvoiceFilter filter;
  filter.tenant = in.text("tenant");
  filter.currency = read_currency(in);
  filter.since = in.instant("since");
  filter.until = in.instant("until");
  const std::string state = in.text("state");
  filter.state = parse_invoice_state(state);
  if (!state.empty() && !filter.state)
    in.problem("invalid_state", state + " is none of draft, held, issued, void");
  return filter;
}

Expected<Json, Failure> list_invoices(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "currency", "state", "since", "until", "limit", "after"});
  const InvoiceFilter filter = read_filter(in);
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const InvoiceRow& row : reader.ledger().invoices().list(filter, page)) {
    rows.push_back(json_head(row));
    last = row.key;
  }
  return json_page(std::move(rows), page, last);
}

Expected<Json, Failure> show_invoice(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"invoice_id"});
  const std::string id = in.required_text("invoice_id");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto row = find_invoice(reader, id);
  if (!row) return Unexpected{row.error()};
  return json_invoice(*row);
}

Json json_check(const InvoiceRow& row, const InvoiceCheck& check) {
  return {{"invoice_id", invoice_id(row)},
          {"tenant", row.span.tenant},
          {"period_start", json_time(row.span.start)},
          {"period_end", json_time(row.span.end)},
          {"currency", row.span.currency},
          {"state", to_string(row.state)},
          {"total", json_money(row.total)},
          {"billed", json_money(check.billed)},
          {"billed_rounded", json_money(check.rounded)},
          {"delta", json_money(check.delta)},
          {"ok", check.delta == 0}};
}

// One invoice, or page by page those that ask for money: drafts and issued ones.
Expected<Json, Failure> verify_invoices(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"invoice_id", "tenant", "currency", "since", "until", "limit", "after"});
  const std::string id = in.text("invoice_id");
  const InvoiceFilter filter = read_filter(in);
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  if (!id.empty()) {
    const auto row = find_invoice(reader, id);
    if (!row) return Unexpected{row.error()};
    rows.push_back(json_check(*row, verify_invoice(reader, *row)));
    return Json{{"rows", std::move(rows)}, {"next_after", nullptr}};
  }
  InvoiceBook& book = reader.ledger().invoices();
  // A page of held and void ones alone would look like the end.
  Page from = page;
  for (;;) {
    const auto invoices = book.list(filter, from);
    for (const InvoiceRow& row : invoices) {
      from.after = row.key;
      if (row.state == InvoiceState::draft || row.state == InvoiceState::issued)
        rows.push_back(json_check(row, verify_invoice(reader, row)));
    }
    const bool end = static_cast<std::int64_t>(invoices.size()) < page.limit;
    if (end) return Json{{"rows", std::move(rows)}, {"next_after", nullptr}};
    if (!rows.empty()) return Json{{"rows", std::move(rows)}, {"next_after", json_id(from.after)}};
  }
}

constexpr Op kOps[] = {
    {.name = "invoice.draft", .prepare = prepare_draft},
    {.name = "invoice.hold", .prepare = prepare_move<InvoiceMove::hold>},
    {.name = "invoice.release", .prepare = prepare_move<InvoiceMove::release>},
    {.name = "invoice.issue", .prepare = prepare_move<InvoiceMove::issue>},
    {.name = "invoice.void", .prepare = prepare_move<InvoiceMove::make_void>},
    {.name = "invoice.list", .read = list_invoices},
    {.name = "invoice.show", .read = show_invoice},
    {.name = "invoice.verify", .read = verify_invoices},
};

}  // namespace

std::span<const Op> invoice_ops() {
  return kOps;
}

}  // namespace aiq
