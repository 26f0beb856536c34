#include "cli/waiting.h"

#include "cli/signals.h"
#include "cli/text.h"
#include "core/base/sleep.h"

namespace aiq::cli {
namespace {

void show_progress(Output& out, const WaitProgress& p) {
  if (!out.shows_progress()) return;
  std::string text = std::to_string(p.ended) + " of " + std::to_string(p.jobs) +
                     (p.jobs == 1 ? " job ended, " : " jobs ended, ") + short_age(p.waited_ms);
  if (p.ended > p.completed) {
    text += ", " + std::to_string(p.ended - p.completed) + " not completed";
  }
  out.progress(p.ended == p.jobs ? "" : text);
}

}  // namespace

WaitEnd wait_in_session(Session& session, WaitRequest request,
                        const std::function<void(const Json& job)>& ended) {
  Output& out = session.out;
  request.reconnect_ms = session.busy_timeout_ms();
  const WaitWorld world{
      .show =
          [&](const std::string& id) {
            return session.try_call("show", {{"job_id", id}});
          },
      .daemon_runs = [&] { return session.executor().daemon().has_value(); },
      .pause = sleep_ms,
      .clock = session.clock(),
  };
  const WaitEvents events{
      .ended =
          [&](const Json& job) {
            ended(job);
            out.flush();
          },
      .progress = [&](const WaitProgress& progress) { show_progress(out, progress); },
  };
  set_farewell("aiq: no longer waiting; the jobs go on (aiq wait waits again)");
  auto end = wait_for_jobs(world, request, events);
  set_farewell("");
  out.progress("");
  if (!end) throw CommandFailed(std::move(end).error());
  return *end;
}

Failure failure_of_wait(const Session& session, WaitEnd end, const std::string& not_completed,
                        const std::string& hint) {
  switch (end) {
    case WaitEnd::completed:
      break;
    case WaitEnd::not_completed:
      return {Exit::no, "not_completed", not_completed, hint};
    case WaitEnd::timed_out:
      return {Exit::timeout, "timeout", "--timeout passed before the end",
              "the jobs go on; aiq wait waits again"};
    case WaitEnd::no_daemon:
      return {Exit::busy, "no_daemon", "no daemon is running, so nothing will end",
              "start aiqd, or work the queue off with aiqd --until-idle"};
    case WaitEnd::daemon_gone:
      return {Exit::busy, "daemon_gone",
              "the daemon went away and did not come back within " +
                  session.globals.busy_timeout.value_or("10s"),
              "the jobs are kept; start aiqd and wait again"};
  }
  return {};
}

}  // namespace aiq::cli
