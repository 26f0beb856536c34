// Operations that tell what is owed and why.

#include "core/money/cost_view.h"
#include "core/money/explain.h"
#include "core/ops/money_input.h"
#include "core/ops/money_render.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

// ---- summary

constexpr const char* kGroupNames[] = {"tenant", "model", "vendor", "meter", "label"};

CostBy read_by_unit(Input& in) {
  const std::string by = in.maybe_text("by").value_or("hour");
  if (by == "hour") return CostBy::hour;
  if (by == "day") return CostBy::day;
  if (by == "month") return CostBy::month;
  if (by != "total") in.problem("invalid_by", by + " is none of hour, day, month, total");
  return CostBy::total;
}

void read_group(Input& in, CostQuery& query) {
  const std::string group = in.maybe_text("group").value_or("tenant");
  constexpr std::string_view kLabel = "label:";
  if (group.starts_with(kLabel) && group.size() > kLabel.size()) {
    query.group = CostGroup::label;
    query.label_key = group.substr(kLabel.size());
    return;
  }
  for (int i = 0; i < 4; ++i) {
    if (group != kGroupNames[i]) continue;
    query.group = static_cast<CostGroup>(i);
    return;
  }
  in.problem("invalid_group", group + " is none of tenant, model, vendor, meter, label:KEY");
}

Json json_line(const CostQuery& query, const CostLine& line) {
  Json out;
  out[kGroupNames[static_cast<std::size_t>(query.group)]] = json_text(line.group);
  out["period_start"] = json_time(line.span.start);
  out["period_end"] = json_time(line.span.end);
  out["currency"] = line.currency;
  out["amount"] = json_money(line.amount());
  out["usage_amount"] = json_money(line.usage);
  out["credit_amount"] = json_money(line.credit);
  out["correction_amount"] = json_money(line.correction);
  out["ledger_rows"] = line.ledger_rows;
  out["events"] = line.events;
  out["stale"] = line.stale;
  return out;
}

// What no line shows: events that are not posted.
void warn_of_pending(CostLedger& ledger, const CostQuery& query, Json& out) {
  std::int64_t fresh = 0, unpriced = 0, frozen = 0;
  for (const auto& [why, count] : ledger.count_pending({query.tenant, query.from, query.to}))
    (why == Pending::fresh ? fresh : why == Pending::unpriced ? unpriced : frozen) += count;
  Json warnings = Json::array();
  if (fresh > 0)
    warnings.push_back(std::to_string(fresh) +
                       " events are not posted yet: `aiq cost aggregate` posts them");
  if (unpriced > 0)
    warnings.push_back(std::to_string(unpriced) +
                       " events have no price and are in no amount: `aiq usage list --state "
                       "unpriced`");
  if (frozen > 0)
    warnings.push_back(std::to_string(frozen) +
                       " events are held back by a freeze: `aiq cost freezes`");
  if (!warnings.empty()) out["warnings"] = std::move(warnings);
}

Expected<Json, Failure> summary(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "currency", "from", "to", "by", "group", "tz", "billed"});
  CostQuery query;
  query.tenant = in.text("tenant");
  query.currency = read_currency(in);
  query.from = in.instant("from");
  query.to = in.instant("to");
  if (query.from && query.to && *query.from >= *query.to)
    in.problem("invalid_period", "from must be before to");
  query.by = read_by_unit(in);
  read_group(in, query);
  query.billed = in.flag("billed");
  const std::string zone = in.maybe_text("tz").value_or("UTC");
  const auto found = TimeZone::find(zone);
  if (!found)
    in.problem("invalid_time_zone",
               zone + " is not a time zone of this system, such as Asia/Kolkata or UTC");
  if (in.failure()) return Unexpected{*in.failure()};
  query.zone = *found;
  Json rows = Json::array();
  for (const CostLine& line : cost_lines(reader, query))
    rows.push_back(json_line(query, line));
  Json out = {{"rows", std::move(rows)}, {"next_after", nullptr}};
  warn_of_pending(reader.ledger(), query, out);
  return out;
}

// ---- lists

Expected<Json, Failure> list_ledger(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "currency", "source_type", "source_ref", "period", "from", "to",
                  "since", "until", "limit", "after"});
  LedgerFilter filter;
  filter.tenant = in.text("tenant");
  filter.currency = read_currency(in);
  filter.source_type = in.text("source_type");
  filter.source_ref = in.text("source_ref");
  filter.from = read_hour(in, "from");
  filter.to = read_hour(in, "to");
  if (const auto period = read_hour(in, "period")) {
    if (filter.from || filter.to) in.problem("contradiction", "give a period, or from and to");
    filter.from = *period;
    filter.to = *period + kHourMs;
  }
  filter.since = in.instant("since");
  filter.until = in.instant("until");
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const LedgerRow& row : reader.ledger().list_rows(filter, page)) {
    rows.push_back(json_ledger_row(row));
    last = row.entry_id;
  }
  return json_page(std::move(rows), page, last);
}

Expected<Json, Failure> list_runs(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "outcome", "call_id", "period", "since", "until", "limit", "after"});
  RunFilter filter;
  filter.tenant = in.text("tenant");
  filter.outcome = in.text("outcome");
  filter.call_id = in.text("call_id");
  filter.period = read_hour(in, "period");
  filter.since = in.instant("since");
  filter.until = in.instant("until");
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const RunRow& run : reader.ledger().list_runs(filter, page)) {
    rows.push_back(json_run(run));
    last = run.run_id;
  }
  return json_page(std::move(rows), page, last);
}

Expected<Json, Failure> list_freezes(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "all", "limit", "after"});
  const std::string tenant = in.text("tenant");
  const bool all = in.flag("all");
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const Freeze& freeze :
       reader.ledger().list_freezes(all, tenant, env.clock.wall_ms(), page)) {
    rows.push_back(json_freeze(freeze));
    last = freeze.freeze_id;
  }
  return json_page(std::move(rows), page, last);
}

// ---- explain

Json json_invoice_hour(const InvoiceHour& hour) {
  return {{"invoice_id", hour.invoice_id},
          {"period_start", json_time(hour.start)},
          {"period_end", json_time(hour.end)},
          {"currency", hour.currency},
          {"state", hour.state}};
}

Json json_explained_row(const ExplainedRow& row) {
  Json out = json_ledger_row(row.row);
  out["event"] = row.event ? json_usage_event(*row.event) : Json(nullptr);
  out["in_force"] = row.in_force;
  out["reversed_by"] = row.reversed_by.empty() ? Json(nullptr) : Json(row.reversed_by);
  out["repriced_by"] = row.repriced_by;
  out["invoice"] = row.invoice ? json_invoice_hour(*row.invoice) : Json(nullptr);
  return out;
}

Expected<Json, Failure> explain(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"ledger_id", "event_id", "tenant", "period"});
  ExplainQuery query;
  query.ledger_id = in.text("ledger_id");
  query.event_id = in.text("event_id");
  query.tenant = in.text("tenant");
  query.period = read_hour(in, "period");
  const int ways =
      (query.ledger_id.empty() ? 0 : 1) + (query.event_id.empty() ? 0 : 1) + (query.period ? 1 : 0);
  if (ways != 1)
    in.problem("missing_option", "give a ledger id, an event, or a tenant and a period");
  if (query.period && query.tenant.empty()) in.problem("missing_option", "tenant is missing");
  if (in.failure()) return Unexpected{*in.failure()};
  auto found = explain_cost(reader, query, env.clock.wall_ms());
  if (!found) return Unexpected{found.error()};
  Json out = {{"events", Json::array()},    {"rows", Json::array()},
              {"summaries", Json::array()}, {"conflicts", Json::array()},
              {"freeze", nullptr},          {"truncated", found->truncated}};
  for (const UsageRow& event : found->events)
    out["events"].push_back(json_usage_row(event));
  for (const ExplainedRow& row : found->rows)
    out["rows"].push_back(json_explained_row(row));
  for (const SummaryRow& row : found->summaries)
    out["summaries"].push_back(json_summary(row));
  for (const UsageConflict& conflict : found->conflicts)
    out["conflicts"].push_back(json_conflict(conflict));
  if (found->freeze) out["freeze"] = json_freeze(*found->freeze);
  return out;
}

constexpr Op kOps[] = {
    {.name = "cost.summary", .read = summary, .local_only = true},
    {.name = "cost.ledger", .read = list_ledger},
    {.name = "cost.runs", .read = list_runs},
    {.name = "cost.freezes", .read = list_freezes},
    {.name = "cost.explain", .read = explain},
};

}  // namespace

std::span<const Op> cost_read_ops() {
  return kOps;
}

}  // namespace aiq
