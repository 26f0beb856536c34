// aiq wait

#include "cli/batch_wait.h"
#include "cli/commands.h"
#include "cli/render.h"
#include "cli/values.h"
#include "cli/waiting.h"

namespace aiq::cli {
namespace {

struct WaitOptions {
  Texts ids;
  Text batch;
  bool all = false, any = false;
  Text timeout;
};

void print_ended(Output& out, const Json& job) {
  if (out.json()) {
    out.object(job);
    return;
  }
  const std::string status = member_text(job, "status");
  out.line(member_text(job, "job_id") + " " + out.tone(status, tone_of(status)));
}

Exit wait_batch(Session& session, const WaitOptions& o) {
  std::optional<DurationMs> timeout;
  if (o.timeout) timeout = duration_value("--timeout", *o.timeout);
  const WaitEnd end =
      wait_for_batch(session, *o.batch, o.any, timeout, [&session](const std::string& id) {
        print_ended(session.out, session.call("show", {{"job_id", id}}));
        session.out.flush();
      });
  if (end == WaitEnd::completed) return Exit::ok;
  const Json batch =
      batch_with_counts(session, session.call("batch.show", {{"batch_id", *o.batch}}));
  throw CommandFailed(failure_of_wait(session, end, not_completed_sentence(batch),
                                      "aiq batch results " + *o.batch + " tells what happened"));
}

// What to do when a job has not completed.
std::string after_end(const Json& job, const std::string& id) {
  if (job.is_object() && job.at("status") == "cancelled") {
    return "aiq cancel ended it; submit it again if it is still wanted";
  }
  return "aiq show " + id + " tells what happened";
}

Exit wait(Session& session, const WaitOptions& o) {
  if (o.all && o.any) fail_usage("contradiction", "--all and --any exclude each other", "");
  if (o.ids.empty() == !o.batch) {
    fail_usage(
        o.batch ? "contradiction" : "missing_argument",
        o.batch ? "job ids and --batch exclude each other" : "aiq wait needs job ids or --batch",
        "for example aiq wait 17 18, or aiq wait --batch b3");
  }
  if (o.batch) return wait_batch(session, o);
  WaitRequest request{.job_ids = o.ids, .any = o.any};
  if (o.timeout) request.timeout_ms = duration_value("--timeout", *o.timeout);
  std::size_t ended = 0;
  std::size_t completed = 0;
  Json last;
  const WaitEnd end = wait_in_session(session, request, [&](const Json& job) {
    ++ended;
    if (job.at("status") == "completed") {
      ++completed;
    } else {
      last = job;
    }
    print_ended(session.out, job);
  });
  if (end == WaitEnd::completed) return Exit::ok;
  const std::string missing = ended == 1 ? job_sentence(last)
                                         : std::to_string(ended - completed) + " of " +
                                               std::to_string(ended) + " jobs did not complete";
  const std::string id = last.is_null() ? "ID" : member_text(last, "job_id");
  throw CommandFailed(failure_of_wait(session, end, end == WaitEnd::not_completed ? missing : "",
                                      after_end(last, id)));
}

}  // namespace

void add_wait(Command root, Session& session) {
  auto options = std::make_shared<WaitOptions>();
  root.add("wait", "wait for jobs to end, and print a line for each")
      .operands("ID", options->ids, "Job ids", false, ValueKind::live_job)
      .option("batch", "B", options->batch, "For the jobs of this batch", ValueKind::batch)
      .flag("all", options->all, "Until all have ended; exit 0 if all completed (default)")
      .flag("any", options->any, "Until one has completed; exit 0 if one did")
      .option("timeout", "D", options->timeout, "Give up waiting, exit 6; the jobs go on")
      .run([options, &session] { return wait(session, *options); });
}

}  // namespace aiq::cli
