#include "core/engine/rate_limits.h"

#include <algorithm>

namespace aiq {

std::vector<RateLimit> rate_limits_of(const Config& config, const Lane& lane, bool with_told) {
  std::vector<RateLimit> out;
  const auto add = [&out](const char* scope, const std::string& name, const char* unit,
                          std::int64_t limit, bool always) {
    if (limit > 0 || always) out.push_back({{scope, name, unit}, limit});
  };
  if (const auto v = config.vendors.find(lane.vendor); v != config.vendors.end()) {
    add("vendor", lane.vendor, "requests", v->second.rpm, false);
    add("vendor", lane.vendor, "tokens", v->second.tpm, false);
  }
  const auto m = config.models.find(lane.model);
  const std::int64_t rpm = m == config.models.end() ? 0 : m->second.rpm;
  const std::int64_t tpm = m == config.models.end() ? 0 : m->second.tpm;
  if (rpm > 0 || tpm > 0 || with_told) {
    const std::string name = model_scope_name(lane.vendor, lane.model);
    add("model", name, "requests", rpm, with_told);
    add("model", name, "tokens", tpm, with_told);
  }
  if (const auto t = config.tenants.find(lane.tenant); t != config.tenants.end()) {
    add("tenant", lane.tenant, "requests", t->second.rpm, false);
    add("tenant", lane.tenant, "tokens", t->second.tpm, false);
  }
  return out;
}

std::int64_t limit_in_force(std::int64_t configured, const RateRow* row, UnixMs now) {
  const bool told = row != nullptr && row->reported && *row->reported > 0 && row->reported_at &&
                    now - *row->reported_at < kReportedForMs;
  if (!told) return configured;
  return configured == 0 ? *row->reported : std::min(configured, *row->reported);
}

std::int64_t tokens_of(const Config& config, const std::string& model, std::int64_t prompt_tokens,
                       std::optional<std::int64_t> output_tokens) {
  if (output_tokens) return prompt_tokens + *output_tokens;
  const auto section = config.models.find(model);
  return prompt_tokens + (section == config.models.end() ? 0 : section->second.max_output_tokens);
}

}  // namespace aiq
