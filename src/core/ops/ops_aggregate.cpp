// cost.aggregate: one step of an aggregation; `aiq` calls it until `done` is true.

#include "core/money/aggregate.h"

#include "core/ops/money_input.h"
#include "core/ops/money_render.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

// The state goes to the client and comes back. Of what comes back nothing is believed that could
// do more harm than an aggregation of that client's own.
Json json_state(const AggregateState& state) {
  Json out = {{"phase", state.phase == AggregateState::Phase::collect ? "collect" : "units"}};
  if (state.after) out["after"] = {state.after->tenant, state.after->period};
  const AggregateTotals& t = state.totals;
  out["totals"] = {t.periods,  t.posted, t.replayed, t.conflicts,
                   t.unpriced, t.late,   t.frozen,   t.busy};
  if (!state.unit) return out;
  const AggregateState::Unit& unit = *state.unit;
  out["unit"] = {{"at", {unit.at.tenant, unit.at.period}},
                 {"run_id", unit.run_id},
                 {"retry_count", unit.retry_count},
                 {"after", unit.after},
                 {"counts",
                  {unit.counts.posted, unit.counts.replayed, unit.counts.conflicts,
                   unit.counts.unpriced, unit.counts.late}},
                 {"posted_here", unit.posted_here},
                 {"frozen", unit.frozen},
                 {"touched", unit.touched}};
  return out;
}

TenantPeriod read_unit(const Json& json) {
  return {json.at(0).get<std::string>(), hour_of(json.at(1).get<std::int64_t>())};
}

// Throws Json::exception when it is not what json_state() made.
AggregateState read_state(const Json& json) {
  AggregateState out;
  out.phase =
      json.at("phase") == "collect" ? AggregateState::Phase::collect : AggregateState::Phase::units;
  if (json.contains("after")) out.after = read_unit(json.at("after"));
  AggregateTotals& t = out.totals;
  std::int64_t* const totals[] = {&t.periods,  &t.posted, &t.replayed, &t.conflicts,
                                  &t.unpriced, &t.late,   &t.frozen,   &t.busy};
  for (std::size_t i = 0; i < std::size(totals); ++i)
    *totals[i] = json.at("totals").at(i).get<std::int64_t>();
  if (!json.contains("unit")) return out;
  const Json& from = json.at("unit");
  AggregateState::Unit unit;
  unit.at = read_unit(from.at("at"));
  unit.run_id = from.at("run_id").get<std::int64_t>();
  unit.retry_count = from.at("retry_count").get<int>();
  unit.after = from.at("after").get<std::int64_t>();
  std::int64_t* const counts[] = {&unit.counts.posted, &unit.counts.replayed,
                                  &unit.counts.conflicts, &unit.counts.unpriced, &unit.counts.late};
  for (std::size_t i = 0; i < std::size(counts); ++i)
    *counts[i] = from.at("counts").at(i).get<std::int64_t>();
  unit.posted_here = from.at("posted_here").get<std::int64_t>();
  unit.frozen = from.at("frozen").get<bool>();
  unit.touched = from.at("touched").get<std::set<UnixMs>>();
  out.unit = std::move(unit);
  return out;
}

Json json_totals(const AggregateCall& call, const AggregateTotals& totals) {
  Json out = {
      {"run_id", call.call_id},      {"periods", totals.periods},     {"posted", totals.posted},
      {"replayed", totals.replayed}, {"conflicts", totals.conflicts}, {"frozen", totals.frozen},
      {"unpriced", totals.unpriced}, {"late", totals.late},           {"busy", totals.busy}};
  Json warnings = Json::array();
  if (totals.unpriced > 0)
    warnings.push_back(std::to_string(totals.unpriced) +
                       " events have no price and are not posted: `aiq usage list --state "
                       "unpriced` shows them, `aiq price set` gives one");
  if (totals.frozen > 0)
    warnings.push_back("a freeze held back events of " + std::to_string(totals.frozen) +
                       " tenant-hours: `aiq cost freezes` shows it");
  if (totals.conflicts > 0)
    warnings.push_back(std::to_string(totals.conflicts) +
                       " events contradict what is posted: `aiq usage conflicts list`");
  if (!warnings.empty()) out["warnings"] = std::move(warnings);
  return out;
}

Expected<WriteStep, Failure> prepare_aggregate(const OpEnv& env, const Json& json) {
  Input in(json, {"call_id", "owner", "correlation_id", "tenant", "from", "to", "state"});
  AggregateCall call;
  call.call_id = in.required_text("call_id");
  call.owner = in.required_text("owner");
  call.correlation_id = in.maybe_text("correlation_id").value_or(call.call_id);
  call.initiator = "command";
  call.actor = env.actor;
  call.scope = read_scope(in);
  if (in.failure()) return Unexpected{*in.failure()};
  AggregateState state;
  try {
    if (const auto given = json.find("state"); given != json.end() && !given->is_null())
      state = read_state(*given);
  } catch (const Json::exception&) {
    return Unexpected{
        Failure{Exit::usage, "invalid_option", "state is not what an earlier step gave", ""}};
  }
  return WriteStep([call, state, &config = env.config,
                    &clock = env.clock](Store& store) -> Expected<OpResult, Failure> {
    const AggregateState next = aggregate_step(store, config, call, state, clock.wall_ms());
    OpResult result;
    if (next.phase == AggregateState::Phase::done) {
      result.out = json_totals(call, next.totals);
      result.out["done"] = true;
    } else {
      result.out = {{"done", false},
                    {"posted", next.totals.posted + (next.unit ? next.unit->counts.posted : 0)},
                    {"state", json_state(next)}};
    }
    return result;
  });
}

constexpr Op kOps[] = {
    {.name = "cost.aggregate",
     .prepare = prepare_aggregate,
     .priority = WritePriority::maintenance},
};

}  // namespace

std::span<const Op> aggregate_ops() {
  return kOps;
}

}  // namespace aiq
