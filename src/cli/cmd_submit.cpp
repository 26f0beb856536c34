// aiq submit, aiq run

#include "cli/commands.h"
#include "cli/render.h"
#include "cli/request_options.h"
#include "cli/values.h"
#include "cli/waiting.h"
#include "core/model/job.h"

namespace aiq::cli {
namespace {

struct SubmitOptions {
  RequestOptions request;
  bool wait = false, dry_run = false;
  Text timeout;
};

bool still_open(const Json& receipt) {
  const auto state = parse_job_state(receipt.at("status").get<std::string>());
  return state && is_live(*state);
}

Exit dry_run(Session& session, const Json& in) {
  const Json preview = session.call("submit.preview", in);
  if (session.out.json()) {
    session.out.object(preview);
  } else {
    print_members(session.out, preview, {}, true);
  }
  return Exit::ok;
}

Exit submit_only(Session& session, const Json& in) {
  const Json receipt = session.call("submit", in);
  if (session.out.json()) {
    session.out.object(receipt);
  } else {
    session.out.line(receipt.at("job_id").get<std::string>());
  }
  session.out.flush();
  // This process owned the database, so no daemon has it.
  if (session.executor().where() == Executor::Where::file && still_open(receipt)) {
    session.out.note("queued, but nothing is running: start aiqd, or aiqd --until-idle");
  }
  return Exit::ok;
}

struct Waited {
  std::string job_id;
  WaitEnd end = WaitEnd::completed;
  Json job;      // as `show` has it; null while it has not ended
  Json receipt;  // of submit
};

Waited submit_and_wait(Session& session, const Json& in, const Text& timeout,
                       const std::function<void(const std::string& id)>& submitted) {
  WaitRequest request;
  if (timeout) request.timeout_ms = duration_value("--timeout", *timeout);
  session.require_daemon("the request");
  Waited waited;
  waited.receipt = session.call("submit", in);
  waited.job_id = waited.receipt.at("job_id").get<std::string>();
  submitted(waited.job_id);
  request.job_ids = {waited.job_id};
  waited.end = wait_in_session(session, request, [&](const Json& job) { waited.job = job; });
  return waited;
}

// One object: the receipt, and over it all of the job as it is now.
void print_waited(Session& session, const Waited& waited) {
  Json object = waited.receipt;
  if (auto job = session.try_call("show", {{"job_id", waited.job_id}, {"result", true}})) {
    for (const auto& [name, value] : job->items())
      object[name] = value;
  }
  session.out.object(object);
  session.out.flush();
}

[[noreturn]] void fail_waited(const Session& session, const Waited& waited) {
  const std::string what = waited.job.is_null() ? "" : job_sentence(waited.job);
  Failure failure = failure_of_wait(session, waited.end, what,
                                    "aiq show " + waited.job_id + " tells what happened");
  if (waited.end != WaitEnd::not_completed) {
    failure.message += ": job " + waited.job_id;
    failure.hint = "it is kept; aiq wait " + waited.job_id + " waits for it";
  }
  throw CommandFailed(std::move(failure));
}

Exit submit(Session& session, const SubmitOptions& o) {
  if (o.timeout && !o.wait) {
    fail_usage("contradiction", "--timeout goes with --wait only", "--deadline limits the job");
  }
  if (o.wait && o.dry_run) {
    fail_usage("contradiction", "--dry-run submits nothing to wait for", "leave out --wait");
  }
  const Json in = o.request.input(session);
  if (o.dry_run) return dry_run(session, in);
  if (!o.wait) return submit_only(session, in);
  Output& out = session.out;
  const Waited waited = submit_and_wait(session, in, o.timeout, [&](const std::string& id) {
    if (out.json()) return;
    out.line(id);
    out.flush();
  });
  if (out.json()) print_waited(session, waited);
  if (waited.end != WaitEnd::completed) fail_waited(session, waited);
  return Exit::ok;
}

Exit run(Session& session, const SubmitOptions& o) {
  if (o.request.endpoint == "embeddings" && !session.out.json()) {
    fail_usage("no_text", "embeddings have no text to print",
               "use aiq run --json, or aiq submit --wait and aiq result");
  }
  const Json in = o.request.input(session);
  const Waited waited = submit_and_wait(session, in, o.timeout, [](const std::string&) {});
  Output& out = session.out;
  if (out.json()) print_waited(session, waited);
  if (waited.end != WaitEnd::completed) fail_waited(session, waited);
  if (out.json()) return Exit::ok;
  const Json result = session.call("result", {{"job_id", waited.job_id}});
  print_answer_text(out, result);
  return Exit::ok;
}

}  // namespace

void add_submit(Command root, Session& session) {
  auto options = std::make_shared<SubmitOptions>();
  Command command = root.add("submit", "queue one request and print its job id");
  options->request.add_to(command);
  command.section("Waiting")
      .flag("wait", options->wait, "Wait for its end; exit 1 if it does not complete")
      .option("timeout", "D", options->timeout, "With --wait: give up waiting, exit 6")
      .flag("dry-run", options->dry_run, "Tell keys, tokens and what would happen; write nothing");
  command.run([options, &session] { return submit(session, *options); });

  auto run_options = std::make_shared<SubmitOptions>();
  Command run_command = root.add("run", "queue one request, wait, and print the answer's text");
  run_options->request.add_to(run_command);
  run_command.section("Waiting").option("timeout", "D", run_options->timeout,
                                        "Give up waiting, exit 6; the job goes on");
  run_command.run([run_options, &session] { return run(session, *run_options); });
}

}  // namespace aiq::cli
