#include <algorithm>
#include <set>

#include "core/engine/breaker.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

constexpr DurationMs kGroupWindowMs = 24LL * 3600 * 1000;  // `--by` without `since`

Json json_percentiles(const std::optional<DurationMs>& p50, const std::optional<DurationMs>& p95,
                      const std::optional<DurationMs>& p99) {
  return {{"p50", json_number(p50)}, {"p95", json_number(p95)}, {"p99", json_number(p99)}};
}

Json json_groups(const std::vector<StatsGroup>& groups, const std::string& by) {
  Json out = Json::array();
  for (const StatsGroup& g : groups) {
    const Json rate = g.attempts == 0
                          ? Json(nullptr)
                          : Json(static_cast<double>(g.errors) / static_cast<double>(g.attempts));
    out.push_back(
        {{by, g.name},
         {"attempts", g.attempts},
         {"errors", g.errors},
         {"error_rate", rate},
         {"latency_ms", json_percentiles(g.latency_p50_ms, g.latency_p95_ms, g.latency_p99_ms)},
         {"wait_ms", json_percentiles(g.wait_p50_ms, g.wait_p95_ms, g.wait_p99_ms)}});
  }
  return out;
}

Json json_vendors(const Config& config, const StoreStats& stats, UnixMs now) {
  Json out = Json::array();
  for (const std::string& vendor : vendor_names(config, stats)) {
    Json row = {{"vendor", vendor}};
    row.update(vendor_state(stats, vendor, now));
    row["in_flight"] = vendor_in_flight(stats, vendor);
    out.push_back(std::move(row));
  }
  return out;
}

Expected<Json, Failure> stats(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"by", "since"});
  const std::string by = in.text("by");
  if (!by.empty() && by != "tenant" && by != "vendor" && by != "model")
    in.problem("invalid_option", "by: " + by + " is none of tenant, vendor, model");
  const UnixMs now = env.clock.wall_ms();
  const UnixMs since = in.instant("since").value_or(now - kGroupWindowMs);
  if (in.failure()) return Unexpected{*in.failure()};

  const StoreStats s = reader.stats(now);
  Json jobs = Json::object();
  for (int i = 0; i < kJobStateCount; ++i)
    jobs[std::string(to_string(static_cast<JobState>(i)))] = s.jobs[static_cast<std::size_t>(i)];
  Json pauses = Json::array();
  for (const Pause& pause : s.pauses)
    pauses.push_back(json_pause(pause));
  Json out = Json::object();
  out["jobs"] = std::move(jobs);
  out["oldest_queued_seconds"] =
      s.oldest_due ? Json(std::max<UnixMs>(0, now - *s.oldest_due) / 1000) : Json(nullptr);
  out["vendors"] = json_vendors(env.config, s, now);
  out["pauses"] = std::move(pauses);
  out["cache"] = json_cache_stats(s.cache);
  out["dlq_open"] = s.dlq_open;
  out["locks"] = s.locks;
  if (!by.empty()) out["groups"] = json_groups(reader.stats_by(by, since), by);
  return out;
}

constexpr Op kOps[] = {
    {.name = "stats", .read = stats, .prefers_daemon = true, .long_with = "by"},
};

}  // namespace

std::span<const Op> stats_ops() {
  return kOps;
}

std::vector<std::string> vendor_names(const Config& config, const StoreStats& stats) {
  std::set<std::string> names;
  for (const auto& [name, section] : config.vendors)
    names.insert(name);
  for (const VendorRow& row : stats.vendors)
    names.insert(row.vendor);
  return {names.begin(), names.end()};
}

int vendor_in_flight(const StoreStats& stats, const std::string& vendor) {
  int total = 0;
  for (const LaneHead& lane : stats.running)
    total += lane.lane.vendor == vendor ? lane.in_flight : 0;
  return total;
}

Json vendor_state(const StoreStats& stats, const std::string& vendor, UnixMs now) {
  for (const Pause& pause : stats.pauses) {
    if (pause.vendor == vendor && pause.model.empty() && pause.tenant.empty())
      return {{"state", "paused"},
              {"reason", json_text(pause.reason)},
              {"until", json_time(pause.until)}};
  }
  for (const BreakerRow& row : stats.breakers) {
    if (row.vendor == vendor && Breaker(row).state(now) != Breaker::State::closed)
      return {{"state", "breaker_open"},
              {"reason", "too many requests for " + row.model + " failed"},
              {"until", json_time(row.open_until)}};
  }
  const bool proven =
      std::any_of(stats.vendors.begin(), stats.vendors.end(),
                  [&vendor](const VendorRow& row) { return row.vendor == vendor && row.proven; });
  return {{"state", proven ? "ok" : "unproven"}, {"reason", nullptr}, {"until", nullptr}};
}

}  // namespace aiq
