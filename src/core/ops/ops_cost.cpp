// Operations that change what is owed, but aggregation.

#include <limits>

#include "core/base/names.h"
#include "core/base/sha256.h"
#include "core/money/postings.h"
#include "core/ops/money_input.h"
#include "core/ops/money_render.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

constexpr int kRebuildUnits = 100;  // of one step

PostingContext context_of(Input& in, const OpEnv& env) {
  return {.config = env.config,
          .now = env.clock.wall_ms(),
          .actor = read_by(in, env),
          .reason = read_note(in, "reason")};
}

std::string required_tenant(Input& in) {
  std::string out = in.required_text("tenant");
  if (!out.empty() && !is_tenant_name(out))
    in.problem("invalid_tenant", out + " is not a tenant name");
  return out;
}

// ---- credit, reverse

Expected<WriteStep, Failure> prepare_credit(const OpEnv& env, const Json& json) {
  Input in(json, {"tenant", "period", "amount", "currency", "reason", "approved_by", "id",
                  "allow_negative"});
  Credit credit;
  credit.tenant = required_tenant(in);
  const auto period = read_hour(in, "period");
  if (!period) in.problem("missing_option", "period is missing");
  const std::string amount = in.required_text("amount");
  const auto pico = parse_money(amount);
  if (!amount.empty() && (!pico || *pico == 0 || *pico == std::numeric_limits<Pico>::min()))
    in.problem("invalid_amount", amount + " is not an amount that can be booked");
  credit.currency = read_currency(in);
  credit.approved_by = read_note(in, "approved_by");
  if (credit.approved_by.empty()) in.problem("missing_option", "approved_by is missing");
  credit.id = read_note(in, "id");
  if (credit.id.empty()) credit.id = env.random.token();
  credit.allow_negative = in.flag("allow_negative");
  const PostingContext context{.config = env.config,
                               .now = env.clock.wall_ms(),
                               .actor = env.actor,
                               .reason = read_note(in, "reason")};
  if (context.reason.empty()) in.problem("missing_option", "reason is missing");
  if (in.failure()) return Unexpected{*in.failure()};
  credit.period = *period;
  credit.amount = *pico;
  return WriteStep([credit, context](Store& store) -> Expected<OpResult, Failure> {
    auto row = post_credit(store, credit, context);
    if (!row) return Unexpected{row.error()};
    OpResult result;
    result.out = json_ledger_row(*row);
    return result;
  });
}

Expected<WriteStep, Failure> prepare_reverse(const OpEnv& env, const Json& json) {
  Input in(json, {"ledger_id", "reason", "by"});
  const std::string id = in.required_text("ledger_id");
  const PostingContext context = context_of(in, env);
  if (context.reason.empty()) in.problem("missing_option", "reason is missing");
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([id, context](Store& store) -> Expected<OpResult, Failure> {
    auto rows = reverse_row(store, id, context);
    if (!rows) return Unexpected{rows.error()};
    OpResult result;
    result.out = json_ledger_row(rows->front());
    result.out["also"] = Json::array();
    for (std::size_t i = 1; i < rows->size(); ++i)
      result.out["also"].push_back(json_ledger_row((*rows)[i]));
    return result;
  });
}

// ---- freeze, unfreeze

struct FreezeInput {
  std::string tenant;
  UnixMs from = 0, to = 0;
};

FreezeInput read_freeze_input(Input& in) {
  FreezeInput out;
  out.tenant = required_tenant(in);
  const auto period = read_hour(in, "period"), from = read_hour(in, "from"),
             to = read_hour(in, "to");
  if (period && (from || to)) in.problem("contradiction", "give a period, or from and to");
  if (!period && !(from && to)) in.problem("missing_option", "give a period, or from and to");
  out.from = period.value_or(from.value_or(0));
  out.to = period ? *period + kHourMs : to.value_or(0);
  if (out.from >= out.to) in.problem("invalid_period", "from must be before to");
  return out;
}

Expected<WriteStep, Failure> prepare_freeze(const OpEnv& env, const Json& json) {
  Input in(json, {"tenant", "period", "from", "to", "until", "reason", "by"});
  const FreezeInput given = read_freeze_input(in);
  const UnixMs now = env.clock.wall_ms();
  Freeze freeze{.tenant = given.tenant,
                .from = given.from,
                .to = given.to,
                .origin = "operator",
                .until = in.instant("until"),
                .reason = read_note(in, "reason"),
                .actor = read_note(in, "by"),
                .created_at = now};
  if (freeze.reason.empty()) in.problem("missing_option", "reason is missing");
  if (freeze.actor.empty()) in.problem("missing_option", "by is missing");
  if (freeze.until && *freeze.until <= now)
    in.problem("invalid_until", "until must be in the future");
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([freeze](Store& store) -> Expected<OpResult, Failure> {
    Freeze stored = freeze;
    stored.freeze_id = store.ledger().freeze(freeze);
    OpResult result;
    result.out = json_freeze(stored);
    return result;
  });
}

Expected<WriteStep, Failure> prepare_unfreeze(const OpEnv& env, const Json& json) {
  Input in(json, {"tenant", "period", "from", "to", "reason", "by"});
  const FreezeInput given = read_freeze_input(in);
  const PostingContext context = context_of(in, env);
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([given, context](Store& store) -> Expected<OpResult, Failure> {
    const int lifted =
        store.ledger().lift_freezes(given.tenant, given.from, given.to, context.actor, context.now);
    if (lifted == 0)
      return Unexpected{Failure{Exit::not_found, "no_such_freeze",
                                "no freeze of tenant " + given.tenant + " is in force there",
                                "`aiq cost freezes` shows them"}};
    OpResult result;
    result.out = {{"lifted", lifted}};
    return result;
  });
}

// ---- rebuild

struct RebuildState {
  std::optional<TenantPeriod> after;
  std::string hash;  // over the contents so far
};

// One step of a rebuild; `write` false compares only.
Json rebuild_step(CostLedger& ledger, const PeriodScope& scope, RebuildState state, bool write,
                  UnixMs now) {
  std::int64_t periods = 0, changed = 0, held = 0;
  Json deltas = Json::array();
  bool done = false;
  for (int i = 0; i < kRebuildUnits; ++i) {
    const auto unit = ledger.next_summary_unit(state.after, scope);
    if (!unit) {
      done = true;
      break;
    }
    state.after = *unit;
    // Until its freeze is lifted an import's summaries are evidence.
    const auto freeze = ledger.freeze_of(*unit, now);
    if (freeze && freeze->origin != "operator") {
      ++held;
      continue;
    }
    ++periods;
    const auto changes = ledger.recompute(*unit, now, write);
    if (!changes.empty()) ++changed;
    for (const SummaryChange& change : changes) {
      const Int128 before = change.before ? change.before->service_total : Int128{0};
      const Int128 after = change.after ? change.after->service_total : Int128{0};
      deltas.push_back({{"tenant", unit->tenant},
                        {"period_start", json_time(unit->period)},
                        {"currency", change.currency},
                        {"before", change.before ? json_money(before) : Json(nullptr)},
                        {"after", change.after ? json_money(after) : Json(nullptr)},
                        {"delta", json_money(after - before)}});
    }
    for (const SummaryRow& row : ledger.summaries(*unit)) {
      Sha256 hash;
      for (const std::string_view text :
           {std::string_view(state.hash), std::string_view(row.tenant),
            std::string_view(row.currency), std::string_view(row.content_hash)})
        hash.update_field(text);
      hash.update_field(std::to_string(row.period));
      state.hash = hash.hex();
    }
  }
  Json out = {{"done", done}, {"periods", periods}, {"changed", changed},
              {"held", held}, {"deltas", deltas},   {"content_hash", state.hash}};
  if (state.after) out["after"] = {state.after->tenant, state.after->period};
  return out;
}

// Shared by the writing and the comparing form.
Expected<std::pair<PeriodScope, RebuildState>, Failure> read_rebuild(const Json& json) {
  Input in(json, {"tenant", "from", "to", "content_hash", "after"});
  const PeriodScope scope = read_scope(in);
  RebuildState state;
  state.hash = in.text("content_hash");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto after = json.find("after");
  if (after == json.end() || after->is_null()) return std::pair(scope, state);
  const bool sound = after->is_array() && after->size() == 2 && after->at(0).is_string() &&
                     after->at(1).is_number_integer();
  if (!sound)
    return Unexpected{
        Failure{Exit::usage, "invalid_option", "after is not what an earlier step gave", ""}};
  state.after = TenantPeriod{after->at(0).get<std::string>(), after->at(1).get<std::int64_t>()};
  return std::pair(scope, state);
}

Expected<WriteStep, Failure> prepare_rebuild(const OpEnv& env, const Json& json) {
  auto input = read_rebuild(json);
  if (!input) return Unexpected{input.error()};
  const auto [scope, state] = *input;
  return WriteStep([scope = scope, state = state,
                    &clock = env.clock](Store& store) -> Expected<OpResult, Failure> {
    OpResult result;
    result.out = rebuild_step(store.ledger(), scope, state, true, clock.wall_ms());
    return result;
  });
}

Expected<Json, Failure> verify(const OpEnv& env, Reader& reader, const Json& json) {
  auto input = read_rebuild(json);
  if (!input) return Unexpected{input.error()};
  const auto& [scope, state] = *input;
  return rebuild_step(reader.ledger(), scope, state, false, env.clock.wall_ms());
}

constexpr Op kOps[] = {
    {.name = "cost.credit", .prepare = prepare_credit},
    {.name = "cost.reverse", .prepare = prepare_reverse},
    {.name = "cost.freeze", .prepare = prepare_freeze},
    {.name = "cost.unfreeze", .prepare = prepare_unfreeze},
    {.name = "cost.rebuild", .prepare = prepare_rebuild, .priority = WritePriority::maintenance},
    {.name = "cost.verify", .read = verify},
};

}  // namespace

std::span<const Op> cost_ops() {
  return kOps;
}

}  // namespace aiq
