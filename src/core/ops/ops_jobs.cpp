#include <tuple>

#include "core/money/job_cost.h"
#include "core/ops/op_groups.h"
#include "core/vendor/vendor.h"

namespace aiq {
namespace {

Failure no_such_job(const std::string& id) {
  return {Exit::not_found, "no_such_job", "there is no job " + id, ""};
}

Expected<Json, Failure> list_jobs(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"status", "tenant", "model", "vendor", "label", "correlation_id", "since",
                  "until", "limit", "after", "batch_id"});
  JobFilter filter;
  filter.batch_id = in.batch_id("batch_id");
  if (const auto name = in.maybe_text("status")) {
    filter.status = parse_job_state(*name);
    if (!filter.status)
      in.problem("invalid_status", *name +
                                       " is none of queued, processing, retrying, completed, "
                                       "failed, dead_lettered, cancelled");
  }
  filter.tenant = in.text("tenant");
  filter.model = in.text("model");
  filter.vendor = in.text("vendor");
  filter.correlation_id = in.text("correlation_id");
  std::tie(filter.label_key, filter.label_value) = in.label("label");
  filter.since = in.instant("since");
  filter.until = in.instant("until");
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};

  Json rows = Json::array();
  JobId last = 0;
  for (const JobRow& job : reader.list_jobs(filter, page)) {
    rows.push_back(json_job(job));
    last = job.job_id;
  }
  return json_page(std::move(rows), page, last);
}

Json json_cost(const std::optional<JobCost>& cost) {
  if (!cost) return nullptr;
  return {{"amount", cost->amount ? Json(format_money(*cost->amount)) : Json(nullptr)},
          {"currency", json_text(cost->currency)},
          {"posted", cost->posted}};
}

Expected<Json, Failure> show_job(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"job_id", "result"});
  const JobId id = in.id("job_id");
  const bool with_result = in.flag("result");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto job = reader.job(id);
  if (!job) return Unexpected{no_such_job(std::to_string(id))};
  Json out = json_job(*job);
  out["cost"] = json_cost(job_cost(env.config, reader, *job));
  out["attempt_log"] = json_attempts(reader.attempts_of(id));
  if (with_result) {
    const auto body = job->result_id ? reader.result_body(*job->result_id) : std::nullopt;
    out["result_text"] = json_body_text(body);
  }
  return out;
}

Failure no_result(const JobRow& job) {
  const std::string id = std::to_string(job.job_id);
  std::string message = "job " + id + " has no result: it is " + std::string(to_string(job.status));
  std::string hint;
  if (job.status == JobState::dead_lettered) {
    if (!job.error_class.empty()) message += " (" + job.error_class;
    if (!job.error_class.empty() && !job.error_message.empty()) message += ": " + job.error_message;
    if (!job.error_class.empty()) message += ")";
    hint = "`aiq show " + id + "` tells what happened";
  } else if (job.status == JobState::cancelled) {
    hint = "`aiq cancel` ended it; submit it again if it is still wanted";
  } else if (is_live(job.status)) {
    hint = "`aiq wait " + id + "` waits for it";
  }
  return {Exit::no, "no_result", message, hint};
}

// The answer's text, by the adapter that knows this body: the vendor's own, or else any that
// reads it (a vendor that is no longer configured).
Json answer_text(const Config& config, const JobRow& job, const std::string& body) {
  std::string api = job.endpoint == Endpoint::messages ? "anthropic" : "openai";
  const auto section = config.vendors.find(job.vendor);
  if (section != config.vendors.end()) api = section->second.api;
  const Vendor* adapter = find_vendor(api);
  if (adapter == nullptr) return nullptr;
  const auto text = adapter->answer_text(job.endpoint, body);
  if (!text) return nullptr;
  return text->empty() ? Json("") : json_text(*text);
}

Expected<Json, Failure> result_of_job(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"job_id"});
  const JobId id = in.id("job_id");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto job = reader.job(id);
  if (!job) return Unexpected{no_such_job(std::to_string(id))};
  if (!job->result_id) return Unexpected{no_result(*job)};
  const auto body = reader.result_body(*job->result_id);
  if (!body) return Unexpected{no_result(*job)};
  return Json{{"job_id", json_id(id)},
              {"status", to_string(job->status)},
              {"endpoint", to_string(job->endpoint)},
              {"body", json_text(*body)},
              {"text", answer_text(env.config, *job, *body)},
              {"result_source", json_text(job->result_source)},
              {"stale", job->stale}};
}

// What `aiq cancel` names: a job, or one of its submissions ("s17").
struct Named {
  std::string text;
  bool submission = false;
  std::int64_t id = 0;
};

using Withdrawal = Store::CancelOutcome;

struct CancelRequest {
  std::vector<Named> ids;
  bool force = false;
  SubmissionScope scope;  // of the submissions meant by a job id
};

// A job id means all of its submissions, or those in the scope; `force` means all in any case.
Withdrawal withdraw_one(Store& store, const Named& named, const CancelRequest& request,
                        UnixMs now) {
  const bool force = request.force;
  if (!named.submission)
    return force ? store.cancel(named.id, now) : store.withdraw_in(named.id, request.scope, now);
  const Withdrawal own = store.withdraw(named.id, now);
  if (!force || own.kind != Withdrawal::Kind::withdrawn) return own;
  return store.cancel(own.job_id, now);
}

const char* kind_name(Withdrawal::Kind kind) {
  switch (kind) {
    case Withdrawal::Kind::cancelled:
      return "cancelled";
    case Withdrawal::Kind::withdrawn:
      return "withdrawn";
    case Withdrawal::Kind::already_final:
      return "already_final";
    case Withdrawal::Kind::not_found:
      return "not_found";
  }
  AIQ_CHECK(false);
}

// All or nothing: the one that does not exist may come after others were withdrawn.
Expected<OpResult, Failure> cancel_all(Store& store, const CancelRequest& request, UnixMs now) {
  OpResult result;
  Json rows = Json::array();
  store.savepoint();
  for (const Named& named : request.ids) {
    const Withdrawal done = withdraw_one(store, named, request, now);
    if (done.kind == Withdrawal::Kind::not_found) {
      store.rollback_to();
      return Unexpected{named.submission ? Failure{Exit::not_found, "no_such_submission",
                                                   "there is no submission " + named.text, ""}
                                         : no_such_job(named.text)};
    }
    if (!done.lost_token.empty()) result.lost_leases.emplace_back(done.job_id, done.lost_token);
    rows.push_back({{"job_id", json_id(done.job_id)},
                    {"outcome", kind_name(done.kind)},
                    {"status", to_string(done.status)}});
  }
  store.release();
  result.out["rows"] = std::move(rows);
  return result;
}

Expected<WriteStep, Failure> prepare_cancel(const OpEnv& env, const Json& json) {
  Input in(json, {"ids", "force", "batch_id", "correlation_id"});
  CancelRequest request;
  std::vector<Named>& ids = request.ids;
  for (const std::string& text : in.texts("ids")) {
    const bool submission = text.starts_with('s');
    const auto id = parse_id(std::string_view(text).substr(submission ? 1 : 0));
    if (!id) in.problem("invalid_id", text + " is no job id (17) and no submission id (s17)");
    ids.push_back({text, submission, id.value_or(0)});
  }
  if (ids.empty()) in.problem("missing_option", "no job is named");
  request.force = in.flag("force");
  request.scope = {in.batch_id("batch_id"), in.text("correlation_id")};
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([request = std::move(request), &clock = env.clock](Store& store) {
    return cancel_all(store, request, clock.wall_ms());
  });
}

constexpr Op kOps[] = {
    {.name = "list", .read = list_jobs},
    {.name = "show", .read = show_job},
    {.name = "result", .read = result_of_job},
    {.name = "cancel", .prepare = prepare_cancel},
};

}  // namespace

std::span<const Op> job_ops() {
  return kOps;
}

}  // namespace aiq
