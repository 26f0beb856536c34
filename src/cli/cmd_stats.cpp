// aiq stats

#include <algorithm>
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
    return {{"running", false},
            {"pid", nullptr},
            {"version", nullptr},
            {"in_flight", nullptr},
            {"uptime_seconds", nullptr}};
  }
  return {{"running", true},
          {"pid", daemon->pid},
          {"version", daemon->version},
          {"in_flight", daemon->in_flight},
          {"uptime_seconds", daemon->uptime_seconds}};
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

// The first member of a group is its name; the others are whatever the operation measures.
void print_groups(Output& out, const Json& groups) {
  if (!groups.is_array() || groups.empty()) return;
  std::vector<Column> columns;
  for (const auto& [name, value] : groups.front().items()) {
    std::string title = name;
    std::transform(title.begin(), title.end(), title.begin(), [](char c) {
      return c == '_' ? ' ' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    for (const std::string_view common : {" MS", "LATENCY ", "ERROR "}) {
      if (common == "ERROR ") break;
      if (const std::size_t at = title.find(common); at != std::string::npos) {
        title.replace(at, common.size(), "");
      }
    }
    columns.push_back({title, !columns.empty(), columns.empty()});
  }
  Table table = out.table(columns);
  for (const Json& group : groups) {
    std::vector<Cell> row;
    for (const auto& [name, value] : group.items()) {
      row.emplace_back(name == "error_rate" ? percent(value) : scalar_text(value));
    }
    if (row.size() == columns.size()) table.add(std::move(row));
  }
  out.line("");
  out.text(table.take());
}

void print_stats(Output& out, const Json& stats) {
  const Json& daemon = stats.at("daemon");
  const bool running = daemon.at("running").get<bool>();
  out.line("daemon   " + (running ? "running, pid " + member_text(daemon, "pid") + ", version " +
                                        member_text(daemon, "version") + ", up " +
                                        seconds_text(daemon.at("uptime_seconds")) + ", " +
                                        member_text(daemon, "in_flight") + " in flight"
                                  : out.tone("not running", Tone::warn)));
  std::string jobs;
  for (const auto& [state, count] : stats.at("jobs").items()) {
    if (count == 0) continue;
    jobs += (jobs.empty() ? "" : ", ") + count.dump() + " " + out.tone(state, tone_of(state));
  }
  out.line("jobs     " + (jobs.empty() ? "none" : jobs));
  out.line("oldest   " + seconds_text(stats.at("oldest_queued_seconds")) + " waiting");
  const Json cache = stats.value("cache", Json::object());
  out.line("cache    " + member_text(cache, "entries") + " entries, " + member_text(cache, "hits") +
           " hits, " + member_text(cache, "stale_hits") + " stale, " +
           member_text(cache, "misses") + " misses, hit ratio " +
           percent(cache.value("hit_ratio", Json())));
  out.line("letters  " + member_text(stats, "dlq_open") + " dead letters open, " +
           member_text(stats, "locks") + " locks held");
  print_vendors(out, stats.value("vendors", Json()));
  print_groups(out, stats.value("groups", Json()));
}

Exit stats(Session& session, const StatsOptions& o) {
  if (o.by && *o.by != "tenant" && *o.by != "vendor" && *o.by != "model") {
    fail_usage("invalid_option", "--by takes tenant, vendor or model, not '" + *o.by + "'", "");
  }
  Json in = Json::object();
  set_text(in, "by", o.by);
  const Json answer = session.call("stats", in);
  const Json merged = with_daemon(answer, daemon_member(session));
  if (session.out.json()) {
    session.out.object(merged);
  } else {
    print_stats(session.out, merged);
  }
  return Exit::ok;
}

}  // namespace

void add_stats(Command root, Session& session) {
  auto options = std::make_shared<StatsOptions>();
  root.add("stats", "show the queue, the daemon, the vendors and the cache in numbers")
      .option("by", "WHAT", options->by, "Also per tenant, vendor or model")
      .run([options, &session] { return stats(session, *options); });
}

}  // namespace aiq::cli
