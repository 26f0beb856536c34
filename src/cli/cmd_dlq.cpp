// aiq dlq list, aiq dlq show

#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/render.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

struct DlqFilterOptions {
  Text state, reason, error_class, tenant, model, vendor, label, correlation_id, since, until;
  PageOptions pages;

  void add_to(Command& command) {
    command.section("Filters")
        .option("state", "S", state, "open, replayed, discarded or all; default open",
                ValueKind::letter_state)
        .option("reason", "R", reason,
                "rejected, attempts_exhausted, deadline, crash_limit, unknown_limit or "
                "rate_limit_exhausted",
                ValueKind::letter_reason)
        .option("class", "C", error_class, "With this outcome of the last attempt",
                ValueKind::outcome)
        .option("tenant", "T", tenant, "Of this tenant", ValueKind::tenant)
        .option("model", "M", model, "For this model", ValueKind::model)
        .option("vendor", "V", vendor, "At this vendor", ValueKind::vendor)
        .option("label", "K=V", label, "With this label", ValueKind::label)
        .option("correlation-id", "ID", correlation_id, "With this correlation id")
        .option("since", "T", since, "Dead since a time, or an age such as 1h")
        .option("until", "T", until, "Dead before a time, or an age")
        .section("Pages");
    pages.add_to(command, "ID");
  }

  [[nodiscard]] Json input(UnixMs now) const {
    Json in = Json::object();
    set_text(in, "state", state);
    set_text(in, "reason", reason);
    set_text(in, "class", error_class);
    set_text(in, "tenant", tenant);
    set_text(in, "model", model);
    set_text(in, "vendor", vendor);
    set_label(in, label);
    set_text(in, "correlation_id", correlation_id);
    set_past(in, "since", "--since", since, now);
    set_past(in, "until", "--until", until, now);
    return in;
  }
};

Exit list(Session& session, const DlqFilterOptions& o) {
  const UnixMs now = session.clock().wall_ms();
  const auto cells = [now](const Json& letter) -> std::vector<Cell> {
    return {member_text(letter, "dlq_id"),    member_text(letter, "job_id"),
            member_text(letter, "tenant"),    member_text(letter, "model"),
            member_text(letter, "reason"),    member_text(letter, "http_status"),
            age_text(letter, "dead_at", now), member_text(letter, "error")};
  };
  return print_list(session, "dlq.list", o.input(now), o.pages,
                    {{"ID", true},
                     {"JOB", true},
                     {"TENANT", false, true},
                     {"MODEL", false, true},
                     {"REASON"},
                     {"HTTP", true},
                     {"DEAD", true},
                     {"ERROR", false, true}},
                    cells, "no dead letter matches");
}

Exit show(Session& session, const std::string& id) {
  const Json letter = session.call("dlq.show", {{"dlq_id", id}});
  Output& out = session.out;
  if (out.json()) {
    out.object(letter);
    return Exit::ok;
  }
  print_members(out, letter, {"attempt_log", "payload"});
  print_attempts(out, letter.value("attempt_log", Json()));
  if (const Json payload = letter.value("payload", Json()); !payload.is_null()) {
    out.line("");
    out.line("payload:");
    out.line(payload.dump(2, ' ', false, Json::error_handler_t::replace));
  }
  return Exit::ok;
}

}  // namespace

void add_dlq(Command root, Session& session) {
  Command dlq = root.add("dlq", "look at dead letters: jobs that were given up");
  auto options = std::make_shared<DlqFilterOptions>();
  Command list_command = dlq.add("list", "list dead letters, newest first");
  options->add_to(list_command);
  list_command.run([options, &session] { return list(session, *options); });
  auto id = std::make_shared<Text>();
  dlq.add("show", "show one, with its request and attempts")
      .operand("ID", *id, "As dlq list shows it; not the job's", ValueKind::dead_letter)
      .run([id, &session] { return show(session, **id); });
}

}  // namespace aiq::cli
