// aiq watch

#include <sys/ioctl.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <set>

#include "cli/commands.h"
#include "cli/event_feed.h"
#include "cli/render.h"
#include "cli/text.h"
#include "cli/values.h"
#include "core/model/job.h"

namespace aiq::cli {
namespace {

constexpr DurationMs kRedrawMs = 200;
constexpr std::size_t kFewestRows = 5;

bool is_final(const std::string& status) {
  const auto state = parse_job_state(status);
  return state && !is_live(*state);
}

// Which jobs are looked at. Without any named, all of them, for ever.
class Watched {
 public:
  Watched(Session& session, const Texts& ids, const Text& batch) : all_(ids.empty() && !batch) {
    for (const std::string& id : ids)
      add(id, session.call("show", {{"job_id", id}}).at("status").get<std::string>());
    if (batch) add_batch(session, *batch);
  }

  [[nodiscard]] bool all() const { return all_; }
  [[nodiscard]] bool has(const std::string& id) const { return all_ || status_.contains(id); }
  [[nodiscard]] bool done() const { return !all_ && open_.empty(); }
  [[nodiscard]] const std::map<std::string, std::string>& status() const { return status_; }

  void change(const std::string& id, const std::string& to) {
    if (all_) return;
    status_[id] = to;
    if (is_final(to)) {
      open_.erase(id);
    } else {
      open_.insert(id);
    }
  }

 private:
  void add(const std::string& id, const std::string& status) { change(id, status); }

  void add_batch(Session& session, const std::string& batch) {
    Json in = {{"batch_id", batch}};
    for (;;) {
      const Json page = session.call("batch.lines", in);
      for (const Json& line : page.at("rows")) {
        if (line.at(1).is_string())
          add(line.at(1).get<std::string>(),
              line.at(2).is_string() ? line.at(2).get<std::string>() : "queued");
      }
      const Json next = page.value("next_after", Json());
      if (next.is_null()) return;
      in["after"] = next;
    }
  }

  bool all_;
  std::map<std::string, std::string> status_;
  std::set<std::string> open_;
};

Json change_line(const Json& event) {
  return {{"at", event.at("at")},
          {"job_id", event.at("job_id")},
          {"from", event.at("from")},
          {"to", event.at("to")},
          {"detail", event.at("detail")}};
}

std::string change_text(const Json& change) {
  std::string text = member_text(change, "at") + "  job " + member_text(change, "job_id") + "  ";
  if (!change.at("from").is_null()) text += change.at("from").get<std::string>() + " -> ";
  text += member_text(change, "to");
  if (!change.at("detail").is_null()) text += "  (" + member_text(change, "detail") + ")";
  return text;
}

std::size_t window_rows() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return 24;
  return std::max<std::size_t>(size.ws_row, kFewestRows);
}

// A line of counts and under it the latest changes, redrawn in place.
class LiveView {
 public:
  LiveView(Session& session, const Watched& watched) : session_(session), watched_(watched) {}

  void add(const Json& change) {
    changes_.push_back(change_text(change));
    dirty_ = true;
    while (changes_.size() > 500)
      changes_.pop_front();
  }

  void draw(bool last) {
    const MonoMs now = session_.clock().mono_ms();
    if (!last && (!dirty_ || now - drawn_ms_ < kRedrawMs)) return;
    Output& out = session_.out;
    const std::size_t width = out.terminal().width;
    const std::size_t room = window_rows() - 2;
    std::string frame;
    if (lines_ > 0) frame += "\x1b[" + std::to_string(lines_) + "A\r\x1b[J";
    frame += cut(summary(), width - 1) + "\n";
    lines_ = 1;
    const std::size_t shown = std::min(room, changes_.size());
    for (std::size_t i = changes_.size() - shown; i < changes_.size(); ++i, ++lines_)
      frame += cut(printable(changes_[i]), width - 1) + "\n";
    out.text(frame);
    out.flush();
    dirty_ = false;
    drawn_ms_ = now;
  }

 private:
  [[nodiscard]] std::string summary() const {
    std::map<std::string, std::int64_t> counts;
    if (watched_.all()) {
      const Json stats = session_.call("stats", Json::object());
      for (const auto& [state, n] : stats.at("jobs").items())
        counts[state] = n.get<std::int64_t>();
    } else {
      for (const auto& [id, status] : watched_.status())
        ++counts[status];
    }
    std::string text;
    for (const char* state : {"queued", "processing", "retrying", "completed", "dead_lettered",
                              "failed", "cancelled"}) {
      if (const auto found = counts.find(state); found != counts.end() && found->second > 0)
        text += (text.empty() ? "" : "  ") + std::to_string(found->second) + " " + state;
    }
    return text.empty() ? "no job yet" : text;
  }

  Session& session_;
  const Watched& watched_;
  std::deque<std::string> changes_;
  std::size_t lines_ = 0;
  bool dirty_ = true;
  MonoMs drawn_ms_ = 0;
};

struct WatchOptions {
  Texts ids;
  Text batch;
};

Exit watch(Session& session, const WatchOptions& o) {
  if (!o.ids.empty() && o.batch) {
    fail_usage("contradiction", "job ids and --batch exclude each other", "");
  }
  Output& out = session.out;
  // First the place in the log, then the states: what happens in between is seen twice, not never.
  EventFeed feed(session, std::nullopt);
  Watched watched(session, o.ids, o.batch);
  const bool live = out.terminal().out && !out.json();
  LiveView view(session, watched);
  const auto show = [&](const Json& change) {
    if (live) {
      view.add(change);
    } else if (out.json()) {
      out.object(change);
    } else {
      out.line(change_text(change));
    }
  };
  const std::string now = format_rfc3339(session.clock().wall_ms());
  for (const auto& [id, status] : watched.status()) {
    show({{"at", now}, {"job_id", id}, {"from", nullptr}, {"to", status}, {"detail", "now"}});
  }
  for (;;) {
    const bool any = feed.poll([&](const Json& event) {
      const std::string id = event.at("job_id").get<std::string>();
      if (!watched.has(id)) return;
      watched.change(id, event.at("to").get<std::string>());
      show(change_line(event));
    });
    if (live) {
      view.draw(watched.done());
    } else {
      out.flush();
    }
    if (out.reader_gone()) return Exit::ok;
    if (any) continue;
    if (watched.done()) return Exit::ok;
    feed.pause();
  }
}

}  // namespace

void add_watch(Command root, Session& session) {
  auto options = std::make_shared<WatchOptions>();
  Command command = root.add("watch", "follow changes of jobs until all named ones have ended");
  command
      .operands("ID", options->ids, "Job ids; none: all jobs, until interrupted", false,
                ValueKind::job)
      .option("batch", "B", options->batch, "The jobs of this batch", ValueKind::batch)
      .run([options, &session] { return watch(session, *options); });
}

}  // namespace aiq::cli
