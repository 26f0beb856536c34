// What is known of batches: batch.list, show, counts, lines, errors, results, changes;
// batch.cancel.

#include "core/base/json_canonical.h"
#include "core/ops/op_groups.h"
#include "core/store/batches.h"

namespace aiq {
namespace {

constexpr std::int64_t kCountPage = 20'000;
constexpr std::int64_t kLinePage = 5'000;
constexpr int kResultLines = 500;
constexpr std::int64_t kResultBytes = std::int64_t{4} << 20U;

Failure no_such_batch(std::int64_t id) {
  return {Exit::not_found, "no_such_batch", "there is no batch b" + std::to_string(id),
          "`aiq batch list` shows what is there"};
}

// The page of a batch that an input asks for.
struct LinePage {
  std::int64_t batch_id = 0, after = 0;
  int limit = 0;
};

LinePage line_page(Input& in, std::int64_t most) {
  LinePage page;
  const auto id = in.batch_id("batch_id");
  if (!id) in.problem("missing_option", "batch_id is missing");
  page.batch_id = id.value_or(0);
  page.after = in.whole("after", 0, INT64_MAX).value_or(0);
  page.limit = static_cast<int>(in.whole("limit", 1, most).value_or(most));
  return page;
}

Json next_after(std::int64_t line) {
  return line == 0 ? Json(nullptr) : Json(line);
}

Json json_batch(const BatchRow& b) {
  return {{"batch_id", json_batch_id(b.batch_id)},
          {"created_at", json_time(b.created_at)},
          {"lines", b.lines},
          {"state", to_string(b.state)},
          {"tenant", b.tenant},
          {"idempotency_key", json_text(b.client_key)},
          {"correlation_id", json_text(b.correlation_id)},
          {"loaded_at", json_time(b.loaded_at)},
          {"created", b.created},
          {"existing", b.existing},
          {"cached", b.cached},
          {"rejected", b.rejected}};
}

Expected<Json, Failure> list(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"limit", "after"});
  Page page;
  page.limit = static_cast<int>(in.whole("limit", 1, 1000).value_or(100));
  page.after = in.batch_id("after").value_or(0);
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const BatchRow& batch : reader.batches().list(page)) {
    rows.push_back(json_batch(batch));
    last = batch.batch_id;
  }
  Json out = json_page(std::move(rows), page, last);
  if (!out["next_after"].is_null()) out["next_after"] = json_batch_id(last);
  return out;
}

Expected<Json, Failure> show(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"batch_id"});
  const LinePage page = line_page(in, 1);
  if (in.failure()) return Unexpected{*in.failure()};
  const auto batch = reader.batches().find(page.batch_id);
  if (!batch || batch->state == BatchState::staging)
    return Unexpected{no_such_batch(page.batch_id)};
  return json_batch(*batch);
}

Expected<Json, Failure> counts(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"batch_id", "after", "limit"});
  const LinePage page = line_page(in, kCountPage);
  if (in.failure()) return Unexpected{*in.failure()};
  const BatchCounts found = reader.batches().count(page.batch_id, page.after, page.limit);
  Json states = Json::object();
  for (std::size_t i = 0; i < found.lines.size(); ++i)
    states[std::string(to_string(static_cast<JobState>(i)))] = found.lines[i];
  if (found.pruned > 0) states["pruned"] = found.pruned;
  return Json{{"counts", std::move(states)}, {"next_after", next_after(found.next_after)}};
}

// Compact, for whoever waits for many: [line, job id or null, state or null].
Expected<Json, Failure> lines(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"batch_id", "after", "limit"});
  const LinePage page = line_page(in, kLinePage);
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const BatchLineRow& line : reader.batches().lines(page.batch_id, page.after, page.limit)) {
    const Json state = line.withdrawn ? Json(to_string(JobState::cancelled))
                       : line.state   ? Json(to_string(*line.state))
                                      : Json(nullptr);
    rows.push_back({line.line, line.job_id ? json_id(*line.job_id) : Json(nullptr), state});
    last = line.line;
  }
  const bool full = rows.size() == static_cast<std::size_t>(page.limit);
  return Json{{"rows", std::move(rows)}, {"next_after", next_after(full ? last : 0)}};
}

Expected<Json, Failure> errors(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"batch_id", "after", "limit"});
  const LinePage page = line_page(in, kLinePage);
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const BatchError& e : reader.batches().errors(page.batch_id, page.after, page.limit)) {
    rows.push_back({{"line", e.line}, {"code", e.code}, {"message", e.message}});
    last = e.line;
  }
  const bool full = rows.size() == static_cast<std::size_t>(page.limit);
  return Json{{"rows", std::move(rows)}, {"next_after", next_after(full ? last : 0)}};
}

// Jobs that ended after event `after`: [job id, state]. Without `after`: only where the events are.
Expected<Json, Failure> changes(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"after", "limit"});
  const auto after = in.whole("after", 0, INT64_MAX);
  const int limit = static_cast<int>(in.whole("limit", 1, kLinePage).value_or(kLinePage));
  if (in.failure()) return Unexpected{*in.failure()};
  if (!after) return Json{{"rows", Json::array()}, {"last", reader.last_event_id()}};
  Json rows = Json::array();
  std::int64_t last = *after;
  for (const OutboxRow& event : reader.events_after(*after, limit)) {
    last = event.event_id;
    const auto state = parse_job_state(event.to);
    if (state && !is_live(*state)) rows.push_back({json_id(event.job_id), event.to});
  }
  return Json{{"rows", std::move(rows)}, {"last", last}};
}

// ---- results: lines of OpenAI batch output

// JSON has line ends only between its tokens.
void append_on_one_line(std::string& out, std::string_view json) {
  for (const char c : json)
    if (c != '\n' && c != '\r') out += c;
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out += '"';
  out += name;
  out += "\":";
  append_json_string(out, text);
}

void append_response(std::string& out, int status, const BatchResult& result,
                     std::string_view body) {
  out += "\"response\":{\"status_code\":" + std::to_string(status) + ",";
  append_member(out, "request_id", result.vendor_request_id);
  out += ",\"body\":";
  append_on_one_line(out, body);
  out += "},\"error\":null}";
}

void append_error(std::string& out, std::string_view code, std::string_view message) {
  out += "\"response\":null,\"error\":{";
  append_member(out, "code", code);
  out += ',';
  append_member(out, "message", message);
  out += "}}";
}

// The vendor's own error body when all of it was kept, else one that says the same.
std::string error_body(const BatchResult& r) {
  if (r.excerpt.starts_with('{') && Json::accept(r.excerpt)) return r.excerpt;
  std::string out = "{\"error\":{";
  append_member(out, "message", r.error_message);
  out += ',';
  append_member(out, "code", r.error_code);
  return out + "}}";
}

void append_failure(std::string& out, const BatchResult& r) {
  if (r.dead_reason == "deadline") {
    append_error(out, "batch_expired", "the deadline passed before it completed");
  } else if (r.http_status && *r.http_status >= 300) {
    append_response(out, *r.http_status, r, error_body(r));
  } else if (r.error_class.ends_with("_timeout")) {
    append_error(out, "request_timeout", r.error_message);
  } else {
    append_error(out, r.error_class.empty() ? "failed" : r.error_class, r.error_message);
  }
}

Json result_row(std::int64_t batch_id, const BatchResult& r) {
  std::string text = "{";
  append_member(text, "id",
                "batch_req_" + std::to_string(batch_id) + "_" + std::to_string(r.line.line));
  text += ',';
  append_member(text, "custom_id", r.line.custom_id);
  text += ',';
  const bool completed = !r.line.withdrawn && r.line.state == JobState::completed;
  const bool answered = completed && !r.body.empty();
  if (answered) {
    append_response(text, 200, r, r.body);
  } else if (r.line.withdrawn || r.line.state == JobState::cancelled) {
    append_error(text, "batch_cancelled", "it was cancelled");
  } else if (completed || !r.line.state) {
    append_error(text, "result_pruned", "its result was removed by [retention]");
  } else {
    append_failure(text, r);
  }
  return {{"line", r.line.line}, {"completed", answered}, {"text", json_text(text)}};
}

Expected<Json, Failure> results(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"batch_id", "after", "limit"});
  const LinePage page = line_page(in, kResultLines);
  if (in.failure()) return Unexpected{*in.failure()};
  const auto found = reader.batches().results(page.batch_id, page.after, page.limit, kResultBytes);
  Json rows = Json::array();
  for (const BatchResult& result : found.rows)
    rows.push_back(result_row(page.batch_id, result));
  return Json{{"rows", std::move(rows)},
              {"open", found.open},
              {"next_after", next_after(found.next_after)}};
}

// ---- cancel

const char* outcome_name(Store::CancelOutcome::Kind kind) {
  using Kind = Store::CancelOutcome::Kind;
  return kind == Kind::cancelled   ? "cancelled"
         : kind == Kind::withdrawn ? "withdrawn"
                                   : "already_final";
}

// Of one page of lines, those that were not final.
Expected<OpResult, Failure> cancel_page(Store& store, const LinePage& page, bool force,
                                        UnixMs now) {
  if (!store.batches().find(page.batch_id)) return Unexpected{no_such_batch(page.batch_id)};
  OpResult result;
  Json rows = Json::array();
  const auto found = store.batches().lines(page.batch_id, page.after, page.limit);
  for (const BatchLineRow& line : found) {
    if (!line.job_id || line.withdrawn || !line.state || !is_live(*line.state)) continue;
    const auto done =
        force ? store.cancel(*line.job_id, now) : store.withdraw(line.submission_id, now);
    if (!done.lost_token.empty()) result.lost_leases.emplace_back(done.job_id, done.lost_token);
    rows.push_back({{"job_id", json_id(done.job_id)},
                    {"outcome", outcome_name(done.kind)},
                    {"status", to_string(done.status)},
                    {"custom_id", line.custom_id}});
  }
  const bool full = found.size() == static_cast<std::size_t>(page.limit);
  result.out = {{"rows", std::move(rows)},
                {"next_after", next_after(full ? found.back().line : 0)}};
  return result;
}

Expected<WriteStep, Failure> prepare_cancel(const OpEnv& env, const Json& json) {
  Input in(json, {"batch_id", "after", "limit", "force"});
  const LinePage page = line_page(in, kResultLines);
  const bool force = in.flag("force");
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([page, force, &clock = env.clock](Store& store) {
    return cancel_page(store, page, force, clock.wall_ms());
  });
}

constexpr Op kOps[] = {
    {.name = "batch.list", .read = list},       {.name = "batch.show", .read = show},
    {.name = "batch.counts", .read = counts},   {.name = "batch.lines", .read = lines},
    {.name = "batch.errors", .read = errors},   {.name = "batch.changes", .read = changes},
    {.name = "batch.results", .read = results}, {.name = "batch.cancel", .prepare = prepare_cancel},
};

}  // namespace

std::span<const Op> batch_ops() {
  return kOps;
}

}  // namespace aiq
