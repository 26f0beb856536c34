#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/redact.h"
#include "core/engine/breaker.h"
#include "core/engine/pace.h"
#include "core/engine/rate_limits.h"
#include "core/engine/rate_window.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

// Models that have something to show at this vendor: configured, running, paused or held back.
std::set<std::string> models_of(const Config& config, const StoreStats& stats,
                                const std::string& vendor) {
  std::set<std::string> out;
  for (const auto& [name, section] : config.models) {
    const VendorConfig* server = config.vendor_of_model(name);
    if (server != nullptr && server->name == vendor) out.insert(name);
  }
  for (const LaneHead& lane : stats.running)
    if (lane.lane.vendor == vendor) out.insert(lane.lane.model);
  for (const Pause& pause : stats.pauses)
    if (pause.vendor == vendor && !pause.model.empty()) out.insert(pause.model);
  for (const RateHold& hold : stats.holds)
    if (hold.vendor == vendor) out.insert(hold.model);
  for (const BreakerRow& row : stats.breakers)
    if (row.vendor == vendor) out.insert(row.model);
  for (const RateRow& row : stats.rates)
    if (row.scope == "model" && row.name.starts_with(vendor + " "))
      out.insert(row.name.substr(vendor.size() + 1));
  return out;
}

// A limit per minute: what it is, who says so, and how much of it the last minute has taken.
Json json_windows(const StoreStats& stats, const std::string& scope, const std::string& name,
                  std::int64_t rpm, std::int64_t tpm, UnixMs now) {
  Json out = Json::object();
  for (const auto& [unit, configured] : {std::pair{"requests", rpm}, std::pair{"tokens", tpm}}) {
    const auto row = std::find_if(stats.rates.begin(), stats.rates.end(), [&](const RateRow& r) {
      return r.scope == scope && r.name == name && r.unit == unit;
    });
    const RateRow* found = row == stats.rates.end() ? nullptr : &*row;
    const std::int64_t limit = limit_in_force(configured, found, now);
    if (limit == 0) continue;
    out[unit] = {{"limit", limit},
                 {"configured", configured == 0 ? Json(nullptr) : Json(configured)},
                 {"told", found == nullptr ? Json(nullptr) : json_number(found->reported)},
                 {"taken", found == nullptr ? 0 : RateWindow(*found).taken(now)}};
  }
  return out;
}

double model_pace(const StoreStats& stats, const std::string& vendor, const std::string& model,
                  UnixMs now) {
  for (const PaceRow& row : stats.paces)
    if (row.vendor == vendor && row.model == model) return pace_share(row, now);
  return 1.0;
}

Json model_state(const StoreStats& stats, const std::string& vendor, const std::string& model,
                 UnixMs now) {
  for (const Pause& pause : stats.pauses) {
    if (pause.vendor == vendor && pause.model == model && pause.tenant.empty())
      return {{"state", "paused"},
              {"reason", json_text(pause.reason)},
              {"until", json_time(pause.until)}};
  }
  for (const RateHold& hold : stats.holds) {
    if (hold.vendor == vendor && hold.model == model)
      return {{"state", "rate_limited"},
              {"reason", "the vendor asked to wait"},
              {"until", json_time(hold.until)}};
  }
  for (const BreakerRow& row : stats.breakers) {
    if (row.vendor != vendor || row.model != model) continue;
    switch (Breaker(row).state(now)) {
      case Breaker::State::open:
        return {{"state", "breaker_open"},
                {"reason", "too many requests failed"},
                {"until", json_time(row.open_until)}};
      case Breaker::State::half_open:
        return {{"state", "breaker_open"}, {"reason", "it is being tried out"}, {"until", nullptr}};
      case Breaker::State::closed:
        break;
    }
  }
  return {{"state", "ok"}, {"reason", nullptr}, {"until", nullptr}};
}

Json json_models(const Config& config, const StoreStats& stats, const std::string& vendor,
                 UnixMs now) {
  Json out = Json::array();
  for (const std::string& model : models_of(config, stats, vendor)) {
    int in_flight = 0;
    for (const LaneHead& lane : stats.running)
      if (lane.lane.vendor == vendor && lane.lane.model == model) in_flight += lane.in_flight;
    Json row = {{"model", model}};
    row.update(model_state(stats, vendor, model, now));
    row["in_flight"] = in_flight;
    const ModelConfig section = config.model(model);
    row["limits"] = json_windows(stats, "model", model_scope_name(vendor, model), section.rpm,
                                 section.tpm, now);
    row["pace"] = std::round(model_pace(stats, vendor, model, now) * 100) / 100;
    out.push_back(std::move(row));
  }
  return out;
}

Json json_vendor(const Config& config, const StoreStats& stats, const std::string& vendor,
                 UnixMs now) {
  const auto section = config.vendors.find(vendor);
  const VendorConfig* v = section == config.vendors.end() ? nullptr : &section->second;
  std::optional<UnixMs> last_seen;
  Json rate = Json::object();
  for (const VendorRow& row : stats.vendors) {
    if (row.vendor != vendor) continue;
    last_seen = row.last_seen;
    if (!row.rate.empty()) rate = Json::parse(row.rate, nullptr, /*allow_exceptions=*/false);
  }
  Json out = {{"vendor", vendor},
              {"api", v ? Json(v->api) : Json(nullptr)},
              {"base_url", v ? json_text(redact(v->base_url)) : Json(nullptr)}};
  out.update(vendor_state(stats, vendor, now));
  out["in_flight"] = vendor_in_flight(stats, vendor);
  out["max_in_flight"] = v ? Json(v->max_in_flight) : Json(nullptr);
  out["rpm"] = v ? Json(v->rpm) : Json(nullptr);
  out["tpm"] = v ? Json(v->tpm) : Json(nullptr);
  out["last_seen"] = json_time(last_seen);
  out["rate"] = std::move(rate);
  out["limits"] = json_windows(stats, "vendor", vendor, v ? v->rpm : 0, v ? v->tpm : 0, now);
  out["models"] = json_models(config, stats, vendor, now);
  return out;
}

Expected<Json, Failure> list_vendors(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {});
  if (in.failure()) return Unexpected{*in.failure()};
  const UnixMs now = env.clock.wall_ms();
  const StoreStats stats = reader.stats(now);
  Json rows = Json::array();
  for (const std::string& vendor : vendor_names(env.config, stats))
    rows.push_back(json_vendor(env.config, stats, vendor, now));
  return Json{{"rows", std::move(rows)}, {"next_after", nullptr}};
}

Expected<Json, Failure> show_vendor(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"vendor"});
  const std::string vendor = in.required_text("vendor");
  if (in.failure()) return Unexpected{*in.failure()};
  const UnixMs now = env.clock.wall_ms();
  const StoreStats stats = reader.stats(now);
  const std::vector<std::string> names = vendor_names(env.config, stats);
  if (std::find(names.begin(), names.end(), vendor) == names.end())
    return Unexpected{Failure{Exit::not_found, "no_such_vendor",
                              "vendor " + vendor + " is not configured",
                              did_you_mean(vendor, names)}};
  return json_vendor(env.config, stats, vendor, now);
}

constexpr Op kOps[] = {
    {.name = "vendor.list", .read = list_vendors, .prefers_daemon = true},
    {.name = "vendor.show", .read = show_vendor, .prefers_daemon = true},
};

}  // namespace

std::span<const Op> vendor_ops() {
  return kOps;
}

}  // namespace aiq
