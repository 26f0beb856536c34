// aiq dlq list, show, stats, replay, discard

#include <algorithm>
#include <cctype>

#include "cli/bodies.h"
#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/render.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

struct DlqFilterOptions {
  Text reason, error_class, tenant, model, vendor, label, correlation_id, since, until;

  void add_to(Command& command) {
    command.section("Filters")
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
        .option("until", "T", until, "Dead before a time, or an age");
  }
  [[nodiscard]] bool any() const {
    return reason || error_class || tenant || model || vendor || label || correlation_id || since ||
           until;
  }

  [[nodiscard]] Json input(UnixMs now) const {
    Json in = Json::object();
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

struct ListOptions {
  Text state;
  DlqFilterOptions filter;
  PageOptions pages;
};

Exit list(Session& session, const ListOptions& o) {
  const UnixMs now = session.clock().wall_ms();
  Json in = o.filter.input(now);
  set_text(in, "state", o.state);
  const auto cells = [now](const Json& letter) -> std::vector<Cell> {
    return {member_text(letter, "dlq_id"),    member_text(letter, "job_id"),
            member_text(letter, "tenant"),    member_text(letter, "model"),
            member_text(letter, "reason"),    member_text(letter, "http_status"),
            age_text(letter, "dead_at", now), member_text(letter, "error")};
  };
  return print_list(session, "dlq.list", in, o.pages,
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
    print_with_bodies(out, letter);
    return Exit::ok;
  }
  print_members(out, letter, {"attempt_log", "payload_text", "original_payload_text"});
  print_attempts(out, letter.value("attempt_log", Json()));
  print_body(out, letter, "original_payload");
  print_body(out, letter, "payload");
  return Exit::ok;
}

// ---- stats

Exit stats(Session& session) {
  const Json answer = session.call("dlq.stats", Json::object());
  Output& out = session.out;
  if (out.json()) {
    out.object(answer);
    return Exit::ok;
  }
  const UnixMs now = session.clock().wall_ms();
  out.line("open: " + member_text(answer, "open"));
  for (const char* by : {"class", "reason", "model", "tenant"}) {
    const Json& groups = answer.at(std::string("by_") + by);
    if (groups.empty()) continue;
    std::string title = by;
    std::transform(title.begin(), title.end(), title.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    Table table = out.table({{title, false, true}, {"OPEN", true}, {"OLDEST", true}});
    for (const Json& group : groups) {
      table.add({member_text(group, by), member_text(group, "count"),
                 age_text(group, "oldest_dead_at", now)});
    }
    out.line("");
    out.text(table.take());
  }
  return Exit::ok;
}

// ---- replay

constexpr std::size_t kSlice = 200;  // letters per operation: each is one short transaction

struct ReplayOptions {
  Texts ids;
  DlqFilterOptions filter;
  bool all = false, dry_run = false;
  Text rate, deadline, note;
};

// "5/s", "30/m", "600/h" as the microseconds between two.
std::int64_t spacing_us(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string unit = slash == std::string::npos ? "" : text.substr(slash + 1);
  const std::int64_t second = 1'000'000;
  const std::int64_t per = unit == "s"   ? second
                           : unit == "m" ? 60 * second
                           : unit == "h" ? 3'600 * second
                                         : 0;
  if (per == 0) {
    fail_usage("invalid_option", "--rate: '" + text + "' is not a rate",
               "a number per s, m or h, such as 5/s");
  }
  return per / whole_value("--rate", text.substr(0, slash), 1, 1'000'000);
}

// Open letters that match, the oldest first.
std::vector<std::string> matching_letters(Session& session, const DlqFilterOptions& filter) {
  std::vector<std::string> ids;
  for_each_row(
      session, "dlq.list", filter.input(session.clock().wall_ms()), 0,
      [&](const Json& letter) { ids.push_back(letter.at("dlq_id").get<std::string>()); }, [] {});
  std::reverse(ids.begin(), ids.end());
  return ids;
}

template <class Slice>
void in_slices(const std::vector<std::string>& ids, const Slice& slice) {
  for (std::size_t at = 0; at < ids.size(); at += kSlice) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), at + kSlice));
    slice(std::vector<std::string>(begin, end));
  }
}

struct ReplayReport {
  std::int64_t replayed = 0, skipped = 0;
  Json jobs = Json::array();

  void add(const Json& answer) {
    replayed += answer.at("replayed").get<std::int64_t>();
    skipped += answer.at("skipped").get<std::int64_t>();
    for (const Json& job : answer.at("jobs"))
      jobs.push_back(job);
  }
};

ReplayReport preview(Session& session, const std::vector<std::string>& ids) {
  ReplayReport report;
  in_slices(ids, [&](const std::vector<std::string>& slice) {
    report.add(session.call("dlq.replay.preview", {{"ids", slice}}));
  });
  return report;
}

ReplayReport replay_letters(Session& session, const ReplayOptions& o,
                            const std::vector<std::string>& ids) {
  const UnixMs begun = session.clock().wall_ms();
  const std::int64_t spacing = o.rate ? spacing_us(*o.rate) : 0;
  Json in = Json::object();
  if (o.deadline) {
    in["deadline"] = format_rfc3339(future_value("--deadline", *o.deadline, begun));
  }
  set_text(in, "note", o.note);
  in["spacing_us"] = spacing;
  ReplayReport report;
  in_slices(ids, [&](const std::vector<std::string>& slice) {
    in["ids"] = slice;
    // The next slice goes on where this one ended, also when some of it were skipped.
    if (spacing > 0) in["run_at"] = format_rfc3339(begun + report.replayed * spacing / 1000);
    report.add(session.call("dlq.replay", in));
  });
  return report;
}

void print_replay(Session& session, const ReplayReport& report, bool dry_run) {
  Output& out = session.out;
  if (out.json()) {
    Json object = {{"replayed", report.replayed}, {"skipped", report.skipped}};
    if (dry_run) object["dry_run"] = true;
    object["jobs"] = report.jobs;
    out.object(object);
    return;
  }
  Table table =
      out.table({{"ID", true}, {"JOB", true}, {"GENERATION", true}, {"OUTCOME", false, true}});
  for (const Json& job : report.jobs) {
    std::string outcome = member_text(job, "outcome");
    if (outcome == "duplicate") outcome += " of live job " + member_text(job, "duplicate_of");
    if (outcome == "replayed" && dry_run) outcome = "would be replayed";
    table.add({member_text(job, "dlq_id"), member_text(job, "job_id"),
               member_text(job, "generation"), outcome});
  }
  if (!table.empty()) out.text(table.take());
  out.flush();
  out.note((dry_run ? "would replay " : "replayed ") + std::to_string(report.replayed) +
           ", skipped " + std::to_string(report.skipped));
}

Exit replay(Session& session, const ReplayOptions& o) {
  const bool by_filter = o.all || o.filter.any();
  if (o.ids.empty() != by_filter) {
    fail_usage("missing_argument",
               o.ids.empty() ? "aiq dlq replay needs ids, filters or --all"
                             : "ids exclude filters and --all",
               "for example aiq dlq replay 3, or aiq dlq replay --class server_error");
  }
  if (o.rate) static_cast<void>(spacing_us(*o.rate));  // before anything is asked
  const std::vector<std::string> ids = by_filter ? matching_letters(session, o.filter) : o.ids;
  // All of them once, without writing: an unknown id replays nothing.
  const ReplayReport would = preview(session, ids);
  if (o.dry_run) {
    print_replay(session, would, true);
    return Exit::ok;
  }
  const ReplayReport report = replay_letters(session, o, ids);
  print_replay(session, report, false);
  if (report.replayed > 0 && session.executor().where() == Executor::Where::file) {
    session.out.note("queued, but nothing is running: start aiqd, or aiqd --until-idle");
  }
  return Exit::ok;
}

// ---- discard

Exit discard(Session& session, const Texts& ids, const Text& note) {
  if (!note || note->empty()) {
    fail_usage("missing_option", "aiq dlq discard needs --note",
               "say why: it stays with the dead letter");
  }
  const Json answer = session.call("dlq.discard", {{"ids", ids}, {"note", *note}});
  Output& out = session.out;
  for (const Json& row : answer.at("rows")) {
    if (out.json()) {
      out.object(row);
    } else {
      out.line(member_text(row, "dlq_id") + " discarded; job " + member_text(row, "job_id") +
               " has failed");
    }
  }
  return Exit::ok;
}

}  // namespace

void add_dlq(Command root, Session& session) {
  Command dlq = root.add("dlq", "dead letters: jobs that were given up");
  auto options = std::make_shared<ListOptions>();
  Command list_command = dlq.add("list", "list dead letters, newest first");
  options->filter.add_to(list_command);
  list_command
      .option("state", "S", options->state, "open, replayed, discarded or all; default open",
              ValueKind::letter_state)
      .section("Pages");
  options->pages.add_to(list_command, "ID");
  list_command.run([options, &session] { return list(session, *options); });

  auto id = std::make_shared<Text>();
  dlq.add("show", "show one, with its request and attempts")
      .operand("ID", *id, "As dlq list shows it; not the job's", ValueKind::dead_letter)
      .run([id, &session] { return show(session, **id); });

  dlq.add("stats", "count open ones by class, reason, model and tenant").run([&session] {
    return stats(session);
  });

  auto replay_options = std::make_shared<ReplayOptions>();
  Command replay_command = dlq.add("replay", "queue their jobs again: same job, next generation");
  replay_command
      .operands("ID", replay_options->ids, "As dlq list shows them", false, ValueKind::dead_letter)
      .flag("all", replay_options->all, "All open ones")
      .flag("dry-run", replay_options->dry_run, "Tell what would be done; write nothing")
      .option("rate", "N/s", replay_options->rate, "Spread by due times: N per s, m or h")
      .option("deadline", "D", replay_options->deadline,
              "Not after: a duration from now, or a time")
      .option("note", "TEXT", replay_options->note, "Kept with each dead letter");
  replay_options->filter.add_to(replay_command);
  replay_command.run([replay_options, &session] { return replay(session, *replay_options); });

  auto discard_ids = std::make_shared<Texts>();
  auto note = std::make_shared<Text>();
  dlq.add("discard", "give up for good: the jobs become failed")
      .operands("ID", *discard_ids, "As dlq list shows them", true, ValueKind::dead_letter)
      .option("note", "TEXT", *note, "Why; required, kept with the dead letter")
      .run([discard_ids, note, &session] { return discard(session, *discard_ids, *note); });
  add_dlq_edit(dlq, session);
}

}  // namespace aiq::cli
