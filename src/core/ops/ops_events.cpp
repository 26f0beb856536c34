// events: what happened to jobs, in order. why: what a job waits for, or what became of it.

#include "core/engine/admission.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

constexpr int kEventsOfJob = 1000;
constexpr int kCountBefore = 1000;

Json json_event(const OutboxRow& event) {
  return {{"event_id", json_id(event.event_id)},
          {"at", json_time(event.at)},
          {"job_id", json_id(event.job_id)},
          {"from", json_text(event.from)},
          {"to", event.to},
          {"detail", json_text(event.detail)}};
}

// Oldest first. `next_after`: where to go on, also when nothing is there yet.
Expected<Json, Failure> list_events(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"after", "limit", "from_now"});
  const std::int64_t after = in.whole("after", 0, INT64_MAX).value_or(0);
  const auto limit = static_cast<int>(in.whole("limit", 1, 1000).value_or(1000));
  const bool from_now = in.flag("from_now");
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = from_now ? reader.last_event_id() : after;
  if (!from_now) {
    for (const OutboxRow& event : reader.events_after(after, limit)) {
      rows.push_back(json_event(event));
      last = event.event_id;
    }
  }
  const bool more = static_cast<int>(rows.size()) == limit;
  return Json{{"rows", std::move(rows)}, {"next_after", last}, {"more", more}};
}

// ---- why

std::optional<Block> held_by(Reader& reader, const JobRow& job) {
  const std::string name = "cache:" + job.cache_key;
  for (const LockRow& lock : reader.list_locks()) {
    if (lock.name != name) continue;
    return Block{"lock_held",
                 lock.job_id ? "job " + std::to_string(*lock.job_id) + " asks the same and runs"
                             : "its answer is being asked for",
                 std::nullopt};
  }
  return Block{"lock_held", "a job that asks the same has just ended", std::nullopt};
}

Block behind(int before) {
  const std::string count =
      before == kCountBefore ? "more than " + std::to_string(before - 1) : std::to_string(before);
  return {"behind_others",
          before == 0 ? "jobs of other lanes go first"
                      : count + (before == 1 ? " job" : " jobs") +
                            " of its tenant, vendor and model go first",
          std::nullopt};
}

std::vector<Block> blocks_of(const OpEnv& env, Reader& reader, const JobRow& job, UnixMs now) {
  std::vector<Block> blocks;
  if (job.wait == "time" && job.run_at > now) {
    blocks.push_back({"not_due",
                      job.status == JobState::retrying
                          ? "waits for its next attempt after " + job.error_class
                          : "is to start later",
                      job.run_at});
  }
  if (job.wait == "lock" || job.wait == "serve") {
    if (auto block = held_by(reader, job)) blocks.push_back(std::move(*block));
  }
  const StoreStats stats = reader.stats(now);
  AdmissionView view;
  view.running = stats.running;
  view.pauses = stats.pauses;
  view.holds = stats.holds;
  view.vendors = stats.vendors;
  view.rates = stats.rates;
  view.paces = stats.paces;
  view.breakers = stats.breakers;
  Admission admission(env.config, view, now);
  LaneHead own;
  own.lane = {.lane_id = 0, .tenant = job.tenant, .vendor = job.vendor, .model = job.model};
  own.prompt_tokens = job.prompt_tokens;
  own.output_tokens = job.output_tokens;
  for (Block& block : admission.explain(own))
    blocks.push_back(std::move(block));
  if (!blocks.empty() || job.wait != "ready") return blocks;
  int running = 0;
  for (const LaneHead& head : stats.running)
    running += head.in_flight;
  const int most = env.config.daemon.max_in_flight;
  if (most != 0 && running >= most) {
    blocks.push_back({"behind_others",
                      std::to_string(running) + " requests are in flight, the limit of the daemon",
                      std::nullopt});
  } else {
    blocks.push_back(behind(reader.ready_before(job.job_id, kCountBefore)));
  }
  return blocks;
}

struct Moment {
  UnixMs at = 0;
  std::string event, detail;
};

std::string attempt_words(const AttemptRow& a) {
  std::string text = "attempt " + std::to_string(a.generation) + "." + std::to_string(a.attempt);
  if (a.http_status) text += ", HTTP " + std::to_string(*a.http_status);
  if (a.billed) text += ", billed " + std::string(to_string(*a.billed));
  if (!a.error_message.empty()) text += ": " + a.error_message;
  return text;
}

std::vector<Moment> timeline(Reader& reader, const JobRow& job) {
  std::vector<Moment> moments;
  const auto events = reader.events_of(job.job_id, kEventsOfJob);
  if (events.empty() || !events.front().from.empty()) {
    moments.push_back({job.created_at, "submitted", "what followed at once is no longer kept"});
  }
  const auto attempts = reader.attempts_of(job.job_id);
  auto attempt = attempts.begin();
  const auto end_of_attempt = [&] {
    if (attempt->ended_at && attempt->outcome)
      moments.push_back(
          {*attempt->ended_at, std::string(to_string(*attempt->outcome)), attempt_words(*attempt)});
    ++attempt;
  };
  for (const OutboxRow& event : events) {
    // What an attempt came to stands before the change that follows from it.
    while (event.from == "processing" && attempt != attempts.end() &&
           attempt->ended_at.value_or(event.at + 1) <= event.at)
      end_of_attempt();
    const std::string change = event.from.empty() ? "submitted" : "from " + event.from;
    moments.push_back(
        {event.at, event.to, event.detail.empty() ? change : change + ", " + event.detail});
  }
  while (attempt != attempts.end())
    end_of_attempt();
  return moments;
}

Expected<Json, Failure> why(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"job_id"});
  const JobId id = in.id("job_id");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto job = reader.job(id);
  if (!job)
    return Unexpected{
        Failure{Exit::not_found, "no_such_job", "there is no job " + std::to_string(id), ""}};
  Json blocked = Json::array();
  if (is_live(job->status) && job->status != JobState::processing) {
    for (const Block& block : blocks_of(env, reader, *job, env.clock.wall_ms()))
      blocked.push_back({{"code", block.code},
                         {"detail", json_text(block.detail)},
                         {"until", json_time(block.until)}});
  }
  Json moments = Json::array();
  for (const Moment& moment : timeline(reader, *job))
    moments.push_back({{"at", json_time(moment.at)},
                       {"event", moment.event},
                       {"detail", json_text(moment.detail)}});
  return Json{{"job_id", json_id(id)},
              {"status", to_string(job->status)},
              {"blocked_by", std::move(blocked)},
              {"timeline", std::move(moments)}};
}

constexpr Op kOps[] = {
    {.name = "events", .read = list_events},
    {.name = "why", .read = why, .prefers_daemon = true},
};

}  // namespace

std::span<const Op> event_ops() {
  return kOps;
}

}  // namespace aiq
