#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "core/base/check.h"
#include "core/base/names.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

constexpr std::array<std::string_view, 6> kReasons = {"rejected",      "attempts_exhausted",
                                                      "deadline",      "crash_limit",
                                                      "unknown_limit", "rate_limit_exhausted"};

// One operation is one short transaction.
constexpr std::size_t kLettersMost = 500;
constexpr std::int64_t kSpacingMost = 3'600'000'000;  // an hour
constexpr std::size_t kNoteBytes = 1000;

DeadLetterFilter read_filter(Input& in) {
  DeadLetterFilter out;
  out.tenant = in.text("tenant");
  out.model = in.text("model");
  out.vendor = in.text("vendor");
  out.reason = in.text("reason");
  if (!out.reason.empty() &&
      std::find(kReasons.begin(), kReasons.end(), out.reason) == kReasons.end())
    in.problem("invalid_reason", out.reason + " is no reason of a dead letter");
  out.error_class = in.text("class");
  if (!out.error_class.empty() && !parse_outcome(out.error_class))
    in.problem("invalid_class", out.error_class + " is no outcome of an attempt");
  out.correlation_id = in.text("correlation_id");
  std::tie(out.label_key, out.label_value) = in.label("label");
  out.since = in.instant("since");
  out.until = in.instant("until");
  out.state = in.maybe_text("state").value_or("open");
  if (out.state == "all")
    out.state = "";
  else if (out.state != "open" && out.state != "replayed" && out.state != "discarded")
    in.problem("invalid_state", out.state + " is none of open, replayed, discarded, all");
  return out;
}

Expected<Json, Failure> list_dead(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "model", "vendor", "reason", "class", "correlation_id", "label",
                  "since", "until", "state", "limit", "after"});
  const DeadLetterFilter filter = read_filter(in);
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const DeadLetter& letter : reader.list_dead_letters(filter, page)) {
    rows.push_back(json_dead_letter(letter));
    last = letter.dlq_id;
  }
  return json_page(std::move(rows), page, last);
}

Expected<Json, Failure> show_dead(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"dlq_id"});
  const std::int64_t id = in.id("dlq_id");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto letter = reader.dead_letter(id);
  if (!letter) return Unexpected{no_such_dead_letter(id)};
  Json out = json_dead_letter(*letter);
  if (const auto payload = reader.letter_payload(id)) {
    out["payload_text"] = json_body_text(payload->body);
    out["original_payload_text"] = json_body_text(payload->original);
    out["payload_target"] = {{"vendor", payload->vendor},
                             {"model", payload->model},
                             {"endpoint", to_string(payload->endpoint)}};
  }
  // What came after this failure belongs to the next letter, or to the job.
  auto attempts = reader.attempts_of(letter->job_id);
  std::erase_if(attempts,
                [&](const AttemptRow& row) { return row.generation > letter->generation; });
  out["attempt_log"] = json_attempts(attempts);
  return out;
}

// ---- replay

using Replay = ReplayOutcome::Kind;

std::vector<std::int64_t> read_letter_ids(Input& in) {
  std::vector<std::int64_t> ids;
  for (const std::string& text : in.texts("ids")) {
    const auto id = parse_id(text);
    if (!id) in.problem("invalid_id", text + " is not the id of a dead letter");
    ids.push_back(id.value_or(0));
  }
  if (ids.empty()) in.problem("missing_option", "no dead letter is named");
  if (ids.size() > kLettersMost)
    in.problem("invalid_option",
               "more than " + std::to_string(kLettersMost) + " dead letters in one operation");
  return ids;
}

const char* replay_name(Replay kind) {
  switch (kind) {
    case Replay::replayed:
      return "replayed";
    case Replay::already_resolved:
      return "already_resolved";
    case Replay::duplicate:
      return "duplicate";
    case Replay::not_found:
      return "not_found";
  }
  AIQ_CHECK(false);
}

// Counts and one row per letter, in the order of the ids.
class ReplayReport {
 public:
  void add(std::int64_t dlq_id, const ReplayOutcome& outcome) {
    const bool done = outcome.kind == Replay::replayed;
    ++(done ? replayed_ : skipped_);
    jobs_.push_back({{"dlq_id", json_id(dlq_id)},
                     {"job_id", json_id(outcome.job_id)},
                     {"generation", outcome.generation},
                     {"outcome", replay_name(outcome.kind)},
                     {"duplicate_of",
                      outcome.duplicate_of != 0 ? json_id(outcome.duplicate_of) : Json(nullptr)}});
  }
  [[nodiscard]] Json json() && {
    return {{"replayed", replayed_}, {"skipped", skipped_}, {"jobs", std::move(jobs_)}};
  }

 private:
  int replayed_ = 0, skipped_ = 0;
  Json jobs_ = Json::array();
};

Expected<Json, Failure> preview_replay(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"ids"});
  const auto ids = read_letter_ids(in);
  if (in.failure()) return Unexpected{*in.failure()};
  ReplayReport report;
  for (const std::int64_t id : ids) {
    const ReplayOutcome outcome = reader.preview_replay(id);
    if (outcome.kind == Replay::not_found) return Unexpected{no_such_dead_letter(id)};
    report.add(id, outcome);
  }
  return std::move(report).json();
}

// `run_at` is the due time of the first id; each further one is due `spacing_us` later.
Expected<WriteStep, Failure> prepare_replay(const OpEnv& env, const Json& json) {
  Input in(json, {"ids", "run_at", "spacing_us", "deadline", "note"});
  const auto ids = read_letter_ids(in);
  const auto run_at = in.instant("run_at");
  const std::int64_t spacing_us = in.whole("spacing_us", 0, kSpacingMost).value_or(0);
  const auto deadline = in.instant("deadline");
  const std::string note = in.text("note");
  if (!is_plain_text(note, kNoteBytes))
    in.problem("invalid_note", "the note is too long, or has control characters");
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep(
      [=, actor = env.actor, &clock = env.clock](Store& store) -> Expected<OpResult, Failure> {
        // An unknown one is found before anything is written.
        for (const std::int64_t id : ids) {
          if (!store.dead_letter(id)) return Unexpected{no_such_dead_letter(id)};
        }
        const UnixMs now = clock.wall_ms();
        ReplayReport report;
        std::int64_t replayed = 0;
        for (const std::int64_t id : ids) {
          const UnixMs due = run_at.value_or(now) + replayed * spacing_us / 1000;
          const ReplayOutcome outcome = store.replay({.dlq_id = id,
                                                      .now = now,
                                                      .run_at = due,
                                                      .deadline = deadline,
                                                      .actor = actor,
                                                      .note = note});
          if (outcome.kind == Replay::replayed) ++replayed;
          report.add(id, outcome);
        }
        OpResult result;
        result.out = std::move(report).json();
        return result;
      });
}

// ---- discard

Expected<WriteStep, Failure> prepare_discard(const OpEnv& env, const Json& json) {
  Input in(json, {"ids", "note"});
  const auto ids = read_letter_ids(in);
  const std::string note = in.required_text("note");
  if (!is_plain_text(note, kNoteBytes))
    in.problem("invalid_note", "the note is too long, or has control characters");
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([ids, note, actor = env.actor,
                    &clock = env.clock](Store& store) -> Expected<OpResult, Failure> {
    // All or none.
    for (const std::int64_t id : ids) {
      const auto letter = store.dead_letter(id);
      if (!letter) return Unexpected{no_such_dead_letter(id)};
      if (letter->state != "open")
        return Unexpected{
            Failure{Exit::conflict, "already_resolved",
                    "dead letter " + std::to_string(id) + " was " + letter->state + " before",
                    "nothing was discarded"}};
    }
    const UnixMs now = clock.wall_ms();
    OpResult result;
    Json rows = Json::array();
    for (const std::int64_t id : std::set<std::int64_t>(ids.begin(), ids.end())) {
      AIQ_CHECK(store.discard(id, actor, note, now) == Store::DiscardOutcome::discarded);
      const auto letter = store.dead_letter(id);
      rows.push_back(
          {{"dlq_id", json_id(id)}, {"job_id", json_id(letter->job_id)}, {"state", letter->state}});
    }
    result.out = {{"discarded", rows.size()}, {"rows", std::move(rows)}};
    return result;
  });
}

// ---- stats

Expected<Json, Failure> stats_of_dead(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {});
  if (in.failure()) return Unexpected{*in.failure()};
  Json out = {{"open", 0}};
  for (const char* by : {"by_class", "by_reason", "by_model", "by_tenant"})
    out[by] = Json::array();
  std::int64_t open = 0;
  for (const DeadLetterGroup& group : reader.dead_letter_groups()) {
    if (group.by == "reason") open += group.count;
    out["by_" + group.by].push_back({{group.by, json_text(group.name)},
                                     {"count", group.count},
                                     {"oldest_dead_at", json_time(group.oldest)},
                                     {"newest_dead_at", json_time(group.newest)}});
  }
  out["open"] = open;
  return out;
}

constexpr Op kOps[] = {
    {.name = "dlq.list", .read = list_dead},
    {.name = "dlq.show", .read = show_dead},
    {.name = "dlq.stats", .read = stats_of_dead},
    {.name = "dlq.replay.preview", .read = preview_replay},
    {.name = "dlq.replay", .prepare = prepare_replay},
    {.name = "dlq.discard", .prepare = prepare_discard},
};

}  // namespace

Failure no_such_dead_letter(std::int64_t dlq_id) {
  return {Exit::not_found, "no_such_dead_letter",
          "there is no dead letter " + std::to_string(dlq_id),
          "the id is the dlq_id of `aiq dlq list`, not the job's"};
}

std::span<const Op> dlq_ops() {
  return kOps;
}

}  // namespace aiq
