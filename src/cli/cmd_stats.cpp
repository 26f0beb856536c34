// aiq stats

#include <array>
#include <cstdio>

#include "cli/commands.h"
#include "cli/render.h"
#include "cli/text.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

struct StatsOptions {
  Text by;
};

Json daemon_member(Session& session) {
  const auto daemon = session.executor().daemon();
  if (!daemon) {
    return {{"running", false},          {"pid", nullptr},
            {"version", nullptr},        {"in_flight", nullptr},
            {"uptime_seconds", nullptr}, {"reasons", Json::array()}};
  }
  if (!daemon->answers) {
    return {
        {"running", true},           {"pid", daemon->pid == 0 ? Json(nullptr) : Json(daemon->pid)},
        {"version", nullptr},        {"in_flight", nullptr},
        {"uptime_seconds", nullptr}, {"reasons", Json::array({"no_answer"})}};
  }
  return {{"running", true},
          {"pid", daemon->pid},
          {"version", daemon->version},
          {"in_flight", daemon->in_flight},
          {"uptime_seconds", daemon->uptime_seconds},
          {"reasons", daemon->reasons}};
}

// The operation's answer, with the daemon where the contract has it.
Json with_daemon(const Json& stats, const Json& daemon) {
  Json out = Json::object();
  for (const auto& [name, value] : stats.items()) {
    if (name == "vendors") out["daemon"] = daemon;
    out[name] = value;
  }
  if (!out.contains("daemon")) out["daemon"] = daemon;
  return out;
}

std::string seconds_text(const Json& seconds) {
  return seconds.is_number() ? short_age(seconds.get<std::int64_t>() * 1000) : "-";
}

std::string percent(const Json& ratio) {
  if (!ratio.is_number()) return "-";
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.1f%%", ratio.get<double>() * 100);
  return buffer.data();
}

void print_vendors(Output& out, const Json& vendors) {
  if (!vendors.is_array() || vendors.empty()) return;
  Table table = out.table({{"VENDOR", false, true},
                           {"STATE"},
                           {"IN FLIGHT", true},
                           {"UNTIL"},
                           {"REASON", false, true}});
  for (const Json& v : vendors) {
    const std::string state = member_text(v, "state");
    table.add({member_text(v, "vendor"),
               {state, tone_of(state)},
               member_text(v, "in_flight"),
               member_text(v, "until"),
               member_text(v, "reason")});
  }
  out.line("");
  out.text(table.take());
}

std::string percentiles(const Json& group, const char* name) {
  const Json values = group.value(name, Json::object());
  return member_text(values, "p50") + "/" + member_text(values, "p95") + "/" +
         member_text(values, "p99");
}

void print_groups(Output& out, const Json& groups, const std::string& by) {
  if (!groups.is_array()) return;
  const std::string title = by == "tenant" ? "TENANT" : by == "vendor" ? "VENDOR" : "MODEL";
  Table table = out.table({{title, false, true},
                           {"ATTEMPTS", true},
                           {"ERRORS", true},
                           {"SHARE", true},
                           {"MS P50/95/99", true},
                           {"WAITED P50/95/99", true}});
  for (const Json& group : groups) {
    table.add({member_text(group, by.c_str()), member_text(group, "attempts"),
               member_text(group, "errors"), percent(group.value("error_rate", Json())),
               percentiles(group, "latency_ms"), percentiles(group, "wait_ms")});
  }
  out.line("");
  out.text(table.take());
}

// One subject, broken into lines where a terminal would.
void print_line(Output& out, const std::string& label, const std::string& text) {
  constexpr std::size_t kIndent = 9;
  const std::size_t width = out.terminal().out ? out.terminal().width : SIZE_MAX;
  std::string left = label;
  for (const std::string& part : wrap(text, width - kIndent)) {
    left.resize(kIndent, ' ');
    out.line(left + part);
    left.clear();
  }
}

// Pauses of vendors stand in their table; these have no other place.
void print_pauses(Output& out, const Json& pauses) {
  for (const Json& p : pauses) {
    const bool tenant = p.at("tenant").is_string();
    const bool model = p.at("model").is_string();
    const bool vendor = p.at("vendor").is_string();
    if (vendor && !model && !tenant) continue;
    std::string what;
    if (vendor) what += "vendor " + member_text(p, "vendor") + " ";
    if (model) what += "model " + member_text(p, "model") + " ";
    if (tenant) what += "tenant " + member_text(p, "tenant") + " ";
    if (what.empty()) what = "the whole queue ";
    if (p.at("until").is_string()) what += "until " + member_text(p, "until") + " ";
    if (p.at("reason").is_string()) what += "(" + member_text(p, "reason") + ") ";
    what.pop_back();
    print_line(out, "paused", printable(what));
  }
}

std::string daemon_text(const Json& daemon) {
  if (!daemon.at("running").get<bool>()) return "not running";
  if (daemon.at("version").is_null()) return "running, pid " + member_text(daemon, "pid");
  return "running, pid " + member_text(daemon, "pid") + ", version " +
         member_text(daemon, "version") + ", up " + seconds_text(daemon.at("uptime_seconds")) +
         ", " + member_text(daemon, "in_flight") + " in flight";
}

// Why a running daemon starts nothing, or not everything.
std::string reason_text(const std::string& reason) {
  if (reason == "disk_low") return "the disk is low: nothing new is started (daemon.disk_reserve)";
  if (reason == "no_answer") return "it does not answer: stopped, or stuck in a write";
  if (reason == "storage_failing") return "the database can't be written; see the log of aiqd";
  return reason;
}

std::string jobs_text(const Json& jobs) {
  std::string out;
  for (const auto& [state, count] : jobs.items()) {
    if (count != 0) out += (out.empty() ? "" : ", ") + count.dump() + " " + state;
  }
  return out.empty() ? "none" : out;
}

std::string cache_text(const Json& cache) {
  const auto count = [&](const char* name) { return cache.value(name, std::int64_t{0}); };
  return counted(count("entries"), "entry", "entries") + ", " +
         counted(count("hits"), "hit", "hits") + ", " + member_text(cache, "stale_hits") +
         " stale, " + counted(count("misses"), "miss", "misses") + ", hit ratio " +
         percent(cache.value("hit_ratio", Json()));
}

void print_stats(Output& out, const Json& stats, const std::string& by) {
  print_line(out, "daemon", daemon_text(stats.at("daemon")));
  for (const Json& reason : stats.at("daemon").at("reasons"))
    print_line(out, "", reason_text(reason.get<std::string>()));
  print_line(out, "jobs", jobs_text(stats.at("jobs")));
  const Json& oldest = stats.at("oldest_queued_seconds");
  print_line(out, "oldest",
             oldest.is_null() ? "nothing waits" : "waiting for " + seconds_text(oldest));
  print_line(out, "cache", cache_text(stats.value("cache", Json::object())));
  print_line(out, "letters",
             counted(stats.at("dlq_open").get<std::int64_t>(), "dead letter", "dead letters") +
                 " open, " + counted(stats.at("locks").get<std::int64_t>(), "lock", "locks") +
                 " held");
  print_pauses(out, stats.value("pauses", Json::array()));
  print_vendors(out, stats.value("vendors", Json()));
  print_groups(out, stats.value("groups", Json()), by);
}

Exit stats(Session& session, const StatsOptions& o) {
  Json in = Json::object();
  set_text(in, "by", o.by);
  const Json answer = session.call("stats", in);
  const Json merged = with_daemon(answer, daemon_member(session));
  if (session.out.json()) {
    session.out.object(merged);
  } else {
    print_stats(session.out, merged, o.by.value_or(""));
  }
  return Exit::ok;
}

}  // namespace

void add_stats(Command root, Session& session) {
  auto options = std::make_shared<StatsOptions>();
  root.add("stats", "show the queue, the daemon, the vendors and the cache in numbers")
      .option("by", "WHAT", options->by, "Also per tenant, vendor or model", ValueKind::group_by)
      .run([options, &session] { return stats(session, *options); });
}

}  // namespace aiq::cli
