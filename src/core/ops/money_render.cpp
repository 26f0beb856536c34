#include "core/ops/money_render.h"

#include "core/base/names.h"

namespace aiq {
namespace {

Json json_opt_id(const std::optional<std::int64_t>& id) {
  return id ? json_id(*id) : Json(nullptr);
}

}  // namespace

Json json_money(Int128 pico) {
  return format_money(pico);
}

Json json_ids(const std::vector<std::int64_t>& ids) {
  Json out = Json::array();
  for (const std::int64_t id : ids)
    out.push_back(json_id(id));
  return out;
}

Json json_usage_event(const UsageEvent& event) {
  return {{"event_id", event.event_id},
          {"tenant", event.tenant},
          {"vendor", json_text(event.vendor)},
          {"model", event.model},
          {"meter", event.meter},
          {"units", event.units},
          {"price_per_million",
           event.unit_pico ? Json(format_price_per_million(*event.unit_pico)) : Json(nullptr)},
          {"currency", json_text(event.currency)},
          {"occurred_at", json_time(event.occurred_at)},
          {"received_at", json_time(event.received_at)},
          {"job_id", event.job_id ? json_id(*event.job_id) : json_text(event.job_ref)},
          {"correlation_id", json_text(event.correlation_id)},
          {"source", json_text(event.source)}};
}

Json json_usage_row(const UsageRow& row) {
  Json out = {{"usage_id", json_id(row.event.usage_id)}, {"state", row.state}};
  out.update(json_usage_event(row.event));
  return out;
}

Json json_conflict(const UsageConflict& conflict) {
  Json out = {{"conflict_id", json_id(conflict.conflict_id)}, {"state", conflict.state}};
  out.update(json_usage_event(conflict.event));
  out["reason"] = json_text(conflict.reason);
  out["decided_by"] = json_text(conflict.actor);
  out["decided_at"] = json_time(conflict.decided_at);
  return out;
}

Json json_ledger_row(const LedgerRow& row) {
  // Of a reversal the source is what it reverses, as an operator names it.
  const Json reverses = row.reverses ? Json(row.source_ref) : Json(nullptr);
  return {{"ledger_id", ledger_id(row)},
          {"tenant", row.tenant},
          {"source_type", row.source_type},
          {"source_ref", row.source_ref},
          {"service_period", json_time(row.service_period)},
          {"posting_period", json_time(row.posting_period)},
          {"occurred_at", json_time(row.occurred_at)},
          {"amount", json_money(row.amount)},
          {"currency", row.currency},
          {"idempotency_key", row.idempotency_key},
          {"job_id", json_text(row.job_id)},
          {"run_id", json_opt_id(row.run_id)},
          {"retry_count", row.retry_count},
          {"correlation_id", json_text(row.correlation_id)},
          {"posted_at", json_time(row.posted_at)},
          {"reverses", reverses},
          {"price_id", json_opt_id(row.price_id)},
          {"source", json_text(row.source)},
          {"reason", json_text(row.reason)},
          {"actor", json_text(row.actor)}};
}

Json json_summary(const SummaryRow& row) {
  return {{"tenant", row.tenant},
          {"period_start", json_time(row.period)},
          {"period_end", json_time(row.period + kHourMs)},
          {"currency", row.currency},
          {"amount", json_money(row.service_total)},
          {"billed_amount", row.billed_total ? json_money(*row.billed_total) : Json(nullptr)},
          {"usage_amount", json_money(row.usage)},
          {"credit_amount", json_money(row.credit)},
          {"correction_amount", json_money(row.correction)},
          {"ledger_rows", row.ledger_rows},
          {"events", row.events},
          {"content_hash", json_text(row.content_hash)}};
}

Json json_run(const RunRow& run) {
  return {{"run_id", json_id(run.run_id)},
          {"call_id", run.call_id},
          {"tenant", run.unit.tenant},
          {"period_start", json_time(run.unit.period)},
          {"initiator", run.initiator},
          {"started_at", json_time(run.started_at)},
          {"finished_at", json_time(run.finished_at)},
          {"retry_count", run.retry_count},
          {"outcome", json_text(run.outcome)},
          {"events", run.events},
          {"posted", run.counts.posted},
          {"replayed", run.counts.replayed},
          {"conflicts", run.counts.conflicts},
          {"unpriced", run.counts.unpriced},
          {"late", run.counts.late},
          {"job_id", json_text(run.job_ref)},
          {"correlation_id", json_text(run.correlation_id)},
          {"source", json_text(run.source)},
          {"actor", json_text(run.actor)}};
}

Json json_freeze(const Freeze& freeze) {
  return {{"freeze_id", json_id(freeze.freeze_id)},
          {"tenant", freeze.tenant},
          {"period_start", json_time(freeze.from)},
          {"period_end", json_time(freeze.to)},
          {"origin", freeze.origin},
          {"until", json_time(freeze.until)},
          {"reason", json_text(freeze.reason)},
          {"by", json_text(freeze.actor)},
          {"created_at", json_time(freeze.created_at)},
          {"lifted_at", json_time(freeze.lifted_at)},
          {"lifted_by", json_text(freeze.lifted_by)}};
}

bool is_plain_note(std::string_view text) {
  constexpr std::size_t kNoteBytes = 500;
  return is_plain_text(text, kNoteBytes);
}

}  // namespace aiq
