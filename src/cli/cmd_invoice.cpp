// aiq invoice draft, list, show, hold, release, issue, void, verify

#include "cli/commands.h"
#include "cli/cost_options.h"
#include "cli/csv.h"
#include "cli/render.h"
#include "cli/text.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

void print_lines(Output& out, const Json& lines) {
  if (!lines.is_array() || lines.empty()) return;
  Table table = out.table({{"HOUR"},
                           {"KIND"},
                           {"MODEL", false, true},
                           {"METER"},
                           {"UNITS", true},
                           {"AMOUNT", true},
                           {"LATE"}});
  for (const Json& line : lines)
    table.add({member_text(line, "service_period"), member_text(line, "kind"),
               member_text(line, "model"), member_text(line, "meter"), member_text(line, "units"),
               member_text(line, "amount"), std::string(line.value("late", false) ? "late" : "-")});
  out.line("");
  out.text(table.take());
}

Exit print_invoice(Session& session, const Json& invoice, bool with_lines) {
  Output& out = session.out;
  if (out.json()) {
    out.object(invoice);
    return Exit::ok;
  }
  print_members(out, invoice, {"lines"});
  if (with_lines) print_lines(out, invoice.value("lines", Json()));
  return Exit::ok;
}

// ---- draft

struct DraftOptions {
  Text tenant, period, by, currency;
};

Exit draft(Session& session, const DraftOptions& o) {
  Json in = Json::object();
  set_text(in, "tenant", o.tenant);
  set_time(in, "period", "--period", o.period);
  set_text(in, "by", o.by);
  set_text(in, "currency", o.currency);
  return print_invoice(session, session.call("invoice.draft", in), true);
}

// ---- hold, release, issue, void

struct MoveOptions {
  Text id, reason;
};

void add_move(Command invoice, Session& session, const std::string& name,
              const std::string& summary, bool with_reason) {
  auto o = std::make_shared<MoveOptions>();
  Command command = invoice.add(name, summary);
  command.operand("ID", o->id, "As invoice list shows it");
  if (with_reason) command.option("reason", "TEXT", o->reason, "Why; kept with the invoice");
  command.run([o, name, &session] {
    Json in = {{"invoice_id", *o->id}};
    set_text(in, "reason", o->reason);
    return print_invoice(session, session.call("invoice." + name, in), false);
  });
}

// ---- list, show

struct InvoiceFilterOptions {
  Text tenant, currency, since, until;

  void add_to(Command& command) {
    command.section("Filters")
        .option("tenant", "T", tenant, "Of this tenant", ValueKind::tenant)
        .option("currency", "CUR", currency, "In this currency")
        .option("since", "T", since, "Of periods that begin at or after this time")
        .option("until", "T", until, "Of periods that begin before this time");
  }
  [[nodiscard]] Json input(UnixMs now) const {
    Json in = Json::object();
    set_text(in, "tenant", tenant);
    set_text(in, "currency", currency);
    set_past(in, "since", "--since", since, now);
    set_past(in, "until", "--until", until, now);
    return in;
  }
};

struct ListOptions {
  InvoiceFilterOptions filter;
  Text state;
  PageOptions pages;
  FormatOption format;
};

Exit list(Session& session, const ListOptions& o) {
  Json in = o.filter.input(session.clock().wall_ms());
  set_text(in, "state", o.state);
  ListSpec spec = list_spec(o.pages, "invoice.list", std::move(in));
  spec.format = o.format.get(session);
  spec.members = {"invoice_id", "source",     "tenant",    "period_start", "period_end",
                  "currency",   "state",      "total",     "rounding",     "held_reason",
                  "created_at", "updated_at", "issued_at", "actor"};
  spec.columns = {{"ID", true},
                  {"TENANT", false, true},
                  {"FROM"},
                  {"TO"},
                  {"STATE"},
                  {"TOTAL", true},
                  {.title = "CURRENCY", .extra = true},
                  {"HELD", false, true}};
  spec.cells = [](const Json& row) -> std::vector<Cell> {
    return {member_text(row, "invoice_id"),   member_text(row, "tenant"),
            member_text(row, "period_start"), member_text(row, "period_end"),
            member_text(row, "state"),        member_text(row, "total"),
            member_text(row, "currency"),     member_text(row, "held_reason")};
  };
  spec.nothing = "no invoice matches";
  return print_formatted(session, std::move(spec));
}

// ---- verify

struct VerifyOptions {
  Texts ids;
  InvoiceFilterOptions filter;
  FormatOption format;
};

const std::vector<std::string>& check_members() {
  static const std::vector<std::string> members = {
      "invoice_id", "tenant", "period_start",   "period_end", "currency", "state",
      "total",      "billed", "billed_rounded", "delta",      "ok"};
  return members;
}

// Rows as they come, so that a long list is not held.
class Checks {
 public:
  Checks(Output& out, Format format)
      : out_(out),
        format_(format),
        table_(out.table({{"ID", true},
                          {"TENANT", false, true},
                          {"FROM"},
                          {"STATE"},
                          {"TOTAL", true},
                          {"BILLED", true},
                          {"DELTA", true},
                          {"CURRENCY"}})) {
    if (format == Format::csv) out.text(csv_line(check_members()));
  }

  void add(const Json& row) {
    ++seen_;
    if (!row.at("ok").get<bool>()) ++wrong_;
    if (format_ == Format::json) {
      out_.object(row);
    } else if (format_ == Format::csv) {
      std::vector<std::string> cells;
      for (const std::string& name : check_members())
        cells.push_back(csv_cell(row.at(name)));
      out_.text(csv_line(cells));
    } else {
      table_.add({member_text(row, "invoice_id"), member_text(row, "tenant"),
                  member_text(row, "period_start"), member_text(row, "state"),
                  member_text(row, "total"), member_text(row, "billed"), member_text(row, "delta"),
                  member_text(row, "currency")});
    }
  }
  void page_done() {
    if (!table_.empty()) out_.text(table_.take());
  }
  Exit end() {
    out_.note(std::to_string(seen_) + (seen_ == 1 ? " invoice" : " invoices") + " compared, " +
              std::to_string(wrong_) + " not what is billed");
    return wrong_ == 0 ? Exit::ok : Exit::no;
  }

 private:
  Output& out_;
  Format format_;
  Table table_;
  std::int64_t seen_ = 0, wrong_ = 0;
};

Exit verify(Session& session, const VerifyOptions& o) {
  Checks checks(session.out, o.format.get(session));
  const auto add = [&checks](const Json& row) { checks.add(row); };
  const auto page_done = [&checks] { checks.page_done(); };
  for (const std::string& id : o.ids)
    for_each_row(session, "invoice.verify", {{"invoice_id", id}}, 0, add, page_done);
  if (o.ids.empty())
    for_each_row(session, "invoice.verify", o.filter.input(session.clock().wall_ms()), 0, add,
                 page_done);
  return checks.end();
}

void add_draft(Command invoice, Session& session) {
  auto o = std::make_shared<DraftOptions>();
  invoice.add("draft", "make a draft, or bring the one of these hours up to date")
      .option("tenant", "T", o->tenant, "Of this tenant", ValueKind::tenant)
      .option("period", "P", o->period, "Begin of the UTC hour, day or month")
      .option("by", "UNIT", o->by, "hour, day or month")
      .option("currency", "CUR", o->currency, "Default: the one in which there is something")
      .run([o, &session] { return draft(session, *o); });
}

void add_list(Command invoice, Session& session) {
  auto o = std::make_shared<ListOptions>();
  Command command = invoice.add("list", "list invoices, newest first");
  o->filter.add_to(command);
  command.option("state", "S", o->state, "draft, held, issued or void");
  command.section("Output");
  o->format.add_to(command);
  command.section("Pages");
  o->pages.add_to(command, "ID");
  command.run([o, &session] { return list(session, *o); });
}

void add_verify(Command invoice, Session& session) {
  auto o = std::make_shared<VerifyOptions>();
  Command command =
      invoice.add("verify", "compare drafts and issued invoices with what is billed now");
  command.operands("ID", o->ids, "Only these, in whatever state", false);
  o->filter.add_to(command);
  command.section("Output");
  o->format.add_to(command);
  command.run([o, &session] { return verify(session, *o); });
}

}  // namespace

void add_invoice(Command root, Session& session) {
  Command invoice = root.add("invoice", "what tenants are asked to pay");
  add_draft(invoice, session);
  add_list(invoice, session);
  auto id = std::make_shared<Text>();
  invoice.add("show", "show one with its lines")
      .operand("ID", *id, "As invoice list shows it")
      .run([id, &session] {
        return print_invoice(session, session.call("invoice.show", {{"invoice_id", **id}}), true);
      });
  add_move(invoice, session, "hold", "keep a draft from being issued", true);
  add_move(invoice, session, "release", "make a held one a draft again", false);
  add_move(invoice, session, "issue", "issue a draft; it never changes again", false);
  add_move(invoice, session, "void", "give a draft or held one up; its hours are free", true);
  add_verify(invoice, session);
}

}  // namespace aiq::cli
