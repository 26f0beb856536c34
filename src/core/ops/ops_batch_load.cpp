// Taking in a file of requests: batch.begin, then batch.append for slices of its lines in order,
// then batch.finish. With `atomic` the lines are staged, and after batch.finish published them,
// batch.load makes jobs of them until it says that it is done; batch.drop removes what is not to
// be published. Each can be repeated, by the same or another client: lines go in once.

#include <algorithm>
#include <map>

#include "core/engine/batch.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

constexpr int kDropSlice = 2'000;
constexpr std::size_t kLinesMax = 4'096;  // of one slice

Failure no_such_batch(std::int64_t id) {
  return {Exit::not_found, "no_such_batch", "there is no batch b" + std::to_string(id),
          "`aiq batch list` shows what is there"};
}

std::int64_t required_batch(Input& in) {
  const auto id = in.batch_id("batch_id");
  if (!id) in.problem("missing_option", "batch_id is missing");
  return id.value_or(0);
}

Json progress_of(const BatchRow& b) {
  return {{"batch_id", json_batch_id(b.batch_id)},
          {"state", to_string(b.state)},
          {"atomic", b.stage_id.has_value()},
          {"correlation_id", b.correlation_id},
          {"read_to", b.read_to},
          {"lines", b.lines},
          {"created", b.created},
          {"existing", b.existing},
          {"cached", b.cached},
          {"rejected", b.rejected}};
}

Expected<SubmitInput, Failure> options_of(const Json& json) {
  const auto found = json.find("options");
  auto options = submit_input_of(found == json.end() ? Json::object() : *found);
  if (options && (options->request || options->prompt || !options->idempotency_key.empty()))
    return Unexpected{
        Failure{Exit::usage, "contradiction", "a request and its key do not go with a batch", ""}};
  return options;
}

Expected<WriteStep, Failure> prepare_begin(const OpEnv& env, const Json& json) {
  Input in(json, {"options", "fingerprint", "idempotency_key", "atomic", "repeatable"});
  auto options = options_of(json);
  if (!options) return Unexpected{std::move(options).error()};
  NewBatch batch;
  batch.tenant = options->tenant;
  batch.client_key = in.text("idempotency_key");
  batch.fingerprint = in.required_text("fingerprint");
  batch.atomic = in.flag("atomic");
  batch.actor = env.actor;
  if (batch.fingerprint.size() != 64 ||
      batch.fingerprint.find_first_not_of("0123456789abcdef") != std::string::npos)
    in.problem("invalid_option", "fingerprint: expected 64 hexadecimal digits");
  if (in.failure()) return Unexpected{*in.failure()};
  SubmitInput checked = *options;
  checked.idempotency_key = batch.client_key;
  if (auto failure = check_submission_options(env.config, checked, env.clock.wall_ms()))
    return Unexpected{std::move(*failure)};
  batch.correlation_id =
      options->correlation_id.empty() ? env.random.token() : options->correlation_id;
  return WriteStep([batch, &clock = env.clock](Store& store) -> Expected<OpResult, Failure> {
    const BatchOpened opened = store.batch_begin(batch, clock.wall_ms());
    if (opened.kind == BatchOpened::Kind::key_conflict)
      return Unexpected{
          Failure{Exit::conflict, "key_conflict",
                  "idempotency key " + batch.client_key + " belongs to another file or options",
                  "it is of batch b" + std::to_string(opened.batch.batch_id)}};
    OpResult result;
    result.out = progress_of(opened.batch);
    result.out["joined"] = opened.kind == BatchOpened::Kind::joined;
    return result;
  });
}

// A slice of lines as its input has it: [[number, text]], and what the client refused by itself:
// [[number, code, message]].
bool is_line(const Json& entry, std::size_t texts) {
  if (!entry.is_array() || entry.size() != texts + 1 || !entry[0].is_number_integer()) return false;
  for (std::size_t i = 1; i <= texts; ++i)
    if (!entry[i].is_string()) return false;
  return true;
}

const Json* array_of(const Json& json, const char* name, std::size_t texts, Input& in) {
  const auto found = json.find(name);
  if (found == json.end()) return nullptr;
  bool sound = found->is_array() && found->size() <= kLinesMax;
  if (sound)
    for (const Json& entry : *found)
      sound = sound && is_line(entry, texts);
  if (!sound) in.problem("invalid_option", std::string(name) + ": expected an array of lines");
  return sound ? &*found : nullptr;
}

struct CheckedSlice {
  BatchSlice slice;
  std::map<std::string, int> warnings;  // how many lines have each
};

Expected<CheckedSlice, Failure> check_lines(const OpEnv& env, const Json& json, Input& in,
                                            bool staged) {
  auto options = options_of(json);
  if (!options) return Unexpected{std::move(options).error()};
  const Json* lines = array_of(json, "lines", 1, in);
  const Json* refused = array_of(json, "refused", 2, in);
  if (in.failure()) return Unexpected{*in.failure()};
  const BatchContext context{.config = env.config,
                             .options = *options,
                             .actor = env.actor,
                             .now = env.clock.wall_ms(),
                             .random = env.random};
  CheckedSlice out;
  std::vector<std::string> warnings;
  if (lines != nullptr) {
    for (const Json& entry : *lines) {
      warnings.clear();
      BatchLine line = check_batch_line(context, entry[0].get<std::int64_t>(),
                                        entry[1].get_ref<const std::string&>(), warnings);
      if (staged && line.code.empty()) line.staged = print_staged(line);
      out.slice.lines.push_back(std::move(line));
      for (const std::string& warning : warnings)
        ++out.warnings[warning];
    }
  }
  if (refused != nullptr) {
    for (const Json& entry : *refused) {
      BatchLine& line = out.slice.lines.emplace_back();
      line.line = entry[0].get<std::int64_t>();
      line.code = entry[1].get<std::string>();
      line.message = entry[2].get<std::string>();
    }
  }
  std::sort(out.slice.lines.begin(), out.slice.lines.end(),
            [](const BatchLine& a, const BatchLine& b) { return a.line < b.line; });
  return out;
}

bool is_in_order(const BatchSlice& slice) {
  std::int64_t before = slice.first - 1;
  for (const BatchLine& line : slice.lines) {
    if (line.line <= before || line.line > slice.last) return false;
    before = line.line;
  }
  return true;
}

Expected<WriteStep, Failure> prepare_append(const OpEnv& env, const Json& json) {
  Input in(json, {"batch_id", "first", "last", "lines", "refused", "options", "staged"});
  const std::int64_t id = required_batch(in);
  const std::int64_t first = in.whole("first", 1, INT64_MAX).value_or(0);
  const std::int64_t last = in.whole("last", 0, INT64_MAX).value_or(0);
  const bool staged = in.flag("staged");
  auto checked = check_lines(env, json, in, staged);
  if (!checked) return Unexpected{std::move(checked).error()};
  BatchSlice& slice = checked->slice;
  slice.batch_id = id;
  slice.first = first;
  slice.last = last;
  if (!is_in_order(slice)) in.problem("invalid_option", "lines: expected once each, in a slice");
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([checked = std::move(*checked), staged,
                    &clock = env.clock](Store& store) -> Expected<OpResult, Failure> {
    const std::int64_t batch_id = checked.slice.batch_id;
    const auto before = store.batches().find(batch_id);
    if (!before) return Unexpected{no_such_batch(batch_id)};
    if (before->state == BatchState::staging && !staged)
      return Unexpected{Failure{Exit::usage, "contradiction", "the batch is staged", ""}};
    const auto after = store.batch_append(checked.slice, clock.wall_ms());
    OpResult result;
    result.out = progress_of(after.value());
    result.out["notes"] = checked.warnings;
    return result;
  });
}

using BatchStep = Expected<OpResult, Failure> (*)(Store& store, std::int64_t id, UnixMs now);

template <BatchStep step>
Expected<WriteStep, Failure> prepare_step(const OpEnv& env, const Json& json) {
  Input in(json, {"batch_id"});
  const std::int64_t id = required_batch(in);
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep(
      [id, &clock = env.clock](Store& store) { return step(store, id, clock.wall_ms()); });
}

Expected<OpResult, Failure> finish(Store& store, std::int64_t id, UnixMs now) {
  const auto batch = store.batch_finish(id, now);
  if (!batch) return Unexpected{no_such_batch(id)};
  return OpResult{progress_of(*batch), {}};
}

Expected<OpResult, Failure> load(Store& store, std::int64_t id, UnixMs now) {
  const bool more = load_staged(store, id, now);
  const auto batch = store.batches().find(id);
  if (!batch) return Unexpected{no_such_batch(id)};
  OpResult result{progress_of(*batch), {}};
  result.out["done"] = !more;
  return result;
}

Expected<OpResult, Failure> drop(Store& store, std::int64_t id, UnixMs) {
  OpResult result;
  result.out["done"] = store.batch_drop(id, kDropSlice);
  return result;
}

// What a slice would come to: counts, refused lines, and the custom ids of the others.
Expected<Json, Failure> preview(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"lines", "refused", "options"});
  auto checked = check_lines(env, json, in, false);
  if (!checked) return Unexpected{std::move(checked).error()};
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  for (const BatchLine& line : checked->slice.lines) {
    Json row = {{"line", line.line}, {"code", nullptr}, {"message", nullptr}};
    if (line.code.empty()) {
      const auto would = reader.preview(*line.submission, env.clock.wall_ms()).outcome;
      row["custom_id"] = line.custom_id;
      row["outcome"] = would == SubmitReceipt::Outcome::created    ? "created"
                       : would == SubmitReceipt::Outcome::existing ? "existing"
                       : would == SubmitReceipt::Outcome::cached   ? "cached"
                                                                   : "not_cached";
    } else {
      row["code"] = line.code;
      row["message"] = line.message;
    }
    rows.push_back(std::move(row));
  }
  return Json{{"rows", std::move(rows)}, {"notes", checked->warnings}};
}

constexpr Op kOps[] = {
    {.name = "batch.begin", .prepare = prepare_begin, .priority = WritePriority::submit},
    {.name = "batch.append", .prepare = prepare_append, .priority = WritePriority::submit},
    {.name = "batch.finish", .prepare = prepare_step<finish>, .priority = WritePriority::submit},
    {.name = "batch.load", .prepare = prepare_step<load>, .priority = WritePriority::submit},
    {.name = "batch.drop", .prepare = prepare_step<drop>, .priority = WritePriority::submit},
    {.name = "batch.preview", .read = preview, .prefers_daemon = true},
};

}  // namespace

std::span<const Op> batch_load_ops() {
  return kOps;
}

}  // namespace aiq
