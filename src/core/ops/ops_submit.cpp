#include <limits>

#include "core/money/estimate.h"
#include "core/money/pricing.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

// The receipt's outcomes that say no.
std::optional<Failure> failure_of_outcome(SubmitReceipt::Outcome outcome,
                                          const std::string& client_key) {
  if (outcome == SubmitReceipt::Outcome::key_conflict)
    return Failure{Exit::conflict, "key_conflict",
                   "idempotency key " + client_key + " belongs to another request",
                   "use a new key for a new request"};
  if (outcome == SubmitReceipt::Outcome::not_cached)
    return Failure{Exit::not_found, "not_cached", "no fresh answer is in the cache",
                   "leave out --only-if-cached to ask the vendor"};
  return std::nullopt;
}

const char* outcome_name(SubmitReceipt::Outcome outcome) {
  switch (outcome) {
    case SubmitReceipt::Outcome::created:
      return "created";
    case SubmitReceipt::Outcome::existing:
      return "existing";
    case SubmitReceipt::Outcome::cached:
      return "cached";
    case SubmitReceipt::Outcome::key_conflict:
      return "key_conflict";
    case SubmitReceipt::Outcome::not_cached:
      return "not_cached";
  }
  AIQ_CHECK(false);
}

// A bypassing request is never equal to another one: it has no derived key.
Json derived_key(const NewSubmission& submission) {
  return submission.cache.coalesce ? Json(submission.keys.idempotency_key) : Json(nullptr);
}

void add_warnings(Json& out, const std::vector<std::string>& warnings) {
  if (!warnings.empty()) out["warnings"] = warnings;
}

Expected<WriteStep, Failure> prepare_submit(const OpEnv& env, const Json& in) {
  auto input = submit_input_of(in);
  if (!input) return Unexpected{std::move(input).error()};
  auto prepared =
      prepare_submission(env.config, *input, env.actor, env.clock.wall_ms(), env.random);
  if (!prepared) return Unexpected{std::move(prepared).error()};
  return WriteStep([prepared = std::move(*prepared),
                    &clock = env.clock](Store& store) -> Expected<OpResult, Failure> {
    const NewSubmission& submission = prepared.submission;
    const SubmitReceipt receipt = store.submit(submission, clock.wall_ms());
    if (auto failure = failure_of_outcome(receipt.outcome, submission.client_key))
      return Unexpected{*failure};
    std::vector<std::string> warnings = prepared.warnings;
    if (receipt.rejected_before)
      warnings.push_back("the vendor rejected an equal request before: job " +
                         std::to_string(receipt.job_id) +
                         " is a dead letter; --resubmit sends it again");
    OpResult result;
    result.out = {{"job_id", json_id(receipt.job_id)},
                  {"submission_id", "s" + std::to_string(receipt.submission_id)},
                  {"outcome", outcome_name(receipt.outcome)},
                  {"status", to_string(receipt.status)},
                  {"stale", receipt.stale},
                  {"idempotency_key", derived_key(submission)},
                  {"cache_key", submission.keys.cache_key},
                  {"correlation_id", json_text(receipt.correlation_id)}};
    add_warnings(result.out, warnings);
    return result;
  });
}

// What it would cost at most; what is answered from the cache or shared costs nothing. nullopt: no
// price, or no limit of the output.
std::optional<Estimate> estimate_of(const OpEnv& env, Reader& reader,
                                    const PreparedSubmission& prepared,
                                    const SubmitPreview& preview, UnixMs now) {
  const NewSubmission& submission = prepared.submission;
  if (preview.outcome != SubmitReceipt::Outcome::created) return Estimate{};
  if (!prepared.output_limit) return std::nullopt;
  return estimate_cost(reader.prices(), {.vendor = price_vendor(env.config, submission.vendor),
                                         .model = submission.model,
                                         .at = now,
                                         .prompt_tokens = prepared.prompt_tokens_estimate,
                                         .output_tokens = *prepared.output_limit});
}

Expected<Json, Failure> preview_submit(const OpEnv& env, Reader& reader, const Json& in) {
  auto input = submit_input_of(in);
  if (!input) return Unexpected{std::move(input).error()};
  const UnixMs now = env.clock.wall_ms();
  auto prepared = prepare_submission(env.config, *input, env.actor, now, env.random);
  if (!prepared) return Unexpected{std::move(prepared).error()};
  const NewSubmission& submission = prepared->submission;
  const SubmitPreview preview = reader.preview(submission, now);
  if (auto failure = failure_of_outcome(preview.outcome, submission.client_key))
    return Unexpected{*failure};
  const auto estimate = estimate_of(env, reader, *prepared, preview, now);
  Json out = {{"outcome", outcome_name(preview.outcome)},
              {"job_id", preview.job_id ? json_id(*preview.job_id) : Json(nullptr)},
              {"stale", preview.stale},
              {"idempotency_key", derived_key(submission)},
              {"cache_key", submission.keys.cache_key},
              {"estimated_tokens",
               {{"input", prepared->prompt_tokens_estimate},
                {"output", json_number(prepared->output_limit)}}},
              {"estimated_cost", estimate ? Json(format_money(estimate->amount)) : Json(nullptr)},
              {"currency", json_text(estimate ? estimate->currency : "")},
              {"vendor", submission.vendor},
              {"model", submission.model},
              {"endpoint", to_string(submission.endpoint)}};
  add_warnings(out, prepared->warnings);
  return out;
}

constexpr Op kOps[] = {
    {.name = "submit", .prepare = prepare_submit, .priority = WritePriority::submit},
    {.name = "submit.preview", .read = preview_submit, .prefers_daemon = true},
};

}  // namespace

std::span<const Op> submit_ops() {
  return kOps;
}

Expected<SubmitInput, Failure> submit_input_of(const Json& json) {
  Input in(json, {"tenant",   "model",    "vendor",          "endpoint",       "prompt",
                  "request",  "system",   "max_tokens",      "temperature",    "priority",
                  "run_at",   "deadline", "idempotency_key", "scope",          "locale",
                  "safety",   "labels",   "correlation_id",  "max_attempts",   "ttl_ms",
                  "no_cache", "no_store", "bypass_cache",    "only_if_cached", "max_age_ms",
                  "resubmit", "delay_ms"});
  constexpr std::int64_t kAnyInt = std::numeric_limits<int>::max();
  SubmitInput out;
  out.tenant = in.maybe_text("tenant").value_or("default");
  out.model = in.text("model");
  out.vendor = in.text("vendor");
  if (const auto name = in.maybe_text("endpoint")) {
    out.endpoint = parse_endpoint(*name);
    if (!out.endpoint)
      in.problem("invalid_endpoint",
                 "endpoint " + *name + " is none of chat, embeddings, responses, messages");
  }
  out.request = in.maybe_text("request");
  out.prompt = in.maybe_text("prompt");
  out.system = in.maybe_text("system");
  out.max_tokens = in.whole("max_tokens", 1, std::numeric_limits<std::int64_t>::max());
  out.temperature = in.maybe_text("temperature");
  out.priority = static_cast<int>(in.whole("priority", kPriorityMin, kPriorityMax).value_or(0));
  out.run_at = in.instant("run_at");
  out.delay_ms = in.duration("delay_ms");
  if (out.run_at && out.delay_ms)
    in.problem("contradiction", "run_at and delay_ms exclude each other");
  out.deadline = in.instant("deadline");
  out.idempotency_key = in.text("idempotency_key");
  out.scope = in.text("scope");
  out.locale = in.text("locale");
  out.safety = in.text("safety");
  out.correlation_id = in.text("correlation_id");
  out.labels = in.labels("labels");
  if (const auto n = in.whole("max_attempts", 0, kAnyInt)) out.max_attempts = static_cast<int>(*n);
  out.ttl_ms = in.duration("ttl_ms");
  out.no_cache = in.flag("no_cache");
  out.no_store = in.flag("no_store");
  out.bypass_cache = in.flag("bypass_cache");
  out.only_if_cached = in.flag("only_if_cached");
  out.max_age_ms = in.duration("max_age_ms");
  out.resubmit = in.flag("resubmit");
  if (in.failure()) return Unexpected{*in.failure()};
  return out;
}

}  // namespace aiq
