#include "core/base/redact.h"
#include "core/money/postings.h"
#include "core/money/usage_lines.h"
#include "core/ops/money_input.h"
#include "core/ops/money_render.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

// Of one call; `aiq` cuts a file into as many as it needs.
constexpr std::size_t kLinesPerCall = 500;

struct ParsedLine {
  std::int64_t number = 0;
  UsageEvent event;
};

Json line_error(std::int64_t number, const LineError& error) {
  return {{"line", number}, {"code", error.code}, {"message", redact(error.message)}};
}

Expected<WriteStep, Failure> prepare_import(const OpEnv& env, const Json& json) {
  Input in(json, {"lines", "first_line"});
  const std::vector<std::string> lines = in.texts("lines");
  const std::int64_t first = in.whole("first_line", 1, INT64_MAX / 2).value_or(1);
  if (lines.size() > kLinesPerCall)
    in.problem("too_many_lines", "one call takes at most 500 lines");
  if (in.failure()) return Unexpected{*in.failure()};
  const UnixMs now = env.clock.wall_ms();
  std::vector<ParsedLine> parsed;
  Json errors = Json::array();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::int64_t number = first + static_cast<std::int64_t>(i);
    if (lines[i].find_first_not_of(" \t\r") == std::string::npos) continue;
    auto event = parse_usage_line(lines[i], "", now);
    if (!event)
      errors.push_back(line_error(number, event.error()));
    else if (!accepts_tenant(env.config, event->tenant))
      errors.push_back(
          line_error(number, {"unknown_tenant", "tenant " + event->tenant + " is not configured"}));
    else
      parsed.push_back({number, std::move(*event)});
  }
  return WriteStep([parsed = std::move(parsed),
                    errors = std::move(errors)](Store& store) -> Expected<OpResult, Failure> {
    std::int64_t accepted = 0, duplicates = 0, conflicts = 0;
    OpResult result;
    Json details = errors;
    for (const ParsedLine& line : parsed) {
      switch (store.ledger().add_usage(line.event)) {
        case AddUsage::accepted:
          ++accepted;
          break;
        case AddUsage::duplicate:
          ++duplicates;
          break;
        case AddUsage::conflict:
          ++conflicts;
          details.push_back(line_error(
              line.number,
              {"event_id_conflict", "event " + line.event.event_id + " of tenant " +
                                        line.event.tenant + " is known with another payload"}));
          break;
      }
    }
    result.out = {{"accepted", accepted},
                  {"duplicates", duplicates},
                  {"conflicts", conflicts},
                  {"rejected", errors.size()},
                  {"errors", std::move(details)}};
    return result;
  });
}

Expected<Json, Failure> list_usage(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "model", "event_id", "since", "until", "state", "limit", "after"});
  UsageFilter filter;
  filter.tenant = in.text("tenant");
  filter.model = in.text("model");
  filter.event_id = in.text("event_id");
  filter.since = in.instant("since");
  filter.until = in.instant("until");
  filter.state = in.text("state");
  if (!filter.state.empty() && filter.state != "posted" && filter.state != "unposted" &&
      filter.state != "unpriced")
    in.problem("invalid_state", filter.state + " is none of posted, unposted, unpriced");
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const UsageRow& row : reader.ledger().list_usage(filter, page)) {
    rows.push_back(json_usage_row(row));
    last = row.event.usage_id;
  }
  return json_page(std::move(rows), page, last);
}

Expected<Json, Failure> list_conflicts(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"state", "limit", "after"});
  std::string state = in.maybe_text("state").value_or("open");
  if (state == "all")
    state = "";
  else if (state != "open" && state != "kept" && state != "replaced")
    in.problem("invalid_state", state + " is none of open, kept, replaced, all");
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const UsageConflict& conflict : reader.ledger().list_conflicts(state, page)) {
    rows.push_back(json_conflict(conflict));
    last = conflict.conflict_id;
  }
  return json_page(std::move(rows), page, last);
}

template <bool replace>
Expected<WriteStep, Failure> prepare_decision(const OpEnv& env, const Json& json) {
  Input in(json, {"conflict_id", "reason", "by"});
  const std::int64_t id = in.id("conflict_id");
  const PostingContext context{.config = env.config,
                               .now = env.clock.wall_ms(),
                               .actor = read_by(in, env),
                               .reason = read_note(in, "reason")};
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([id, context](Store& store) -> Expected<OpResult, Failure> {
    auto done = replace ? replace_conflict(store, id, context) : keep_conflict(store, id, context);
    if (!done) return Unexpected{done.error()};
    OpResult result;
    result.out = json_conflict(done->conflict);
    result.out["reversed"] = json_ids(done->reversed);
    result.out["posted"] = done->posted ? json_id(*done->posted) : Json(nullptr);
    return result;
  });
}

constexpr Op kOps[] = {
    {.name = "usage.import", .prepare = prepare_import, .priority = WritePriority::maintenance},
    {.name = "usage.list", .read = list_usage},
    {.name = "usage.conflicts.list", .read = list_conflicts},
    {.name = "usage.conflicts.keep", .prepare = prepare_decision<false>},
    {.name = "usage.conflicts.replace", .prepare = prepare_decision<true>},
};

}  // namespace

std::span<const Op> usage_ops() {
  return kOps;
}

}  // namespace aiq
