// aiq audit, audit totals, audit ack

#include "cli/commands.h"
#include "cli/cost_options.h"
#include "cli/csv.h"
#include "cli/render.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

struct AuditOptions {
  Text from, to, tenant;
  Texts checks;
  bool list = false;
};

void print_findings(Output& out, const Json& findings) {
  if (findings.empty()) return;
  Table table = out.table({{"FINDING"},
                           {.title = "SEVERITY", .extra = true},
                           {.title = "CODE", .shrinks = true},
                           {.title = "TENANT", .shrinks = true},
                           {"PERIOD"},
                           {.title = "AMOUNT", .right = true},
                           {.title = "CURRENCY", .extra = true},
                           {.title = "REFS", .shrinks = true, .extra = true}});
  for (const Json& f : findings) {
    std::string refs;
    for (const Json& ref : f.at("refs"))
      refs += (refs.empty() ? "" : " ") + ref.get<std::string>();
    const std::string level = member_text(f, "severity");
    const Cell severity(level, !f.at("acknowledged_by").is_null() ? Tone::faint
                               : level == "error"                 ? Tone::bad
                               : level == "warn"                  ? Tone::warn
                                                                  : Tone::plain);
    table.add({member_text(f, "finding_id"), severity, Cell(member_text(f, "code"), severity.tone),
               member_text(f, "tenant"), member_text(f, "period_start"), member_text(f, "amount"),
               member_text(f, "currency"), refs});
  }
  out.text(table.take());
}

Exit list_checks(Session& session) {
  ListSpec spec;
  spec.op = "audit.list";
  spec.in = Json::object();
  spec.limit = 0;
  spec.paged = false;
  spec.format = session.out.json() ? Format::json : Format::table;
  spec.columns = {{"CODE"}, {"SEVERITY"}, {"RUNS"}};
  spec.cells = [](const Json& row) -> std::vector<Cell> {
    return {member_text(row, "code"), member_text(row, "severity"),
            std::string(row.at("default").get<bool>() ? "always" : "with --check")};
  };
  return print_formatted(session, std::move(spec));
}

Exit audit(Session& session, const AuditOptions& o) {
  if (o.list) return list_checks(session);
  Json in = Json::object();
  set_text(in, "tenant", o.tenant);
  set_time(in, "from", "--from", o.from);
  set_time(in, "to", "--to", o.to);
  if (!o.checks.empty()) in["check"] = o.checks;
  const Json answer = session.call("audit", in);
  const Json& findings = answer.at("findings");
  if (session.out.json()) {
    for (const Json& finding : findings)
      session.out.object(finding);
  } else {
    print_findings(session.out, findings);
  }
  const auto open = answer.at("unacknowledged_errors").get<std::int64_t>();
  session.out.note(counted(answer.at("checks").get<std::int64_t>(), "check", "checks") + ", " +
                   counted(std::ssize(findings), "finding", "findings") + ", " +
                   counted(open, "error", "errors") + " that nobody has acknowledged");
  return open > 0 ? Exit::no : Exit::ok;
}

Exit totals(Session& session, const ScopeOptions& scope) {
  const Json answer = session.call("audit.totals", scope.input());
  Output& out = session.out;
  if (out.json()) {
    out.object(answer);
    return Exit::ok;
  }
  Table table = out.table({{"TENANT", false, true},
                           {"CURRENCY"},
                           {"EVENTS", true},
                           {"UNITS", true},
                           {"LEDGER ROWS", true},
                           {"AMOUNT", true}});
  for (const Json& row : answer.at("totals"))
    table.add({member_text(row, "tenant"), member_text(row, "currency"), member_text(row, "events"),
               member_text(row, "units"), member_text(row, "ledger_rows"),
               member_text(row, "amount")});
  if (!table.empty()) out.text(table.take());
  for (const Json& row : answer.at("negative_summaries"))
    out.line("below 0: " + member_text(row, "tenant") + " " + member_text(row, "period_start") +
             " " + member_text(row, "amount") + " " + member_text(row, "currency"));
  return Exit::ok;
}

struct AckOptions {
  Text id, reason, by;
};

Exit acknowledge(Session& session, const AckOptions& o) {
  Json in = {{"finding_id", *o.id}};
  set_text(in, "reason", o.reason);
  set_text(in, "by", o.by);
  const Json done = session.call("audit.ack", in);
  if (session.out.json()) {
    session.out.object(done);
  } else {
    print_members(session.out, done);
  }
  return Exit::ok;
}

}  // namespace

void add_audit(Command root, Session& session) {
  Command command = root.add("audit", "find what is wrong in the money tables");
  auto options = std::make_shared<AuditOptions>();
  command.option("tenant", "T", options->tenant, "Of this tenant", ValueKind::tenant)
      .option("from", "T", options->from, "From the hour that begins then")
      .option("to", "T", options->to, "Before the hour that begins then")
      .repeated("check", "CODE", options->checks, "Only this check; may be given again")
      .flag("list", options->list, "Name the checks");
  command.run([options, &session] { return audit(session, *options); });

  auto scope = std::make_shared<ScopeOptions>();
  Command totals_command = command.add("totals", "events, units and amounts by tenant");
  scope->add_to(totals_command);
  totals_command.run([scope, &session] { return totals(session, *scope); });

  auto ack_options = std::make_shared<AckOptions>();
  Command ack = command.add("ack", "accept a finding");
  ack.operand("FINDING_ID", ack_options->id, "As audit shows it")
      .option("reason", "TEXT", ack_options->reason, "Why it is accepted")
      .option("by", "WHO", ack_options->by, "Who accepts it; default: who runs this");
  ack.run([ack_options, &session] { return acknowledge(session, *ack_options); });
}

}  // namespace aiq::cli
