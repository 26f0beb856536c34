#include "core/ops/op_groups.h"

namespace aiq {
namespace {

Expected<Json, Failure> db_info(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {});
  if (in.failure()) return Unexpected{*in.failure()};
  const DbInfo info = reader.info();
  return Json{{"path", json_text(info.path)},
              {"sqlite_version", json_text(info.sqlite_version)},
              {"schema_version", info.schema_version},
              {"created_at", json_time(info.created_at)},
              {"bytes", info.page_size * info.page_count},
              {"page_size", info.page_size},
              {"page_count", info.page_count},
              {"free_pages", info.free_pages},
              {"wal_bytes", info.wal_bytes}};
}

Expected<Json, Failure> db_check(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {});
  if (in.failure()) return Unexpected{*in.failure()};
  Json problems = Json::array();
  for (const std::string& problem : reader.check())
    problems.push_back(json_text(problem));
  const bool ok = problems.empty();
  return Json{{"ok", ok}, {"problems", std::move(problems)}};
}

constexpr Op kOps[] = {
    {.name = "db.info", .read = db_info, .local_only = true},
    {.name = "db.check", .read = db_check, .local_only = true},
};

}  // namespace

std::span<const Op> db_ops() {
  return kOps;
}

}  // namespace aiq
