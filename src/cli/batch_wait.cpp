#include "cli/batch_wait.h"

#include <algorithm>
#include <unordered_set>

#include "cli/signals.h"
#include "cli/text.h"
#include "cli/values.h"
#include "core/base/sleep.h"
#include "core/model/job.h"

namespace aiq::cli {
namespace {

constexpr DurationMs kFirstPauseMs = 25;
constexpr DurationMs kLongestPauseMs = 200;
constexpr DurationMs kDaemonCheckMs = 1'000;
// A withdrawn line is no event when others wait for its job, and a batch may still be growing:
// all lines are looked at again now and then.
constexpr DurationMs kFirstScanMs = 2'000;
constexpr DurationMs kLongestScanMs = 60'000;
constexpr DurationMs kScanShare = 20;  // at most one part in so many of the time

class BatchWait {
 public:
  BatchWait(Session& session, std::string batch_id, bool any,
            const std::function<void(const std::string&)>& ended)
      : session_(session), batch_id_(std::move(batch_id)), any_(any), ended_(ended) {}

  WaitEnd run(std::optional<DurationMs> timeout_ms) {
    const MonoMs begun = now();
    begun_ = begun;
    events_ = session_.call("batch.changes", Json::object()).at("last").get<std::int64_t>();
    scan();
    if (const auto end = decided()) return *end;
    if (!session_.executor().daemon()) return WaitEnd::no_daemon;
    seen_daemon_ = checked_daemon_ = now();
    for (DurationMs pause = kFirstPauseMs;;) {
      const DurationMs waited = now() - begun;
      if (timeout_ms && waited >= *timeout_ms) return WaitEnd::timed_out;
      sleep_ms(timeout_ms ? std::min(pause, *timeout_ms - waited) : pause);
      pause = std::min(pause + pause / 4, kLongestPauseMs);
      // While a daemon goes down or comes up the file may be busy for a moment.
      if (!look()) continue;
      if (const auto end = decided()) return *end;
      if (daemon_is_gone()) return WaitEnd::daemon_gone;
    }
  }

 private:
  [[nodiscard]] MonoMs now() const { return session_.clock().mono_ms(); }

  bool look() {
    try {
      follow();
      if (now() - scanned_ >= std::max(scan_every_, kScanShare * scan_took_)) {
        if (loaded_) scan_every_ = std::min(scan_every_ * 2, kLongestScanMs);
        scan();
      }
      show_progress();
      return true;
    } catch (const CommandFailed& failed) {
      if (failed.failure().exit != Exit::busy) throw;
      return !daemon_is_gone();
    }
  }

  void follow() {
    constexpr std::int64_t kPage = 1'000;
    for (;;) {
      const Json page = session_.call("batch.changes", {{"after", events_}, {"limit", kPage}});
      const auto last = page.at("last").get<std::int64_t>();
      for (const Json& row : page.at("rows")) {
        const auto found = open_.find(row[0].get<std::string>());
        if (found == open_.end()) continue;
        count_end(*found, row[1].get<std::string>());
        open_.erase(found);
      }
      if (last - events_ < kPage) {
        events_ = last;
        return;
      }
      events_ = last;
    }
  }

  void count_end(const std::string& job_id, const std::string& state) {
    if (state == "completed") {
      any_completed_ = true;
    } else {
      all_completed_ = false;
    }
    if (ended_ && !job_id.empty()) ended_(job_id);
  }

  void scan() {
    const MonoMs begun = now();
    loaded_ = session_.call("batch.show", {{"batch_id", batch_id_}}).at("state") == "loaded";
    std::unordered_set<std::string> open;
    lines_ = 0;
    Json in = {{"batch_id", batch_id_}};
    std::int64_t last = 0;
    for (;;) {
      const Json page = session_.call("batch.lines", in);
      for (const Json& row : page.at("rows")) {
        ++lines_;
        last = row[0].get<std::int64_t>();
        look_at_line(row, open);
      }
      if (page.at("next_after").is_null()) break;
      in["after"] = page["next_after"];
    }
    seen_to_ = std::max(seen_to_, last);
    open_ = std::move(open);
    scanned_ = now();
    scan_took_ = scanned_ - begun;
  }

  void look_at_line(const Json& row, std::unordered_set<std::string>& open) {
    const std::string job = row[1].is_null() ? "" : row[1].get<std::string>();
    const std::string state = row[2].is_null() ? "" : row[2].get<std::string>();
    const auto parsed = parse_job_state(state);
    const bool staged = job.empty();
    if (staged || (parsed && is_live(*parsed))) {
      // A staged line has no job to follow; it is found as one later.
      if (!staged) open.insert(job);
      return;
    }
    const bool is_new = row[0].get<std::int64_t>() > seen_to_;
    const bool was_open = open_.erase(job) > 0;
    if (is_new || was_open) count_end(job, state);
  }

  [[nodiscard]] std::optional<WaitEnd> decided() const {
    if (any_ && any_completed_) return WaitEnd::completed;
    if (!loaded_ || !open_.empty()) return std::nullopt;
    if (any_) return WaitEnd::not_completed;
    return all_completed_ ? WaitEnd::completed : WaitEnd::not_completed;
  }

  void show_progress() {
    Output& out = session_.out;
    if (!out.shows_progress()) return;
    const auto open = static_cast<std::int64_t>(open_.size());
    most_open_ = std::max(most_open_, open);
    const DurationMs took = std::max<DurationMs>(1, now() - begun_);
    const std::int64_t ended = most_open_ - open;
    std::string text = std::to_string(open) + " jobs of " + std::to_string(lines_) +
                       " lines are open, " + short_age(took);
    if (ended > 0 && took >= kRateAfterMs) {
      text += ", " + std::to_string(ended * 1000 / took) + " jobs/s, " +
              short_age(took * open / ended) + " left";
    }
    out.progress(text);
  }

  bool daemon_is_gone() {
    const MonoMs at = now();
    if (at - checked_daemon_ < kDaemonCheckMs && !missing_) return false;
    checked_daemon_ = at;
    missing_ = !session_.executor().daemon();
    if (!missing_) seen_daemon_ = at;
    return missing_ && at - seen_daemon_ >= session_.busy_timeout_ms();
  }

  static constexpr DurationMs kRateAfterMs = 2'000;  // before, a rate says little

  Session& session_;
  std::int64_t most_open_ = 0;
  std::string batch_id_;
  bool any_;
  const std::function<void(const std::string&)>& ended_;
  std::unordered_set<std::string> open_;
  std::int64_t events_ = 0, lines_ = 0, seen_to_ = 0;
  bool loaded_ = false, any_completed_ = false, all_completed_ = true, missing_ = false;
  MonoMs begun_ = 0, scanned_ = 0, seen_daemon_ = 0, checked_daemon_ = 0;
  DurationMs scan_took_ = 0, scan_every_ = kFirstScanMs;
};

}  // namespace

WaitEnd wait_for_batch(Session& session, const std::string& batch_id, bool any,
                       std::optional<DurationMs> timeout_ms,
                       const std::function<void(const std::string& job_id)>& ended) {
  set_farewell("aiq: no longer waiting; the jobs go on (aiq batch wait waits again)");
  const WaitEnd end = BatchWait(session, batch_id, any, ended).run(timeout_ms);
  set_farewell("");
  session.out.progress("");
  return end;
}

Json batch_counts(Session& session, const std::string& batch_id) {
  Json sums = Json::object();
  Json in = {{"batch_id", batch_id}};
  for (;;) {
    const Json page = session.call("batch.counts", in);
    for (const auto& [state, n] : page.at("counts").items())
      sums[state] = sums.value(state, std::int64_t{0}) + n.get<std::int64_t>();
    if (page.at("next_after").is_null()) return sums;
    in["after"] = page["next_after"];
  }
}

Json batch_with_counts(Session& session, Json batch) {
  batch["counts"] = batch_counts(session, batch.at("batch_id").get<std::string>());
  return batch;
}

void cancel_batch_lines(Session& session, const std::string& batch_id, bool force,
                        const std::function<void(const Json& row)>& cancelled) {
  // A published batch whose lines are not all jobs yet: they become jobs, or they would later.
  const Json batch = session.call("batch.show", {{"batch_id", batch_id}});
  while (batch.at("state") == "loading" &&
         !session.call("batch.load", {{"batch_id", batch_id}}).at("done").get<bool>()) {
  }
  if (session.call("batch.show", {{"batch_id", batch_id}}).at("state") != "loaded")
    session.out.warn(
        "its file was not read to the end; lines that come in later are not cancelled");
  Json in = {{"batch_id", batch_id}};
  set_flag(in, "force", force);
  for (;;) {
    const Json page = session.call("batch.cancel", in);
    for (const Json& row : page.at("rows"))
      cancelled(row);
    session.out.flush();
    if (page.at("next_after").is_null()) return;
    in["after"] = page["next_after"];
  }
}

std::string not_completed_sentence(const Json& batch) {
  const Json& counts = batch.at("counts");
  std::int64_t all = 0;
  for (const auto& [state, n] : counts.items())
    all += n.get<std::int64_t>();
  return std::to_string(all - counts.at("completed").get<std::int64_t>()) + " of " +
         std::to_string(all) + " lines did not complete";
}

}  // namespace aiq::cli
