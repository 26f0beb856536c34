#include "core/money/repair.h"
#include "core/ops/money_input.h"
#include "core/ops/money_render.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

Expected<Json, Failure> plan(const OpEnv& env, Reader& reader, const Json& json) {
  const Input in(json, {});
  if (in.failure()) return Unexpected{*in.failure()};
  return json_plan(plan_repair(reader, env.config, env.clock.wall_ms()));
}

Expected<WriteStep, Failure> prepare_apply(const OpEnv& env, const Json& json) {
  Input in(json, {"plan", "reason", "by"});
  const PostingContext context{.config = env.config,
                               .now = env.clock.wall_ms(),
                               .actor = read_by(in, env),
                               .reason = read_note(in, "reason")};
  if (in.failure()) return Unexpected{*in.failure()};
  const auto given = json.find("plan");
  if (given == json.end())
    return Unexpected{Failure{Exit::usage, "missing_option", "plan is missing", ""}};
  auto read = read_plan(*given);
  if (!read) return Unexpected{read.error()};
  return WriteStep([plan = std::move(*read), context](Store& store) -> Expected<OpResult, Failure> {
    const auto done = apply_repair(store, plan, context);
    if (!done) return Unexpected{done.error()};
    OpResult result;
    // An earlier application says what it did then.
    result.out = Json::parse(store.audit().repair(done->repair_id)->result);
    result.out["already_applied"] = done->already_applied;
    return result;
  });
}

Json json_repair(const RepairRow& row) {
  Json out = {{"repair_id", std::to_string(row.repair_id)},
              {"plan_hash", row.plan_hash},
              {"applied_at", json_time(row.applied_at)},
              {"actor", row.actor}};
  const Json result = Json::parse(row.result);
  for (const char* name :
       {"rows_appended", "periods_rebuilt", "invoices_held", "before", "after", "delta"})
    out[name] = result.value(name, Json(nullptr));
  return out;
}

Expected<Json, Failure> list(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"limit", "after"});
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const RepairRow& row : reader.audit().list_repairs(page)) {
    rows.push_back(json_repair(row));
    last = row.repair_id;
  }
  return json_page(std::move(rows), page, last);
}

Expected<Json, Failure> show(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"repair_id"});
  const std::int64_t id = in.id("repair_id");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto row = reader.audit().repair(id);
  if (!row)
    return Unexpected{Failure{Exit::not_found, "no_such_repair",
                              "there is no repair " + std::to_string(id),
                              "`aiq repair list` shows them"}};
  Json out = json_repair(*row);
  out["snapshot"] = Json::parse(row->snapshot);
  out["plan"] = Json::parse(row->plan);
  return out;
}

constexpr Op kOps[] = {
    {.name = "repair.plan", .read = plan, .local_only = true},
    {.name = "repair.apply", .prepare = prepare_apply},
    {.name = "repair.list", .read = list},
    {.name = "repair.show", .read = show},
};

}  // namespace

std::span<const Op> repair_ops() {
  return kOps;
}

}  // namespace aiq
