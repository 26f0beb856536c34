#include "core/engine/attempt.h"

#include <optional>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/engine/rate_limits.h"

namespace aiq {

namespace {

// What the vendor's rate headers said, for `aiq vendor show`. Absent numbers are left out.
std::string rate_to_json(const RateReport& rate) {
  std::string json;
  const auto add = [&json](std::string_view name, const std::optional<std::int64_t>& value) {
    if (!value) return;
    json += json.empty() ? "{\"" : ",\"";
    json.append(name).append("\":").append(std::to_string(*value));
  };
  add("limit_requests", rate.limit_requests);
  add("remaining_requests", rate.remaining_requests);
  add("reset_requests_ms", rate.reset_requests_ms);
  add("limit_tokens", rate.limit_tokens);
  add("remaining_tokens", rate.remaining_tokens);
  add("reset_tokens_ms", rate.reset_tokens_ms);
  return json.empty() ? json : json + "}";
}

bool proves_vendor(Outcome outcome) {
  switch (outcome) {
    case Outcome::auth:
    case Outcome::vendor_quota:
    case Outcome::cancelled:
    case Outcome::released:
    case Outcome::lease_lost:
      return false;
    default:
      return true;
  }
}

std::string pause_reason(const LeasedJob& job, const AttemptResult& result) {
  std::string reason = result.outcome == Outcome::vendor_quota ? "spend limit at " : "refused by ";
  reason += job.lane.vendor;
  if (result.http_status) reason += " (HTTP " + std::to_string(*result.http_status) + ")";
  if (!result.error_message.empty()) reason += ": " + result.error_message;
  return reason;
}

std::string words_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown";
  }
}

void log_attempt(const LeasedJob& job, const AttemptClose& close, JobState status, bool held) {
  if (!log_enabled(LogLevel::info)) return;
  std::vector<LogField> fields{{"job_id", std::to_string(job.job_id)},
                               {"tenant", job.lane.tenant},
                               {"model", job.lane.model},
                               {"vendor", job.lane.vendor},
                               {"idempotency_key", job.idempotency_key},
                               {"generation", std::int64_t{job.generation}},
                               {"attempt", std::int64_t{job.attempt}},
                               {"status", std::string(held ? to_string(status) : "lease_lost")},
                               {"outcome", std::string(to_string(close.result.outcome))},
                               {"billed", std::string(to_string(close.result.billed))},
                               {"correlation_id", job.correlation_id}};
  if (close.result.total_ms) fields.push_back({"upstream_ms", *close.result.total_ms});
  if (close.result.outcome != Outcome::completed) {
    fields.push_back({"error_class", std::string(to_string(close.result.outcome))});
    if (!close.result.error_message.empty())
      fields.push_back({"error", close.result.error_message});
  }
  log_info(held ? "attempt ended" : "late answer kept, lease was lost", fields);
}

}  // namespace

AttemptRunner::AttemptRunner(Parts parts, std::function<void()> ended)
    : parts_(parts), ended_(std::move(ended)) {}

VendorCall AttemptRunner::call_of(const LeasedJob& job) const {
  VendorCall call;
  call.model = job.lane.model;
  call.endpoint = job.endpoint;
  call.body = job.body;
  const std::string prefix = std::to_string(job.job_id) + "." + std::to_string(job.generation);
  // The number stays after an attempt with an unknown bill, so that a vendor that knows the key
  // can answer it once; it rises after any explicit answer.
  call.idempotency_value = "aiq-" + prefix + "." + std::to_string(1 + job.explicit_answers);
  call.attempt_value = prefix + "." + std::to_string(job.attempt);
  return call;
}

void AttemptRunner::start(LeasedJob job) {
  auto running = std::make_shared<Running>();
  running->job = std::move(job);
  running->runtime = parts_.runtime.get();
  const std::string& token = running->job.token;
  {
    const std::lock_guard guard(mutex_);
    running_.emplace(token, running);
  }
  const VendorConfig* config = running->runtime->vendor(running->job.lane.vendor);
  const Vendor* vendor = config == nullptr ? nullptr : find_vendor(config->api);
  if (vendor == nullptr) {
    // The section went away between the lease and here (reload): nothing was sent.
    VendorReply reply;
    reply.result.outcome = Outcome::released;
    reply.result.billed = Billed::no;
    decide_and_close(running, std::move(reply));
    return;
  }
  if (vendor->in_process()) {
    decide_and_close(running, vendor->answer(call_of(running->job)));
    return;
  }
  // The lock is held over start(): `done` may run at once on a transfer thread and must find
  // the transfer's id in place.
  const std::lock_guard guard(mutex_);
  running->transfer = parts_.transport.start(
      [this, running, config, vendor] {
        HttpRequest request = vendor->encode(*config, call_of(running->job),
                                             running->runtime->credential(config->name));
        request.max_response_bytes = running->runtime->config.limits.response_bytes;
        return request;
      },
      [this, running](HttpResult result) { answered(running, result); });
  if (running->abort != Abort::none) parts_.transport.cancel(running->transfer);
}

void AttemptRunner::answered(const RunningPtr& running, const HttpResult& result) {
  const VendorConfig* config = running->runtime->vendor(running->job.lane.vendor);
  const Vendor* vendor = find_vendor(config->api);
  VendorReply reply = vendor->decode(call_of(running->job), result, parts_.clock.wall_ms());
  if (result.failure == HttpResult::Failure::cancelled) {
    const std::lock_guard guard(mutex_);
    if (running->abort == Abort::released) reply.result.outcome = Outcome::released;
  }
  decide_and_close(running, std::move(reply));
}

void AttemptRunner::decide_and_close(const RunningPtr& running, VendorReply reply) {
  const LeasedJob& job = running->job;
  auto close = std::make_shared<AttemptClose>();
  close->attempt_id = job.attempt_id;
  close->job_id = job.job_id;
  close->token = job.token;
  close->now = parts_.clock.wall_ms();
  close->result = std::move(reply.result);
  const auto vendor = running->runtime->config.vendors.find(job.lane.vendor);
  if (vendor != running->runtime->config.vendors.end())
    close->price_vendor = vendor->second.price_vendor;
  const AttemptResult& result = close->result;
  close->proves_vendor = proves_vendor(result.outcome);
  if (result.spent_vendor || result.spent_model) close->pause_reason = pause_reason(job, result);

  if (result.outcome == Outcome::cancelled || result.outcome == Outcome::lease_lost) {
    // The lease is gone: the store keeps what the attempt has to say and changes nothing else.
    close->next.step = NextStep::requeue;
    close->next.run_at = close->now;
    close->next.counters = job.counters;
  } else {
    close->next = decide_next({.outcome = result.outcome,
                               .billed = result.billed,
                               .retryable = result.retryable,
                               .retry_after_ms = result.retry_after_ms,
                               .started_at = job.started_at},
                              job.counters, running->runtime->config.retry, job.max_attempts,
                              job.deadline, close->now, parts_.random);
  }
  this->close(std::move(close), running, reply.rate);
}

EndedRequest AttemptRunner::ended_of(const Running& running, const AttemptClose& close,
                                     const RateReport& rate) {
  const LeasedJob& job = running.job;
  const AttemptResult& result = close.result;
  EndedRequest ended;
  ended.lane = job.lane;
  ended.outcome = result.outcome;
  ended.started_at = job.started_at;
  ended.sent = result.billed != Billed::no || result.http_status.has_value();
  ended.taken_tokens =
      tokens_of(running.runtime->config, job.lane.model, job.prompt_tokens, job.output_tokens);
  if (result.usage_state == UsageState::ok) {
    const Usage& usage = result.usage;
    ended.prompt_tokens = usage[Meter::input] + usage[Meter::cache_read] +
                          usage[Meter::cache_write_5m] + usage[Meter::cache_write_1h];
    ended.output_tokens = usage[Meter::output];
  }
  ended.output_limit = job.output_tokens;
  ended.rate = rate;
  return ended;
}

void AttemptRunner::close(std::shared_ptr<AttemptClose> close, RunningPtr running,
                          RateReport rate) {
  std::string rate_json = rate_to_json(rate);
  EndedRequest ended = ended_of(*running, *close, rate);
  auto outcome = std::make_shared<CloseOutcome>();
  parts_.writer.post(
      WritePriority::completion,
      [close, outcome, running, rate_json = std::move(rate_json),
       ended = std::move(ended)](Store& store) {
        *outcome = store.close_attempt(*close);
        learn_from(store, running->runtime->config, ended, close->now);
        if (!rate_json.empty()) store.note_rate(running->job.lane.vendor, rate_json, close->now);
      },
      [this, close, outcome, running, rate](std::exception_ptr error) {
        if (!error) return closed(close, running, *outcome);
        // A paid answer is never dropped because the disk is full: it waits in memory.
        log_error("answer could not be stored, trying again",
                  {{"job_id", std::to_string(close->job_id)}, {"error", words_of(error)}});
        const std::lock_guard guard(mutex_);
        unstored_.push_back({close, running, rate});
      });
}

void AttemptRunner::closed(const std::shared_ptr<AttemptClose>& close, const RunningPtr& running,
                           const CloseOutcome& outcome) {
  {
    const std::lock_guard guard(mutex_);
    running_.erase(close->token);
  }
  log_attempt(running->job, *close, outcome.status, outcome.held);
  ended_();
}

std::size_t AttemptRunner::retry_unstored() {
  std::vector<Unstored> again;
  {
    const std::lock_guard guard(mutex_);
    again.swap(unstored_);
  }
  for (Unstored& item : again) {
    close(std::move(item.close), std::move(item.running), item.rate);
  }
  return again.size();
}

void AttemptRunner::abort_lost(const std::string& token) {
  const std::lock_guard guard(mutex_);
  const auto found = running_.find(token);
  if (found == running_.end()) return;
  found->second->abort = Abort::lost;
  if (found->second->transfer != 0) parts_.transport.cancel(found->second->transfer);
}

void AttemptRunner::release_all() {
  const std::lock_guard guard(mutex_);
  for (auto& [token, running] : running_) {
    if (running->abort != Abort::none) continue;
    running->abort = Abort::released;
    if (running->transfer != 0) parts_.transport.cancel(running->transfer);
  }
}

std::size_t AttemptRunner::running() const {
  const std::lock_guard guard(mutex_);
  return running_.size();
}

std::vector<std::pair<JobId, std::string>> AttemptRunner::leases() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::pair<JobId, std::string>> leases;
  leases.reserve(running_.size());
  for (const auto& [token, running] : running_)
    leases.emplace_back(running->job.job_id, token);
  return leases;
}

bool AttemptRunner::holds(const std::string& token) const {
  const std::lock_guard guard(mutex_);
  return running_.contains(token);
}

}  // namespace aiq
