// aiq usage import, usage list, usage conflicts

#include "cli/commands.h"
#include "cli/csv.h"
#include "cli/lines.h"
#include "cli/render.h"
#include "cli/values.h"
#include "core/base/json_canonical.h"

namespace aiq::cli {
namespace {

constexpr std::size_t kSliceLines = 500;
constexpr std::size_t kSliceBytes = std::size_t{1} << 20;
// Of an answer in JSON; people see each as it comes.
constexpr std::size_t kErrorsKept = 10'000;

// ---- import

class Import {
 public:
  Import(Session& session, const std::string& path) : session_(session), lines_("FILE", path) {}

  Exit run() {
    std::string line;
    while (lines_.next(line)) {
      if (slice_.empty()) first_ = lines_.number();
      add(line);
      if (slice_.size() >= kSliceLines || bytes_ >= kSliceBytes) send();
    }
    send();
    session_.out.progress("");
    print();
    if (total_["rejected"].get<std::int64_t>() > 0) return Exit::usage;
    return total_["conflicts"].get<std::int64_t>() > 0 ? Exit::conflict : Exit::ok;
  }

 private:
  // What can't be put into a request is reported here, and stands in it as a blank line.
  void add(std::string& line) {
    const bool utf8 = is_valid_utf8(line);
    if (lines_.too_long() || !utf8) {
      const bool long_line = lines_.too_long();
      note_error({{"line", lines_.number()},
                  {"code", long_line ? "too_large" : "invalid_utf8"},
                  {"message", long_line ? "a line has at most 1 MiB" : "not valid UTF-8"}});
      total_["rejected"] = total_["rejected"].get<std::int64_t>() + 1;
      line.clear();
    }
    bytes_ += line.size();
    slice_.push_back(line);
  }

  void send() {
    if (slice_.empty()) return;
    const Json answer = session_.call("usage.import", {{"lines", slice_}, {"first_line", first_}});
    for (const char* name : {"accepted", "duplicates", "conflicts", "rejected"})
      total_[name] = total_[name].get<std::int64_t>() + answer.at(name).get<std::int64_t>();
    for (const Json& error : answer.at("errors"))
      note_error(error);
    slice_.clear();
    bytes_ = 0;
    session_.out.progress(std::to_string(lines_.number()) + " lines");
  }

  void note_error(const Json& error) {
    if (errors_.size() < kErrorsKept) errors_.push_back(error);
    if (!session_.out.json()) {
      session_.out.warn("line " + error.at("line").dump() + ": " +
                        error.at("message").get<std::string>() + " (" +
                        error.at("code").get<std::string>() + ")");
    }
  }

  void print() {
    Json out = total_;
    if (session_.out.json()) {
      out["errors"] = errors_;
      session_.out.object(out);
    } else {
      print_members(session_.out, out, {}, true);
    }
  }

  Session& session_;
  LineReader lines_;
  Json slice_ = Json::array();
  std::size_t bytes_ = 0;
  std::int64_t first_ = 1;
  Json total_ = {{"accepted", 0}, {"duplicates", 0}, {"conflicts", 0}, {"rejected", 0}};
  Json errors_ = Json::array();
};

// ---- list

struct UsageListOptions {
  Text tenant, model, event, since, until, state;
  PageOptions pages;
  FormatOption format;

  void add_to(Command& command) {
    command.section("Filters")
        .option("tenant", "T", tenant, "Of this tenant", ValueKind::tenant)
        .option("model", "M", model, "Of this model", ValueKind::model)
        .option("event", "ID", event, "With this event id")
        .option("since", "T", since, "Used at or after a time, or an age such as 1h")
        .option("until", "T", until, "Used before a time, or an age")
        .option("state", "S", state, "posted, unposted or unpriced", ValueKind::usage_state)
        .section("Output");
    pages.add_to(command, "ID");
    format.add_to(command);
  }

  [[nodiscard]] Json input(UnixMs now) const {
    Json in = Json::object();
    set_text(in, "tenant", tenant);
    set_text(in, "model", model);
    set_text(in, "event_id", event);
    set_past(in, "since", "--since", since, now);
    set_past(in, "until", "--until", until, now);
    set_text(in, "state", state);
    return in;
  }
};

Exit list(Session& session, const UsageListOptions& o) {
  ListSpec spec = list_spec(o.pages, "usage.list", o.input(session.clock().wall_ms()));
  spec.format = o.format.get(session);
  spec.members = {"usage_id",    "state",       "event_id", "tenant",         "vendor",
                  "model",       "meter",       "units",    "currency",       "price_per_million",
                  "occurred_at", "received_at", "job_id",   "correlation_id", "source"};
  spec.columns = {{"ID", true},
                  {"TENANT", false, true},
                  {"EVENT", false, true},
                  {"MODEL", false, true},
                  {"METER"},
                  {"UNITS", true},
                  {"USED"},
                  {"STATE"}};
  spec.cells = [](const Json& row) -> std::vector<Cell> {
    return {member_text(row, "usage_id"),    member_text(row, "tenant"),
            member_text(row, "event_id"),    member_text(row, "model"),
            member_text(row, "meter"),       member_text(row, "units"),
            member_text(row, "occurred_at"), member_text(row, "state")};
  };
  spec.nothing = "no usage matches";
  return print_formatted(session, std::move(spec));
}

// ---- conflicts

struct ConflictListOptions {
  Text state;
  PageOptions pages;
  FormatOption format;
};

Exit list_conflicts(Session& session, const ConflictListOptions& o) {
  Json in = Json::object();
  set_text(in, "state", o.state);
  ListSpec spec = list_spec(o.pages, "usage.conflicts.list", std::move(in));
  spec.format = o.format.get(session);
  spec.members = {
      "conflict_id", "state",      "event_id",          "tenant",   "vendor",      "model",
      "meter",       "units",      "price_per_million", "currency", "occurred_at", "received_at",
      "reason",      "decided_by", "decided_at"};
  spec.columns = {
      {"ID", true}, {"TENANT", false, true}, {"EVENT", false, true}, {"MODEL", false, true},
      {"METER"},    {"UNITS", true},         {"PRICE", true},        {"RECEIVED"},
      {"STATE"}};
  spec.cells = [](const Json& row) -> std::vector<Cell> {
    return {member_text(row, "conflict_id"),
            member_text(row, "tenant"),
            member_text(row, "event_id"),
            member_text(row, "model"),
            member_text(row, "meter"),
            member_text(row, "units"),
            member_text(row, "price_per_million"),
            member_text(row, "received_at"),
            member_text(row, "state")};
  };
  spec.nothing = "no conflict matches";
  return print_formatted(session, std::move(spec));
}

struct DecisionOptions {
  Text id, reason, by;
};

Exit decide(Session& session, const std::string& op, const DecisionOptions& o) {
  Json in = {{"conflict_id", *o.id}};
  set_text(in, "reason", o.reason);
  set_text(in, "by", o.by);
  const Json done = session.call(op, in);
  if (session.out.json()) {
    session.out.object(done);
  } else {
    print_members(session.out, done);
  }
  return Exit::ok;
}

void add_decision(Command parent, Session& session, const std::string& name,
                  const std::string& summary) {
  auto options = std::make_shared<DecisionOptions>();
  Command command = parent.add(name, summary);
  command.operand("ID", options->id, "As usage conflicts list shows it")
      .option("reason", "TEXT", options->reason, "Why")
      .option("by", "WHO", options->by, "Who decided; default: who runs this");
  command.run(
      [options, &session, name] { return decide(session, "usage.conflicts." + name, *options); });
}

}  // namespace

void add_usage(Command root, Session& session) {
  Command usage = root.add("usage", "metered use: import it, look at it, decide conflicts");

  auto file = std::make_shared<Text>();
  usage.add("import", "take usage events from a file of JSON lines")
      .operand("FILE", *file, "JSON Lines; - = standard input", ValueKind::file)
      .run([file, &session] { return Import(session, **file).run(); });

  auto options = std::make_shared<UsageListOptions>();
  Command list_command = usage.add("list", "list usage events, newest first");
  options->add_to(list_command);
  list_command.run([options, &session] { return list(session, *options); });

  Command conflicts = usage.add("conflicts", "events that came again with other contents");
  auto of_list = std::make_shared<ConflictListOptions>();
  Command conflict_list = conflicts.add("list", "list them, newest first");
  conflict_list.option("state", "S", of_list->state, "open, kept, replaced or all; default open",
                       ValueKind::conflict_state);
  of_list->pages.add_to(conflict_list, "ID");
  of_list->format.add_to(conflict_list);
  conflict_list.run([of_list, &session] { return list_conflicts(session, *of_list); });
  add_decision(conflicts, session, "keep", "the first payload holds, the other one never counts");
  add_decision(conflicts, session, "replace", "the other payload counts, with new postings");
}

}  // namespace aiq::cli
