#include <algorithm>
#include <set>

#include "core/base/redact.h"
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
  return out;
}

Json model_state(const StoreStats& stats, const std::string& vendor, const std::string& model) {
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
  return {{"state", "ok"}, {"reason", nullptr}, {"until", nullptr}};
}

Json json_models(const Config& config, const StoreStats& stats, const std::string& vendor) {
  Json out = Json::array();
  for (const std::string& model : models_of(config, stats, vendor)) {
    int in_flight = 0;
    for (const LaneHead& lane : stats.running)
      if (lane.lane.vendor == vendor && lane.lane.model == model) in_flight += lane.in_flight;
    Json row = {{"model", model}};
    row.update(model_state(stats, vendor, model));
    row["in_flight"] = in_flight;
    out.push_back(std::move(row));
  }
  return out;
}

Json json_vendor(const Config& config, const StoreStats& stats, const std::string& vendor) {
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
  out.update(vendor_state(stats, vendor));
  out["in_flight"] = vendor_in_flight(stats, vendor);
  out["max_in_flight"] = v ? Json(v->max_in_flight) : Json(nullptr);
  out["rpm"] = v ? Json(v->rpm) : Json(nullptr);
  out["tpm"] = v ? Json(v->tpm) : Json(nullptr);
  out["last_seen"] = json_time(last_seen);
  out["rate"] = std::move(rate);
  out["models"] = json_models(config, stats, vendor);
  return out;
}

Expected<Json, Failure> list_vendors(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {});
  if (in.failure()) return Unexpected{*in.failure()};
  const StoreStats stats = reader.stats(env.clock.wall_ms());
  Json rows = Json::array();
  for (const std::string& vendor : vendor_names(env.config, stats))
    rows.push_back(json_vendor(env.config, stats, vendor));
  return Json{{"rows", std::move(rows)}, {"next_after", nullptr}};
}

Expected<Json, Failure> show_vendor(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"vendor"});
  const std::string vendor = in.required_text("vendor");
  if (in.failure()) return Unexpected{*in.failure()};
  const StoreStats stats = reader.stats(env.clock.wall_ms());
  const std::vector<std::string> names = vendor_names(env.config, stats);
  if (std::find(names.begin(), names.end(), vendor) == names.end())
    return Unexpected{Failure{Exit::not_found, "no_such_vendor",
                              "vendor " + vendor + " is not configured",
                              did_you_mean(vendor, names)}};
  return json_vendor(env.config, stats, vendor);
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
