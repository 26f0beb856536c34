// aiq why

#include "cli/commands.h"
#include "cli/render.h"
#include "cli/text.h"
#include "core/model/job.h"

namespace aiq::cli {
namespace {

// What only the one who asks can see: whether a daemon is there to work.
void add_daemon(Session& session, Json& answer) {
  const auto state = parse_job_state(answer.at("status").get<std::string>());
  if (!state || !is_live(*state)) return;
  const auto daemon = session.executor().daemon();
  Json& blocked = answer.at("blocked_by");
  const auto first = [&blocked](const char* code, const std::string& detail) {
    const Json block = {{"code", code}, {"detail", detail}, {"until", nullptr}};
    blocked.insert(blocked.begin(), block);
  };
  if (!daemon) {
    first("daemon_down", "no daemon answers; start aiqd");
    return;
  }
  if (!daemon->answers) {
    first("daemon_down",
          "aiqd" +
              (daemon->pid == 0 ? std::string() : " (pid " + std::to_string(daemon->pid) + ")") +
              " runs but does not answer");
    return;
  }
  for (const std::string& reason : daemon->reasons) {
    if (reason.find("disk") != std::string::npos) first("disk_low", reason);
  }
}

void print_why(Output& out, const Json& answer) {
  const std::string id = answer.at("job_id").get<std::string>();
  const Json& blocked = answer.at("blocked_by");
  out.line("job " + id + " is " + answer.at("status").get<std::string>() +
           (blocked.empty() ? "" : ", and waits for:"));
  for (const Json& block : blocked) {
    std::string line = "  " + member_text(block, "code") + ": " + member_text(block, "detail");
    if (!block.at("until").is_null()) line += " (until " + member_text(block, "until") + ")";
    out.line(line);
  }
  const Json& moments = answer.at("timeline");
  if (moments.empty()) return;
  out.line("");
  Table table = out.table({{"AT"}, {"EVENT"}, {"DETAIL", false, true}});
  for (const Json& moment : moments) {
    table.add(
        {member_text(moment, "at"), member_text(moment, "event"), member_text(moment, "detail")});
  }
  out.text(table.take());
}

Exit why(Session& session, const std::string& id) {
  Json answer = session.call("why", {{"job_id", id}});
  add_daemon(session, answer);
  if (session.out.json()) {
    session.out.object(answer);
  } else {
    print_why(session.out, answer);
  }
  return Exit::ok;
}

}  // namespace

void add_why(Command root, Session& session) {
  auto id = std::make_shared<Text>();
  root.add("why", "tell what a job waits for, or what happened to it")
      .operand("ID", *id, "Job id", ValueKind::job)
      .run([id, &session] { return why(session, **id); });
}

}  // namespace aiq::cli
