// aiq list, aiq show, aiq result

#include "cli/bodies.h"
#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/render.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

struct ListOptions {
  JobFilterOptions filter;
  PageOptions pages;
};

Exit list(Session& session, const ListOptions& o) {
  const UnixMs now = session.clock().wall_ms();
  const auto cells = [now](const Json& job) -> std::vector<Cell> {
    const std::string status = member_text(job, "status");
    const std::string most = member_text(job, "max_attempts");
    return {member_text(job, "job_id"),
            {status, tone_of(status)},
            member_text(job, "tenant"),
            member_text(job, "model"),
            age_text(job, "created_at", now),
            member_text(job, "attempts") + (most == "0" ? "" : "/" + most)};
  };
  return print_list(session, "list", o.filter.input(session), o.pages,
                    {{"ID", true},
                     {"STATUS"},
                     {"TENANT", false, true},
                     {"MODEL", false, true},
                     {"AGE", true},
                     {"ATTEMPTS", true}},
                    cells, o.filter.any() ? "no job matches" : "there are no jobs");
}

struct ShowOptions {
  Text id;
  bool result = false;
};

Exit show(Session& session, const ShowOptions& o) {
  Json in = {{"job_id", *o.id}};
  set_flag(in, "result", o.result);
  const Json job = session.call("show", in);
  Output& out = session.out;
  if (out.json()) {
    print_with_bodies(out, job);
    return Exit::ok;
  }
  print_members(out, job, {"attempt_log", "result_text"});
  print_attempts(out, job.value("attempt_log", Json()));
  print_body(out, job, "result");
  return Exit::ok;
}

struct ResultOptions {
  Text id;
  bool text = false;
};

Exit result(Session& session, const ResultOptions& o) {
  const Json answer = session.call("result", {{"job_id", *o.id}});
  Output& out = session.out;
  if (o.text && !out.json()) {
    print_answer_text(out, answer);
    return Exit::ok;
  }
  if (o.text) static_cast<void>(answer_text(answer));
  if (out.json()) {
    out.object(answer);
    return Exit::ok;
  }
  out.text(answer.at("body").get_ref<const std::string&>());
  if (out.terminal().out) out.text("\n");
  out.flush();
  note_source(out, answer);
  return Exit::ok;
}

}  // namespace

void add_jobs(Command root, Session& session) {
  auto list_options = std::make_shared<ListOptions>();
  Command list_command = root.add("list", "list jobs, newest first");
  list_options->filter.add_to(list_command);
  list_command.section("Pages");
  list_options->pages.add_to(list_command, "ID");
  list_command.run([list_options, &session] { return list(session, *list_options); });

  auto show_options = std::make_shared<ShowOptions>();
  root.add("show", "show all of one job and its attempts")
      .operand("ID", show_options->id, "Job id", ValueKind::job)
      .flag("result", show_options->result, "With the vendor's answer")
      .run([show_options, &session] { return show(session, *show_options); });

  auto result_options = std::make_shared<ResultOptions>();
  root.add("result", "print the vendor's answer as received")
      .operand("ID", result_options->id, "Job id", ValueKind::job)
      .flag("text", result_options->text, "Only the answer's text")
      .run([result_options, &session] { return result(session, *result_options); });
}

}  // namespace aiq::cli
