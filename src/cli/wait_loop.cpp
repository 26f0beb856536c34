#include "cli/wait_loop.h"

#include <algorithm>
#include <deque>
#include <set>

#include "core/model/job.h"

namespace aiq::cli {
namespace {

constexpr DurationMs kFirstPauseMs = 25;
constexpr DurationMs kLongestPauseMs = 200;
constexpr DurationMs kDaemonCheckMs = 1'000;
constexpr std::size_t kJobsPerRound = 200;  // bounds the work of a round over thousands of jobs

bool is_final(const Json& job) {
  const auto state = parse_job_state(job.at("status").get<std::string>());
  return state && !is_live(*state);
}

class Wait {
 public:
  Wait(const WaitWorld& world, const WaitRequest& request, const WaitEvents& events)
      : world_(world), request_(request), events_(events), begun_ms_(world.clock.mono_ms()) {
    std::set<std::string> seen;
    for (const std::string& id : request.job_ids) {
      if (seen.insert(id).second) open_.push_back(id);
    }
    progress_.jobs = open_.size();
  }

  Expected<WaitEnd, Failure> run() {
    // Every id once: an unknown one is told at once, not after hours.
    if (auto failure = look(open_.size())) return Unexpected{std::move(*failure)};
    if (const auto end = decided()) return *end;
    if (!world_.daemon_runs()) return WaitEnd::no_daemon;
    seen_daemon_ms_ = world_.clock.mono_ms();
    for (DurationMs pause = kFirstPauseMs;;) {
      const DurationMs waited = world_.clock.mono_ms() - begun_ms_;
      if (request_.timeout_ms && waited >= *request_.timeout_ms) return WaitEnd::timed_out;
      world_.pause(request_.timeout_ms ? std::min(pause, *request_.timeout_ms - waited) : pause);
      pause = std::min(pause + pause / 4, kLongestPauseMs);
      if (auto failure = look(std::min(open_.size(), kJobsPerRound))) {
        // The daemon may be on its way down or up; only its absence for long is an end.
        if (failure->exit != Exit::busy) return Unexpected{std::move(*failure)};
      }
      if (const auto end = decided()) return *end;
      if (daemon_is_gone()) return WaitEnd::daemon_gone;
    }
  }

 private:
  std::optional<Failure> look(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string id = open_.front();
      const auto job = world_.show(id);
      if (!job) return job.error();
      open_.pop_front();
      if (!is_final(*job)) {
        open_.push_back(id);
        continue;
      }
      ++progress_.ended;
      if (job->at("status") == "completed") ++progress_.completed;
      events_.ended(*job);
      if (request_.any && progress_.completed > 0) break;
    }
    progress_.waited_ms = world_.clock.mono_ms() - begun_ms_;
    events_.progress(progress_);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<WaitEnd> decided() const {
    if (request_.any && progress_.completed > 0) return WaitEnd::completed;
    if (!open_.empty()) return std::nullopt;
    return progress_.completed == progress_.jobs ? WaitEnd::completed : WaitEnd::not_completed;
  }

  bool daemon_is_gone() {
    const MonoMs now = world_.clock.mono_ms();
    if (now - checked_daemon_ms_ < kDaemonCheckMs && !missing_) return false;
    checked_daemon_ms_ = now;
    missing_ = !world_.daemon_runs();
    if (!missing_) seen_daemon_ms_ = now;
    return now - seen_daemon_ms_ >= request_.reconnect_ms && missing_;
  }

  const WaitWorld& world_;
  const WaitRequest& request_;
  const WaitEvents& events_;
  MonoMs begun_ms_, seen_daemon_ms_ = 0, checked_daemon_ms_ = 0;
  bool missing_ = false;
  std::deque<std::string> open_;  // jobs not seen to end, the longest not asked about first
  WaitProgress progress_;
};

}  // namespace

Expected<WaitEnd, Failure> wait_for_jobs(const WaitWorld& world, const WaitRequest& request,
                                         const WaitEvents& events) {
  return Wait(world, request, events).run();
}

}  // namespace aiq::cli
