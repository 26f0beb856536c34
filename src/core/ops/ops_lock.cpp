#include "core/ops/op_groups.h"

namespace aiq {
namespace {

Expected<Json, Failure> list_locks(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {});
  if (in.failure()) return Unexpected{*in.failure()};
  const UnixMs now = env.clock.wall_ms();
  Json rows = Json::array();
  for (const LockRow& lock : reader.list_locks())
    rows.push_back(json_lock(lock, now));
  return Json{{"rows", std::move(rows)}, {"next_after", nullptr}};
}

Expected<WriteStep, Failure> prepare_break(const OpEnv&, const Json& json) {
  Input in(json, {"name"});
  const std::string name = in.required_text("name");
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([name](Store& store) -> Expected<OpResult, Failure> {
    if (!store.break_lock(name))
      return Unexpected{Failure{Exit::not_found, "no_such_lock", "there is no lock " + name,
                                "`aiq lock list` shows them"}};
    OpResult result;
    result.out = {{"broken", name}};
    return result;
  });
}

constexpr Op kOps[] = {
    {.name = "lock.list", .read = list_locks},
    {.name = "lock.break", .prepare = prepare_break},
};

}  // namespace

std::span<const Op> lock_ops() {
  return kOps;
}

}  // namespace aiq
