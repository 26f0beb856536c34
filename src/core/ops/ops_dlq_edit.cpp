#include "core/engine/edit.h"

#include "core/ops/op_groups.h"

namespace aiq {
namespace {

Failure already_resolved(const DeadLetter& letter) {
  return {Exit::conflict, "already_resolved",
          "dead letter " + std::to_string(letter.dlq_id) + " was " + letter.state + " before",
          "only open ones can be changed"};
}

// [{"pointer":"/a","value":"JSON text"}, ...]
std::vector<PointerValue> read_set(const Json& json, Input& in) {
  std::vector<PointerValue> out;
  const auto list = json.find("set");
  if (list == json.end() || list->is_null()) return out;
  if (!list->is_array()) in.problem("invalid_set", "set is not an array");
  for (const Json& item : *list) {
    const bool pair = item.is_object() && item.size() == 2 && item.contains("pointer") &&
                      item.contains("value") && item["pointer"].is_string() &&
                      item["value"].is_string();
    if (!pair) {
      in.problem("invalid_set", "set holds something else than {\"pointer\",\"value\"} with texts");
      return out;
    }
    out.push_back({item["pointer"].get<std::string>(), item["value"].get<std::string>()});
  }
  return out;
}

Json print_edit(const DeadLetter& letter, const DeadLetterEdit& edit, const std::string& key,
                const std::vector<std::string>& warnings) {
  Json out = {{"dlq_id", json_id(letter.dlq_id)},
              {"job_id", json_id(letter.job_id)},
              {"generation", letter.generation},
              {"vendor", edit.vendor},
              {"model", edit.model},
              {"endpoint", to_string(edit.endpoint)},
              {"idempotency_key", json_text(key)},
              {"cache_key", json_text(edit.keys.cache_key)}};
  if (!warnings.empty()) out["warnings"] = warnings;
  return out;
}

void add_outcome(Json& out, const ReplayOutcome& outcome) {
  const bool replayed = outcome.kind == ReplayOutcome::Kind::replayed;
  out["generation"] = outcome.generation;
  out["outcome"] = replayed ? "replayed" : "duplicate";
  out["duplicate_of"] = replayed ? Json(nullptr) : json_id(outcome.duplicate_of);
}

struct EditStep {
  std::int64_t dlq_id = 0;
  EditInput input;
  bool replay = false;
  const Config& config;
  Clock& clock;
  Random& random;
  std::string actor;

  // Reads what it changes in the transaction that changes it: of two edits, the later one sees the
  // earlier.
  Expected<OpResult, Failure> operator()(Store& store) const {
    const auto letter = store.dead_letter(dlq_id);
    if (!letter) return Unexpected{no_such_dead_letter(dlq_id)};
    if (letter->state != "open") return Unexpected{already_resolved(*letter)};
    const auto payload = store.letter_payload(dlq_id);
    const auto job = store.job(letter->job_id);
    AIQ_CHECK(payload && job);
    if (job->kind == JobKind::refresh)
      return Unexpected{Failure{Exit::usage, "not_editable",
                                "job " + std::to_string(letter->job_id) +
                                    " renews a cache entry: it can only ask what the entry answers",
                                "submit the changed request as a job of its own"}};
    std::vector<std::string> warnings;
    auto edit =
        prepare_edit(config, letter->tenant, *payload, input, clock.wall_ms(), random, warnings);
    if (!edit) return Unexpected{std::move(edit).error()};
    edit->dlq_id = dlq_id;
    edit->actor = actor;
    AIQ_CHECK(store.edit_dead_letter(*edit) == Store::EditOutcome::edited);
    ReplayOutcome outcome;
    if (replay) {
      // Atomic with the edit; a duplicate stays a mended open letter.
      outcome = store.replay({.dlq_id = dlq_id,
                              .now = edit->now,
                              .run_at = edit->now,
                              .deadline = std::nullopt,
                              .actor = actor,
                              .note = ""});
    }
    const std::string key = job->idempotency_key.empty() ? "" : edit->keys.idempotency_key;
    OpResult result{print_edit(*letter, *edit, key, warnings), {}};
    if (replay) add_outcome(result.out, outcome);
    return result;
  }
};

Expected<WriteStep, Failure> prepare_dlq_edit(const OpEnv& env, const Json& json) {
  Input in(json, {"dlq_id", "set", "request", "model", "vendor", "replay"});
  EditInput input;
  const std::int64_t id = in.id("dlq_id");
  input.set = read_set(json, in);
  input.request = in.maybe_text("request");
  input.model = in.text("model");
  input.vendor = in.text("vendor");
  const bool replay = in.flag("replay");
  if (in.failure()) return Unexpected{*in.failure()};
  if (auto failure = check_edit(input)) return Unexpected{*failure};
  return WriteStep(
      EditStep{id, std::move(input), replay, env.config, env.clock, env.random, env.actor});
}

constexpr Op kOps[] = {
    {.name = "dlq.edit", .prepare = prepare_dlq_edit},
};

}  // namespace

std::span<const Op> dlq_edit_ops() {
  return kOps;
}

}  // namespace aiq
