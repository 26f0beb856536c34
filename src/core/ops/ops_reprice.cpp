// cost.reprice and cost.reprice.plan: one slice of rows; `aiq` calls until next_after is null.

#include "core/money/reprice.h"

#include "core/ops/money_input.h"
#include "core/ops/money_render.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

constexpr int kRows = 500;

struct RepriceInput {
  PeriodScope scope;
  std::int64_t after = 0;
  PostingContext context;
};

Expected<RepriceInput, Failure> read_input(const OpEnv& env, const Json& json) {
  Input in(json, {"tenant", "from", "to", "after", "reason", "by"});
  RepriceInput out{.scope = read_scope(in),
                   .after = in.whole("after", 0, INT64_MAX).value_or(0),
                   .context = {.config = env.config,
                               .now = env.clock.wall_ms(),
                               .actor = read_by(in, env),
                               .reason = read_note(in, "reason")}};
  if (in.failure()) return Unexpected{*in.failure()};
  return out;
}

Json json_slice(const RepriceSlice& slice) {
  Json rows = Json::array();
  for (const Reprice& change : slice.changes) {
    Json row = {{"ledger_id", ledger_id(change.row)},
                {"tenant", change.row.tenant},
                {"event_id", change.row.source_ref},
                {"period_start", json_time(change.row.service_period)},
                {"posting_period", json_time(change.posting.posting_period)},
                {"currency", change.row.currency},
                {"before", json_money(change.booked)},
                {"after", json_money(change.booked + change.posting.amount)},
                {"delta", json_money(change.posting.amount)},
                {"price_id", json_id(*change.posting.price_id)}};
    row["posted"] = change.posting.entry_id != 0 ? json_id(change.posting.entry_id) : Json(nullptr);
    rows.push_back(std::move(row));
  }
  return {{"rows", std::move(rows)},
          {"skipped", slice.skipped},
          {"next_after", slice.next_after ? Json(*slice.next_after) : Json(nullptr)}};
}

Expected<WriteStep, Failure> prepare_reprice(const OpEnv& env, const Json& json) {
  auto input = read_input(env, json);
  if (!input) return Unexpected{input.error()};
  return WriteStep([in = *input](Store& store) -> Expected<OpResult, Failure> {
    OpResult result;
    result.out = json_slice(post_reprice(store, in.scope, in.after, kRows, in.context));
    return result;
  });
}

Expected<Json, Failure> plan(const OpEnv& env, Reader& reader, const Json& json) {
  auto input = read_input(env, json);
  if (!input) return Unexpected{input.error()};
  return json_slice(plan_reprice(reader, input->scope, input->after, kRows, input->context));
}

constexpr Op kOps[] = {
    {.name = "cost.reprice", .prepare = prepare_reprice, .priority = WritePriority::maintenance},
    {.name = "cost.reprice.plan", .read = plan, .prefers_daemon = true},
};

}  // namespace

std::span<const Op> reprice_ops() {
  return kOps;
}

}  // namespace aiq
