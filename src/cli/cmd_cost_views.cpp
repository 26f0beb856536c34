// aiq cost summary, ledger, explain, runs, freezes

#include "cli/cost_options.h"
#include "cli/csv.h"
#include "cli/render.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

// ---- summary

struct SummaryOptions {
  Text by, group, tz, tenant, currency, from, to, limit;
  bool billed = false;
  FormatOption format;

  void add_to(Command& command) {
    command
        .option("by", "UNIT", by, "hour, day, month or total; default hour", ValueKind::time_unit)
        .option("group", "G", group, "tenant, model, vendor, meter or label:KEY; default tenant")
        .option("tz", "ZONE", tz, "Time zone of the hours, days and months; default UTC")
        .flag("billed", billed, "By the hour that bills it, not by the hour of use")
        .section("Filters")
        .option("tenant", "T", tenant, "Of this tenant", ValueKind::tenant)
        .option("currency", "C", currency, "In this currency")
        .option("from", "T", from, "From this time on")
        .option("to", "T", to, "Before this time")
        .section("Output")
        .option("limit", "N", limit, "At most N rows; default 0 = all");
    format.add_to(command);
  }

  [[nodiscard]] Json input() const {
    Json in = Json::object();
    set_text(in, "by", by);
    set_text(in, "group", group);
    set_text(in, "tz", tz);
    set_flag(in, "billed", billed);
    set_text(in, "tenant", tenant);
    set_text(in, "currency", currency);
    set_time(in, "from", "--from", from);
    set_time(in, "to", "--to", to);
    return in;
  }
};

Exit summary(Session& session, const SummaryOptions& o) {
  std::string group = o.group.value_or("tenant");
  if (group.starts_with("label:")) group = "label";
  ListSpec spec;
  spec.op = "cost.summary";
  spec.paged = false;
  spec.in = o.input();
  spec.limit = o.limit ? whole_value("--limit", *o.limit, 0, INT64_MAX) : 0;
  spec.format = o.format.get(session);
  spec.members = {group,         "period_start", "period_end",    "currency",
                  "amount",      "usage_amount", "credit_amount", "correction_amount",
                  "ledger_rows", "events",       "stale"};
  std::string title = group;
  for (char& c : title)
    c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  // Of hours, days and months the start says all.
  const bool total = o.by == "total";
  spec.columns = {{.title = title, .shrinks = true},
                  {.title = "FROM", .extra = total},
                  {.title = "TO", .extra = true},
                  {"CURRENCY"},
                  {.title = "AMOUNT", .right = true},
                  {.title = "USAGE", .right = true, .extra = true},
                  {.title = "CREDIT", .right = true, .extra = true},
                  {.title = "CORRECTION", .right = true, .extra = true},
                  {.title = "EVENTS", .right = true, .extra = true},
                  {"STALE"}};
  spec.cells = [group](const Json& row) -> std::vector<Cell> {
    const bool stale = row.at("stale").get<bool>();
    return {member_text(row, group.c_str()),
            member_text(row, "period_start"),
            member_text(row, "period_end"),
            member_text(row, "currency"),
            member_text(row, "amount"),
            member_text(row, "usage_amount"),
            member_text(row, "credit_amount"),
            member_text(row, "correction_amount"),
            member_text(row, "events"),
            Cell(stale ? "stale" : "", stale ? Tone::warn : Tone::plain)};
  };
  spec.nothing = "nothing was posted there";
  return print_formatted(session, std::move(spec));
}

// ---- ledger

struct LedgerOptions {
  Text tenant, period, from, to, since, until, type, ref, currency;
  PageOptions pages;
  FormatOption format;

  void add_to(Command& command) {
    command.section("Filters")
        .option("tenant", "T", tenant, "Of this tenant", ValueKind::tenant)
        .option("period", "T", period, "Of the hour of use that begins then")
        .option("from", "T", from, "Of hours of use from this one on")
        .option("to", "T", to, "Up to this one, which is not included")
        .option("since", "T", since, "Posted at or after a time, or an age such as 1h")
        .option("until", "T", until, "Posted before a time, or an age")
        .option("type", "TYPE", type, "usage, credit_note, reversal or reprice")
        .option("ref", "ID", ref, "Of this event, note or ledger id")
        .option("currency", "C", currency, "In this currency")
        .section("Output");
    pages.add_to(command, "ID");
    format.add_to(command);
  }

  [[nodiscard]] Json input(UnixMs now) const {
    Json in = Json::object();
    set_text(in, "tenant", tenant);
    set_time(in, "period", "--period", period);
    set_time(in, "from", "--from", from);
    set_time(in, "to", "--to", to);
    set_past(in, "since", "--since", since, now);
    set_past(in, "until", "--until", until, now);
    set_text(in, "source_type", type);
    set_text(in, "source_ref", ref);
    set_text(in, "currency", currency);
    return in;
  }
};

Exit ledger(Session& session, const LedgerOptions& o) {
  ListSpec spec = list_spec(o.pages, "cost.ledger", o.input(session.clock().wall_ms()));
  spec.format = o.format.get(session);
  spec.members = {"ledger_id",      "tenant",          "source_type", "source_ref",
                  "service_period", "posting_period",  "occurred_at", "amount",
                  "currency",       "idempotency_key", "job_id",      "run_id",
                  "retry_count",    "correlation_id",  "posted_at",   "reverses",
                  "price_id",       "source",          "reason",      "actor"};
  spec.columns = {{"ID", true},
                  {"TENANT", false, true},
                  {"TYPE"},
                  {"OF", false, true},
                  {"HOUR"},
                  {.title = "BILLED IN", .extra = true},
                  {"AMOUNT", true},
                  {"CURRENCY"},
                  {.title = "POSTED", .extra = true}};
  spec.cells = [](const Json& row) -> std::vector<Cell> {
    return {member_text(row, "ledger_id"),      member_text(row, "tenant"),
            member_text(row, "source_type"),    member_text(row, "source_ref"),
            member_text(row, "service_period"), member_text(row, "posting_period"),
            member_text(row, "amount"),         member_text(row, "currency"),
            member_text(row, "posted_at")};
  };
  spec.nothing = "no ledger row matches";
  return print_formatted(session, std::move(spec));
}

// ---- runs

struct RunOptions {
  Text tenant, period, outcome, call, since, until;
  PageOptions pages;
  FormatOption format;

  void add_to(Command& command) {
    command.section("Filters")
        .option("tenant", "T", tenant, "Of this tenant", ValueKind::tenant)
        .option("period", "T", period, "Of the hour that begins then")
        .option("outcome", "O", outcome, "done, busy, frozen, failed or abandoned",
                ValueKind::run_outcome)
        .option("call", "ID", call, "Of this command: the run_id that it printed")
        .option("since", "T", since, "Started at or after a time, or an age such as 1h")
        .option("until", "T", until, "Started before a time, or an age")
        .section("Output");
    pages.add_to(command, "ID");
    format.add_to(command);
  }

  [[nodiscard]] Json input(UnixMs now) const {
    Json in = Json::object();
    set_text(in, "tenant", tenant);
    set_time(in, "period", "--period", period);
    set_text(in, "outcome", outcome);
    set_text(in, "call_id", call);
    set_past(in, "since", "--since", since, now);
    set_past(in, "until", "--until", until, now);
    return in;
  }
};

Exit runs(Session& session, const RunOptions& o) {
  ListSpec spec = list_spec(o.pages, "cost.runs", o.input(session.clock().wall_ms()));
  spec.format = o.format.get(session);
  spec.members = {"run_id",     "call_id",        "tenant",      "period_start", "initiator",
                  "started_at", "finished_at",    "retry_count", "outcome",      "events",
                  "posted",     "replayed",       "conflicts",   "unpriced",     "late",
                  "job_id",     "correlation_id", "source",      "actor"};
  spec.columns = {{"ID", true},
                  {"TENANT", false, true},
                  {"HOUR"},
                  {.title = "BY", .extra = true},
                  {.title = "STARTED", .extra = true},
                  {"OUTCOME"},
                  {"RETRY", true},
                  {"POSTED", true},
                  {"REPLAYED", true},
                  {"CONFLICTS", true},
                  {"UNPRICED", true},
                  {"LATE", true}};
  spec.cells = [](const Json& row) -> std::vector<Cell> {
    return {member_text(row, "run_id"),       member_text(row, "tenant"),
            member_text(row, "period_start"), member_text(row, "initiator"),
            member_text(row, "started_at"),   member_text(row, "outcome"),
            member_text(row, "retry_count"),  member_text(row, "posted"),
            member_text(row, "replayed"),     member_text(row, "conflicts"),
            member_text(row, "unpriced"),     member_text(row, "late")};
  };
  spec.nothing = "no run matches";
  return print_formatted(session, std::move(spec));
}

// ---- freezes

struct FreezeListOptions {
  Text tenant;
  bool all = false;
  PageOptions pages;
  FormatOption format;
};

Exit freezes(Session& session, const FreezeListOptions& o) {
  Json in = Json::object();
  set_text(in, "tenant", o.tenant);
  set_flag(in, "all", o.all);
  ListSpec spec = list_spec(o.pages, "cost.freezes", std::move(in));
  spec.format = o.format.get(session);
  spec.members = {"freeze_id", "tenant", "period_start", "period_end", "origin",   "until",
                  "reason",    "by",     "created_at",   "lifted_at",  "lifted_by"};
  spec.columns = {
      {"ID", true},        {"TENANT", false, true}, {"FROM"}, {"TO"}, {"ORIGIN"}, {"UNTIL"},
      {"BY", false, true}, {"REASON", false, true}};
  spec.cells = [](const Json& row) -> std::vector<Cell> {
    return {member_text(row, "freeze_id"),    member_text(row, "tenant"),
            member_text(row, "period_start"), member_text(row, "period_end"),
            member_text(row, "origin"),       member_text(row, "until"),
            member_text(row, "by"),           member_text(row, "reason")};
  };
  spec.nothing = "no freeze is in force";
  return print_formatted(session, std::move(spec));
}

// ---- explain

struct ExplainOptions {
  Texts ids;
  Text tenant, period, event;
};

void print_rows(Output& out, const std::string& title, const Json& rows,
                const std::vector<std::string>& members, const std::vector<Column>& columns) {
  if (rows.empty()) return;
  out.line("");
  out.line(title);
  Table table = out.table(columns);
  for (const Json& row : rows) {
    std::vector<Cell> cells;
    for (const std::string& member : members)
      cells.emplace_back(member_text(row, member.c_str()));
    table.add(std::move(cells));
  }
  out.text(table.take());
}

// A row with the price, the end and the invoice that are in it as objects.
Json flat_row(const Json& row) {
  Json out = row;
  const Json& event = row.at("event");
  out["units"] = event.is_null() ? Json() : event.at("units");
  out["meter"] = event.is_null() ? Json() : event.at("meter");
  out["price"] = Json();
  if (!row.at("price_id").is_null()) {
    out["price"] = "book " + row.at("price_id").get<std::string>();
  } else if (!event.is_null()) {
    out["price"] = event.at("price_per_million");
  }
  const Json& reversed = row.at("reversed_by");
  out["end"] = row.at("in_force").get<bool>() ? Json("in force")
               : reversed.is_null()           ? Json("taken back")
                                              : Json("reversed by " + reversed.get<std::string>());
  const Json& invoice = row.at("invoice");
  out["invoiced"] = invoice.is_null() ? Json()
                                      : Json(invoice.at("invoice_id").get<std::string>() + " " +
                                             invoice.at("state").get<std::string>());
  return out;
}

Exit explain(Session& session, const ExplainOptions& o) {
  Json in = Json::object();
  if (o.ids.size() > 1) fail_usage("too_many", "one ledger id at a time", "");
  if (!o.ids.empty()) in["ledger_id"] = o.ids.front();
  set_text(in, "tenant", o.tenant);
  set_time(in, "period", "--period", o.period);
  set_text(in, "event_id", o.event);
  const Json found = session.call("cost.explain", in);
  Output& out = session.out;
  if (out.json()) {
    out.object(found);
    return Exit::ok;
  }
  if (!found.at("freeze").is_null()) {
    out.warn("the hour is frozen: " + member_text(found.at("freeze"), "reason"));
  }
  print_rows(out, "events", found.at("events"),
             {"tenant", "event_id", "model", "meter", "units", "occurred_at", "state"},
             {{"TENANT", false, true},
              {"EVENT", false, true},
              {"MODEL", false, true},
              {"METER"},
              {"UNITS", true},
              {"USED"},
              {"STATE"}});
  print_rows(out, "other payloads", found.at("conflicts"),
             {"conflict_id", "event_id", "units", "price_per_million", "received_at", "state"},
             {{"ID", true},
              {"EVENT", false, true},
              {"UNITS", true},
              {"PRICE", true},
              {"RECEIVED"},
              {"STATE"}});
  Json rows = Json::array();
  for (const Json& row : found.at("rows"))
    rows.push_back(flat_row(row));
  print_rows(out, "ledger", rows,
             {"ledger_id", "source_type", "source_ref", "units", "meter", "price", "amount",
              "currency", "service_period", "posting_period", "end", "invoiced"},
             {{"ID", true},
              {"TYPE"},
              {"OF", false, true},
              {"UNITS", true},
              {"METER"},
              {"PRICE", true},
              {"AMOUNT", true},
              {"CURRENCY"},
              {.title = "HOUR", .extra = true},
              {.title = "BILLED IN", .extra = true},
              {"STATE"},
              {"INVOICE"}});
  print_rows(out, "summaries", found.at("summaries"),
             {"tenant", "period_start", "currency", "amount", "billed_amount", "ledger_rows"},
             {{"TENANT", false, true},
              {"HOUR"},
              {"CURRENCY"},
              {"AMOUNT", true},
              {"BILLED", true},
              {"ROWS", true}});
  if (found.at("truncated").get<bool>()) out.warn("there are more rows: see aiq cost ledger");
  return Exit::ok;
}

}  // namespace

void set_time(Json& in, const char* member, const std::string& option, const Text& text) {
  if (text) in[member] = format_rfc3339(time_value(option, *text));
}

void ScopeOptions::add_to(Command& command) {
  command.option("tenant", "T", tenant, "Of this tenant", ValueKind::tenant)
      .option("from", "T", from, "Hours of use from this one on")
      .option("to", "T", to, "Up to this one, which is not included");
}

Json ScopeOptions::input() const {
  Json in = Json::object();
  set_text(in, "tenant", tenant);
  set_time(in, "from", "--from", from);
  set_time(in, "to", "--to", to);
  return in;
}

void add_cost_views(Command cost, Session& session) {
  auto summary_options = std::make_shared<SummaryOptions>();
  Command summary_command = cost.add("summary", "what is owed, by time and by group");
  summary_options->add_to(summary_command);
  summary_command.run([summary_options, &session] { return summary(session, *summary_options); });

  auto ledger_options = std::make_shared<LedgerOptions>();
  Command ledger_command = cost.add("ledger", "the rows behind it, newest first");
  ledger_options->add_to(ledger_command);
  ledger_command.run([ledger_options, &session] { return ledger(session, *ledger_options); });

  auto explain_options = std::make_shared<ExplainOptions>();
  Command explain_command = cost.add("explain", "from an event to the invoice, and back");
  explain_command
      .operands("LEDGER_ID", explain_options->ids, "A ledger row; or one of the options", false)
      .option("tenant", "T", explain_options->tenant, "With --period or --event: of this tenant",
              ValueKind::tenant)
      .option("period", "T", explain_options->period, "The hour of use that begins then")
      .option("event", "ID", explain_options->event, "An event");
  explain_command.run([explain_options, &session] { return explain(session, *explain_options); });

  auto run_options = std::make_shared<RunOptions>();
  Command run_command = cost.add("runs", "who aggregated what, newest first");
  run_options->add_to(run_command);
  run_command.run([run_options, &session] { return runs(session, *run_options); });

  auto freeze_options = std::make_shared<FreezeListOptions>();
  Command freeze_command = cost.add("freezes", "freezes in force, newest first");
  freeze_command.option("tenant", "T", freeze_options->tenant, "Of this tenant", ValueKind::tenant)
      .flag("all", freeze_options->all, "Those that ended, too");
  freeze_options->pages.add_to(freeze_command, "ID");
  freeze_options->format.add_to(freeze_command);
  freeze_command.run([freeze_options, &session] { return freezes(session, *freeze_options); });
}

}  // namespace aiq::cli
