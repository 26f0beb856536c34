#include <array>
#include <limits>

#include "core/engine/retention.h"
#include "core/ops/op_groups.h"
#include "core/store/prune.h"

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

// ---- db.prune, db.prunable: one slice per call, since a pass may take minutes. Where it begins is
// the `next` of the slice before; absent: the beginning.

using Phase = PruneCursor::Phase;
constexpr std::array<std::pair<Phase, const char*>, 5> kPhases = {{{Phase::jobs, "jobs"},
                                                                   {Phase::attempts, "attempts"},
                                                                   {Phase::batches, "batches"},
                                                                   {Phase::client_keys, "keys"},
                                                                   {Phase::outbox, "events"}}};

Expected<PruneCursor, Failure> read_cursor(const Json& json) {
  Input in(json, {"phase", "after", "tenant", "client_key"});
  PruneCursor cursor;
  cursor.after = in.whole("after", 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
  cursor.tenant = in.text("tenant");
  cursor.client_key = in.text("client_key");
  const std::string wanted = in.text("phase");
  bool known = wanted.empty();
  for (const auto& [phase, name] : kPhases) {
    if (wanted != name) continue;
    cursor.phase = phase;
    known = true;
  }
  if (!known) in.problem("invalid_phase", wanted + " is no phase of db.prune");
  if (in.failure()) return Unexpected{*in.failure()};
  return cursor;
}

Json print_slice(const PruneSlice& slice) {
  Json next;
  for (const auto& [phase, name] : kPhases) {
    if (slice.next.phase != phase) continue;
    next = {{"phase", name},
            {"after", slice.next.after},
            {"tenant", json_text(slice.next.tenant)},
            {"client_key", json_text(slice.next.client_key)}};
  }
  const PruneCounts& counts = slice.counts;
  return {
      {"jobs", counts.jobs},       {"attempts", counts.attempts},       {"results", counts.results},
      {"batches", counts.batches}, {"client_keys", counts.client_keys}, {"events", counts.events},
      {"next", std::move(next)}};
}

Expected<Json, Failure> db_prunable(const OpEnv& env, Reader& reader, const Json& json) {
  const auto cursor = read_cursor(json);
  if (!cursor) return Unexpected{cursor.error()};
  return print_slice(
      reader.prunable(prune_rules(env.config.retention, env.clock.wall_ms()), *cursor));
}

Expected<WriteStep, Failure> db_prune(const OpEnv& env, const Json& json) {
  const auto cursor = read_cursor(json);
  if (!cursor) return Unexpected{cursor.error()};
  const PruneRules rules = prune_rules(env.config.retention, env.clock.wall_ms());
  return WriteStep([rules, from = *cursor](Store& store) -> Expected<OpResult, Failure> {
    return OpResult{print_slice(store.prune(rules, from)), {}};
  });
}

constexpr Op kOps[] = {
    {.name = "db.info", .read = db_info, .local_only = true},
    {.name = "db.check", .read = db_check, .local_only = true},
    {.name = "db.prune", .prepare = db_prune, .priority = WritePriority::maintenance},
    {.name = "db.prunable", .read = db_prunable, .prefers_daemon = true},
};

}  // namespace

std::span<const Op> db_ops() {
  return kOps;
}

}  // namespace aiq
