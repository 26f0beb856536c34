// The plan as JSON: written for people, read back for what apply_repair() needs.

#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/duration.h"
#include "core/base/sha256.h"
#include "core/money/repair.h"

namespace aiq {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "aiq.repair.1";

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json json_totals(const CurrencyTotals& totals) {
  if (totals.empty()) return format_money(0);
  if (totals.size() == 1) return format_money(totals.begin()->second);
  Json out = Json::object();
  for (const auto& [currency, total] : totals)
    out[currency] = format_money(total);
  return out;
}

Json json_difference(const CurrencyTotals& before, const CurrencyTotals& after) {
  CurrencyTotals delta = after;
  for (const auto& [currency, total] : before)
    delta[currency] -= total;
  return json_totals(delta);
}

Json json_entry(const LedgerRow& row) {
  return {{"source_type", row.source_type},
          {"idempotency_key", row.idempotency_key},
          {"source", text_or_null(row.source)},
          {"tenant", row.tenant},
          {"service_period", format_rfc3339(row.service_period)},
          {"posting_period", format_rfc3339(row.posting_period)},
          {"source_ref", row.source_ref},
          {"amount", format_money(row.amount)},
          {"currency", row.currency},
          {"reason", row.reason}};
}

Json json_period(const RepairPeriod& period) {
  return {{"tenant", period.unit.tenant},
          {"period_start", format_rfc3339(period.unit.period)},
          {"currency", period.currency},
          {"ledger_before", format_money(period.ledger_before)},
          {"ledger_after", format_money(period.ledger_after)},
          {"ledger_delta", format_money(period.ledger_after - period.ledger_before)},
          {"billed_before", format_money(period.billed_before)},
          {"billed_after", format_money(period.billed_after)},
          {"summary_before",
           period.summary_before ? Json(format_money(*period.summary_before)) : Json(nullptr)},
          {"summary_after", format_money(period.ledger_after)},
          {"content_hash", period.content_hash}};
}

Json json_invoice(const RepairInvoice& invoice) {
  return {{"invoice_id", invoice.invoice_id},
          {"source", text_or_null(invoice.source)},
          {"tenant", invoice.span.tenant},
          {"period_start", format_rfc3339(invoice.span.start)},
          {"period_end", format_rfc3339(invoice.span.end)},
          {"currency", invoice.span.currency},
          {"state", to_string(invoice.state)},
          {"total", format_money(invoice.total)},
          {"total_expected", format_money(invoice.expected)},
          {"mark", invoice.hold ? "hold" : "keep"},
          {"needs_regeneration",
           invoice.state != InvoiceState::issued && invoice.total != invoice.expected}};
}

Json json_draft(const RepairDraft& draft) {
  return {{"tenant", draft.span.tenant},
          {"period_start", format_rfc3339(draft.span.start)},
          {"period_end", format_rfc3339(draft.span.end)},
          {"currency", draft.span.currency},
          {"total_expected", format_money(draft.expected)},
          {"mark", "create"}};
}

std::string hash_of(const Json& plan) {
  return sha256_hex(plan.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Failure no_plan(const std::string& why) {
  return {Exit::usage, "invalid_plan", "this is not a plan of aiq repair: " + why,
          "`aiq repair plan -o FILE` makes one"};
}

UnixMs time_at(const Json& json, const char* name) {
  const auto at = parse_rfc3339(json.at(name).get<std::string>());
  if (!at) throw std::invalid_argument(std::string(name) + " is not a time");
  return *at;
}

std::string text_at(const Json& json, const char* name) {
  const Json& value = json.at(name);
  return value.is_null() ? std::string() : value.get<std::string>();
}

LedgerRow read_entry(const Json& json) {
  LedgerRow row;
  row.source_type = text_at(json, "source_type");
  row.idempotency_key = text_at(json, "idempotency_key");
  row.source = text_at(json, "source");
  row.tenant = text_at(json, "tenant");
  row.service_period = time_at(json, "service_period");
  row.posting_period = time_at(json, "posting_period");
  row.source_ref = text_at(json, "source_ref");
  const auto amount = parse_money(text_at(json, "amount"));
  if (!amount) throw std::invalid_argument("amount is not an amount");
  row.amount = *amount;
  row.currency = text_at(json, "currency");
  row.reason = text_at(json, "reason");
  if (!is_hour(row.service_period) || !is_hour(row.posting_period))
    throw std::invalid_argument("a period does not begin at an hour");
  return row;
}

// Throws Json::exception, std::invalid_argument.
GivenPlan read(const Json& json) {
  GivenPlan out;
  const Json& marks = json.at("known");
  out.marks = {.usage = marks.at("usage").get<std::int64_t>(),
               .conflicts = marks.at("conflicts").get<std::int64_t>(),
               .credits = marks.at("credits").get<std::int64_t>(),
               .decided = time_at(json, "created_at")};
  for (const Json& entry : json.at("repair_entries"))
    out.entries.push_back(read_entry(entry));
  for (const Json& period : json.at("tenant_periods"))
    out.hours[{text_at(period, "tenant"), time_at(period, "period_start")}] =
        text_at(period, "content_hash");
  for (const Json& invoice : json.at("invoices")) {
    if (text_at(invoice, "mark") == "hold")
      out.holds.emplace_back(text_at(invoice, "source"), text_at(invoice, "invoice_id"));
  }
  for (const Json& origin : json.at("freezes"))
    out.freezes.push_back(origin.get<std::string>());
  return out;
}

}  // namespace

Json json_plan(const RepairPlan& plan) {
  CurrencyTotals before, after;
  Json periods = Json::array();
  for (const RepairPeriod& period : plan.periods) {
    before[period.currency] += period.ledger_before;
    after[period.currency] += period.ledger_after;
    periods.push_back(json_period(period));
  }
  Json out = {{"format", kFormat},
              {"created_at", format_rfc3339(plan.created_at)},
              {"known",
               {{"usage", plan.marks.usage},
                {"conflicts", plan.marks.conflicts},
                {"credits", plan.marks.credits}}},
              {"before", json_totals(before)},
              {"after", json_totals(after)},
              {"delta", json_difference(before, after)},
              {"repair_entries", Json::array()},
              {"tenant_periods", std::move(periods)},
              {"invoices", Json::array()},
              {"to_draft", Json::array()},
              {"freezes", plan.freezes}};
  for (const RepairEntry& entry : plan.entries)
    out["repair_entries"].push_back(json_entry(entry.row));
  for (const RepairInvoice& invoice : plan.invoices)
    out["invoices"].push_back(json_invoice(invoice));
  for (const RepairDraft& draft : plan.to_draft)
    out["to_draft"].push_back(json_draft(draft));
  const std::string hash = hash_of(out);
  out["plan_hash"] = hash;
  return out;
}

Expected<GivenPlan, Failure> read_plan(const Json& json) {
  if (!json.is_object()) return Unexpected{no_plan("it is not a JSON object")};
  const auto format = json.find("format");
  if (format == json.end() || *format != kFormat)
    return Unexpected{no_plan("its format is not known")};
  Json rest = json;
  rest.erase("plan_hash");
  const std::string hash = hash_of(rest);
  const auto given = json.find("plan_hash");
  if (given == json.end() || *given != hash)
    return Unexpected{Failure{Exit::usage, "plan_changed",
                              "the plan was changed after it was made: its contents are not those "
                              "of its plan_hash",
                              "make a new one with `aiq repair plan`"}};
  try {
    GivenPlan plan = read(json);
    plan.hash = hash;
    plan.text = json.dump();
    return plan;
  } catch (const Json::exception& error) {
    return Unexpected{no_plan(error.what())};
  } catch (const std::invalid_argument& error) {
    return Unexpected{no_plan(error.what())};
  }
}

Json json_outcome(const RepairOutcome& outcome) {
  const std::string id = std::to_string(outcome.repair_id);
  return {{"repair_id", id},
          // The snapshot is kept with the repair.
          {"snapshot_id", id},
          {"rows_appended", outcome.rows_appended},
          {"periods_rebuilt", outcome.periods_rebuilt},
          {"invoices_held", outcome.invoices_held},
          {"before", json_totals(outcome.before)},
          {"after", json_totals(outcome.after)},
          {"delta", json_difference(outcome.before, outcome.after)}};
}

}  // namespace aiq
