// aiq submit, aiq run

#include "cli/batch_load.h"
#include "cli/batch_wait.h"
#include "cli/bodies.h"
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
  bool wait = false, dry_run = false, atomic = false;
  Text timeout, batch;
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
  print_with_bodies(session.out, object);
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

// Waits for the lines that went in; what is wrong with others is told afterwards.
Exit submit_batch_and_wait(Session& session, const SubmitOptions& o, const BatchRequest& request) {
  std::optional<DurationMs> timeout;
  if (o.timeout) timeout = duration_value("--timeout", *o.timeout);
  session.require_daemon("the requests");
  const BatchReport report = load_batch(session, request);
  Output& out = session.out;
  Json more = Json::object();
  WaitEnd end = WaitEnd::completed;
  Json batch = {{"counts", {{"completed", 0}}}};
  if (!out.json() && !report.batch_id.empty()) {
    out.line(report.batch_id);
    out.flush();
  }
  if (!report.batch_id.empty()) {
    end = wait_for_batch(session, report.batch_id, false, timeout, {});
    batch = batch_with_counts(session, session.call("batch.show", {{"batch_id", report.batch_id}}));
    more["counts"] = batch.at("counts");
  }
  print_batch_report(session, report, more);
  if (auto failure = failure_of_batch(report)) throw CommandFailed(std::move(*failure));
  if (end == WaitEnd::completed) return Exit::ok;
  throw CommandFailed(
      failure_of_wait(session, end, not_completed_sentence(batch),
                      "aiq batch results " + report.batch_id + " tells what happened"));
}

Exit submit_batch(Session& session, const SubmitOptions& o) {
  BatchRequest request{.path = *o.batch,
                       .key = o.request.idempotency_key,
                       .atomic = o.atomic,
                       .options = o.request.line_options(session),
                       .options_as_given = o.request.line_options_as_given()};
  if (o.atomic && o.request.only_if_cached) {
    fail_usage("contradiction", "--atomic and --only-if-cached exclude each other",
               "what is cached now may not be when the batch goes in");
  }
  if (o.dry_run) return preview_batch(session, request);
  if (o.wait) return submit_batch_and_wait(session, o, request);
  const BatchReport report = load_batch(session, request);
  if (!session.out.json() && !report.batch_id.empty()) session.out.line(report.batch_id);
  print_batch_report(session, report, Json::object());
  if (auto failure = failure_of_batch(report)) throw CommandFailed(std::move(*failure));
  return Exit::ok;
}

Exit submit(Session& session, const SubmitOptions& o) {
  if (o.timeout && !o.wait) {
    fail_usage("contradiction", "--timeout goes with --wait only", "--deadline limits the job");
  }
  if (o.wait && o.dry_run) {
    fail_usage("contradiction", "--dry-run submits nothing to wait for", "leave out --wait");
  }
  if (o.atomic && !o.batch) {
    fail_usage("contradiction", "--atomic goes with --batch only", "one request is always atomic");
  }
  if (o.batch) return submit_batch(session, o);
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
  Command command = root.add("submit", "queue a request, or a file of them, and print the id");
  options->request.add_to(command);
  command.section("Batches")
      .option("batch", "FILE", options->batch,
              "OpenAI Batch JSONL, plain or gzip; - = standard input", ValueKind::file)
      .flag("atomic", options->atomic, "With --batch: all lines or none");
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
