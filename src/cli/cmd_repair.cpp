// aiq repair plan, apply, list, show

#include "cli/commands.h"
#include "cli/csv.h"
#include "cli/output_file.h"
#include "cli/render.h"
#include "cli/text.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

// A plan is read whole.
constexpr std::int64_t kPlanBytes = std::int64_t{1} << 30;

struct PlanOptions {
  Text output;
};

struct ApplyOptions {
  Text file, by;
};

std::string totals(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string out;
  for (const auto& [currency, total] : value.items())
    out += (out.empty() ? "" : ", ") + total.get<std::string>() + " " + currency;
  return out;
}

void print_rows(Session& session, const Json& plan) {
  Table table = session.out.table({{"ROW", false, true},
                                   {"TENANT", false, true},
                                   {"SERVICE PERIOD"},
                                   {"POSTING PERIOD"},
                                   {"AMOUNT", true},
                                   {"CURRENCY"},
                                   {"REASON"}});
  for (const Json& row : plan.at("repair_entries")) {
    table.add({member_text(row, "idempotency_key"), member_text(row, "tenant"),
               member_text(row, "service_period"), member_text(row, "posting_period"),
               member_text(row, "amount"), member_text(row, "currency"),
               member_text(row, "reason")});
  }
  if (!plan.at("repair_entries").empty()) session.out.text(table.take());
}

std::int64_t held(const Json& plan) {
  std::int64_t out = 0;
  for (const Json& invoice : plan.at("invoices"))
    out += invoice.at("mark") == "hold" ? 1 : 0;
  return out;
}

Exit make_plan(Session& session, const PlanOptions& o) {
  const Json plan = session.call("repair.plan", Json::object());
  if (o.output && *o.output != "-") {
    OutputFile file(*o.output);
    file.write(plan.dump(2) + "\n");
    file.commit();
  }
  if (session.out.json()) {
    session.out.object(plan);
    return Exit::ok;
  }
  if (!o.output || *o.output == "-") {
    session.out.line(plan.dump(2));
    return Exit::ok;
  }
  print_rows(session, plan);
  session.out.note(counted(std::ssize(plan.at("repair_entries")), "row", "rows") + ", " +
                   counted(std::ssize(plan.at("tenant_periods")), "tenant-hour", "tenant-hours") +
                   ", " + counted(held(plan), "invoice", "invoices") + " to hold, " +
                   std::to_string(plan.at("to_draft").size()) + " to draft; ledger " +
                   totals(plan.at("before")) + " -> " + totals(plan.at("after")));
  session.out.note("nothing is written yet: read " + *o.output + ", then `aiq repair apply " +
                   *o.output + "`");
  return Exit::ok;
}

Exit apply(Session& session, const ApplyOptions& o) {
  const std::string text = read_input("FILE", *o.file, kPlanBytes);
  Json plan = Json::parse(text, nullptr, false);
  if (plan.is_discarded())
    fail_usage("invalid_plan", *o.file + " is not JSON", "`aiq repair plan -o FILE` makes a plan");
  Json in = {{"plan", std::move(plan)}};
  set_text(in, "by", o.by);
  const Json done = session.call("repair.apply", in);
  if (session.out.json()) {
    session.out.object(done);
  } else {
    print_members(session.out, done);
  }
  if (done.at("already_applied").get<bool>())
    session.out.note("the plan was applied before; nothing was written");
  return Exit::ok;
}

struct ListOptions {
  PageOptions pages;
  FormatOption format;
};

Exit list(Session& session, const ListOptions& o) {
  ListSpec spec = list_spec(o.pages, "repair.list", Json::object());
  spec.format = o.format.get(session);
  spec.members = {"repair_id",     "applied_at", "actor", "rows_appended", "periods_rebuilt",
                  "invoices_held", "before",     "after", "delta",         "plan_hash"};
  spec.columns = {{"ID", true},      {"APPLIED"},    {"BY", false, true}, {"ROWS", true},
                  {"PERIODS", true}, {"HELD", true}, {"DELTA", true}};
  spec.cells = [](const Json& row) -> std::vector<Cell> {
    return {member_text(row, "repair_id"),
            member_text(row, "applied_at"),
            member_text(row, "actor"),
            member_text(row, "rows_appended"),
            member_text(row, "periods_rebuilt"),
            member_text(row, "invoices_held"),
            totals(row.at("delta"))};
  };
  spec.nothing = "there was no repair";
  return print_formatted(session, std::move(spec));
}

Exit show(Session& session, const Text& id) {
  const Json row = session.call("repair.show", {{"repair_id", *id}});
  if (session.out.json())
    session.out.object(row);
  else
    session.out.line(row.dump(2));
  return Exit::ok;
}

}  // namespace

void add_repair(Command root, Session& session) {
  Command repair = root.add("repair", "mend what the audit found, by a plan");

  auto plan = std::make_shared<PlanOptions>();
  repair.add("plan", "write down what would mend it; changes nothing")
      .option("output", "FILE", plan->output, "Where to write the plan; - = standard output",
              ValueKind::file)
      .run([plan, &session] { return make_plan(session, *plan); });

  auto options = std::make_shared<ApplyOptions>();
  repair.add("apply", "carry out a plan: all of it, or nothing")
      .operand("FILE", options->file, "A plan", ValueKind::file)
      .option("by", "WHO", options->by, "Who decided; default: who runs this")
      .run([options, &session] { return apply(session, *options); });

  auto of_list = std::make_shared<ListOptions>();
  Command list_command = repair.add("list", "list the repairs that were carried out");
  of_list->pages.add_to(list_command, "ID");
  of_list->format.add_to(list_command);
  list_command.run([of_list, &session] { return list(session, *of_list); });

  auto id = std::make_shared<Text>();
  repair.add("show", "show one, with its plan and what it found")
      .operand("ID", *id, "As repair list shows it")
      .run([id, &session] { return show(session, *id); });
}

}  // namespace aiq::cli
