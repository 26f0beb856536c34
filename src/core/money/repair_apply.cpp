#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/duration.h"
#include "core/money/repair.h"

namespace aiq {
namespace {

using Json = nlohmann::ordered_json;

Failure outdated(const std::string& what) {
  return {Exit::conflict, "plan_outdated", what + " since the plan was made",
          "nothing was written; make a new one with `aiq repair plan`"};
}

std::string hour_text(const TenantPeriod& hour) {
  return "the hour " + format_rfc3339(hour.period) + " of tenant " + hour.tenant;
}

std::optional<Failure> changed_hour(Store& store, const GivenPlan& plan) {
  for (const TenantPeriod& hour : store.audit().changed_sources(plan.marks)) {
    if (plan.hours.contains(hour))
      return outdated("usage or credit notes of " + hour_text(hour) + " came or were decided on");
  }
  for (const auto& [hour, hash] : plan.hours) {
    if (hour_hash(store, hour) != hash) return outdated(hour_text(hour) + " has changed");
  }
  return std::nullopt;
}

// The row as the database has what it repairs; nullopt: that is not as the plan says.
class Resolver {
 public:
  Resolver(Store& store, const PostingContext& context)
      : store_(store), ledger_(store.ledger()), context_(context) {}

  std::optional<LedgerRow> row(const LedgerRow& planned) {
    auto found = planned.source_type == "reversal"      ? reversal(planned)
                 : planned.source_type == "usage"       ? usage(planned)
                 : planned.source_type == "credit_note" ? credit(planned)
                                                        : std::nullopt;
    if (!found || found->amount != planned.amount || found->currency != planned.currency ||
        found->service_period != planned.service_period ||
        found->idempotency_key != planned.idempotency_key)
      return std::nullopt;
    found->posting_period = planned.posting_period;
    found->posted_at = context_.now;
    found->actor = context_.actor;
    found->reason = planned.reason;
    return found;
  }

 private:
  std::optional<LedgerRow> reversal(const LedgerRow& planned) {
    for (const LedgerRow& target : ledger_.rows_named(planned.source_ref)) {
      if (target.source != planned.source || target.tenant != planned.tenant) continue;
      if (ledger_.reversal_of(target.entry_id)) return std::nullopt;
      PostingContext context = context_;
      context.reason = planned.reason;
      return reversal_row(ledger_, target, context);
    }
    return std::nullopt;
  }

  std::optional<LedgerRow> usage(const LedgerRow& planned) {
    const auto event = ledger_.find_usage(planned.tenant, planned.source_ref, planned.source);
    if (!event || is_posted(planned)) return std::nullopt;
    return usage_row(store_, context_.config, *event);
  }

  std::optional<LedgerRow> credit(const LedgerRow& planned) {
    const auto note = store_.audit().credit_note(planned.source, planned.source_ref);
    if (!note || note->tenant != planned.tenant || note->status != "approved" || is_posted(planned))
      return std::nullopt;
    return credit_row(*note);
  }

  bool is_posted(const LedgerRow& planned) {
    return !ledger_.rows_of(planned.source, planned.tenant, planned.source_type, planned.source_ref)
                .empty();
  }

  Store& store_;
  CostLedger& ledger_;
  const PostingContext& context_;
};

std::set<TenantPeriod> hours_of(const GivenPlan& plan) {
  std::set<TenantPeriod> out;
  for (const auto& [hour, hash] : plan.hours)
    out.insert(hour);
  return out;
}

CurrencyTotals ledger_totals(CostAudit& audit, const std::set<TenantPeriod>& hours) {
  CurrencyTotals out;
  for (const TenantPeriod& hour : hours) {
    for (const HourState& state : audit.hour_state(hour))
      out[state.currency] += state.service_total;
  }
  return out;
}

// What a person may want to compare with: totals of the hours and the invoices to be held.
Json snapshot(Store& store, const GivenPlan& plan) {
  Json hours = Json::array(), invoices = Json::array();
  for (const auto& [hour, hash] : plan.hours) {
    Json states = Json::array(), summaries = Json::array();
    for (const HourState& s : store.audit().hour_state(hour)) {
      states.push_back({{"currency", s.currency},
                        {"service_total", format_money(s.service_total)},
                        {"billed_total", format_money(s.billed_total)},
                        {"ledger_rows", s.service_rows},
                        {"newest", std::to_string(s.newest)}});
    }
    for (const SummaryRow& s : store.ledger().summaries(hour)) {
      summaries.push_back(
          {{"currency", s.currency},
           {"source", s.source},
           {"total", format_money(s.service_total)},
           {"billed_total", s.billed_total ? Json(format_money(*s.billed_total)) : Json(nullptr)}});
    }
    hours.push_back({{"tenant", hour.tenant},
                     {"period_start", format_rfc3339(hour.period)},
                     {"ledger", std::move(states)},
                     {"summaries", std::move(summaries)},
                     {"content_hash", hash}});
  }
  for (const auto& [source, id] : plan.holds)
    invoices.push_back({{"source", source}, {"invoice_id", id}, {"state", "draft"}});
  return {{"tenant_periods", std::move(hours)}, {"invoices", std::move(invoices)}};
}

// Drafts among them; another state is nothing to be held any more.
std::vector<InvoiceRow> drafts_to_hold(CostLedger& ledger, const GivenPlan& plan) {
  std::vector<InvoiceRow> out;
  for (const auto& [source, id] : plan.holds) {
    for (InvoiceRow& row : ledger.invoices().named(id)) {
      if (row.source == source && row.state == InvoiceState::draft) out.push_back(std::move(row));
    }
  }
  return out;
}

RepairOutcome outcome_of(const RepairRow& row) {
  RepairOutcome out;
  out.repair_id = row.repair_id;
  out.already_applied = true;
  return out;
}

// All writing; nothing here can fail but the database.
class Application {
 public:
  Application(Store& store, const GivenPlan& plan, const PostingContext& context)
      : store_(store), ledger_(store.ledger()), plan_(plan), context_(context) {}

  RepairOutcome run(std::vector<LedgerRow>& rows) {
    std::set<TenantPeriod> hours = hours_of(plan_);
    RepairOutcome out;
    out.before = ledger_totals(store_.audit(), hours);
    const Json found = snapshot(store_, plan_);
    out.repair_id = store_.audit().add_repair({.plan_hash = plan_.hash,
                                               .plan = plan_.text,
                                               .snapshot = "{}",
                                               .result = "{}",
                                               .actor = context_.actor,
                                               .applied_at = context_.now});
    for (const std::string& origin : plan_.freezes)
      (void)ledger_.lift_origin(origin, context_.actor, context_.now);
    for (LedgerRow& row : rows)
      append(row, out.repair_id);
    out.rows_appended = static_cast<std::int64_t>(rows.size());
    recompute_hours(ledger_, hours, context_.now);
    out.periods_rebuilt = static_cast<std::int64_t>(hours.size());
    // After the summaries: what brings drafts up to date passes over those that are held.
    for (InvoiceRow& row : drafts_to_hold(ledger_, plan_)) {
      hold(row, out.repair_id);
      ++out.invoices_held;
    }
    out.after = ledger_totals(store_.audit(), hours);
    store_.audit().finish_repair(out.repair_id, found.dump(), json_outcome(out).dump());
    return out;
  }

 private:
  void append(LedgerRow& row, std::int64_t repair_id) {
    row.repair_id = repair_id;
    if (ledger_.append(row)) return;
    // A row of another system has this key and is something else: its keys follow other rules.
    row.idempotency_key += "|repair:" + std::to_string(repair_id);
    AIQ_CHECK(ledger_.append(row).has_value());
  }

  void hold(InvoiceRow& row, std::int64_t repair_id) {
    auto now = ledger_.invoices().invoice(row.key);
    AIQ_CHECK(now.has_value());
    now->state = InvoiceState::held;
    now->held_reason = "repair " + std::to_string(repair_id);
    now->updated_at = context_.now;
    now->actor = context_.actor;
    ledger_.invoices().update(*now);
  }

  Store& store_;
  CostLedger& ledger_;
  const GivenPlan& plan_;
  const PostingContext& context_;
};

}  // namespace

Expected<RepairOutcome, Failure> apply_repair(Store& store, const GivenPlan& plan,
                                              const PostingContext& context) {
  if (const auto done = store.audit().repair_of(plan.hash)) return outcome_of(*done);
  if (auto why = changed_hour(store, plan)) return Unexpected{*std::move(why)};
  Resolver resolver(store, context);
  std::vector<LedgerRow> rows;
  for (const LedgerRow& planned : plan.entries) {
    const TenantPeriod hours[] = {{planned.tenant, planned.service_period},
                                  {planned.tenant, planned.posting_period}};
    for (const TenantPeriod& hour : hours) {
      if (!plan.hours.contains(hour))
        return Unexpected{
            Failure{Exit::usage, "invalid_plan",
                    "the plan books into " + hour_text(hour) + ", which it leaves out",
                    "make a new one with `aiq repair plan`"}};
    }
    auto row = resolver.row(planned);
    if (!row)
      return Unexpected{outdated("what " + planned.idempotency_key + " repairs is not as it was")};
    rows.push_back(std::move(*row));
  }
  return Application(store, plan, context).run(rows);
}

}  // namespace aiq
