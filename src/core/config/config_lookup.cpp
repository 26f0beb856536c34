#include <algorithm>

#include "core/config/config.h"

namespace aiq {
namespace {

void apply(const CacheOverride& over, CacheConfig& cache) {
  if (over.policy) cache.policy = *over.policy;
  if (over.soft_ttl_ms) cache.soft_ttl_ms = *over.soft_ttl_ms;
  if (over.hard_ttl_ms) cache.hard_ttl_ms = *over.hard_ttl_ms;
}

}  // namespace

const VendorConfig* Config::vendor_of_model(const std::string& model) const {
  const auto section = models.find(model);
  std::string name = section == models.end() ? "" : section->second.vendor;
  if (name.empty()) name = default_vendor;
  if (name.empty() && vendors.size() == 1) return &vendors.begin()->second;
  const auto vendor = vendors.find(name);
  return vendor == vendors.end() ? nullptr : &vendor->second;
}

TenantConfig Config::tenant(const std::string& name) const {
  const auto found = tenants.find(name);
  if (found != tenants.end()) return found->second;
  TenantConfig tenant;
  tenant.name = name;
  return tenant;
}

ModelConfig Config::model(const std::string& name) const {
  ModelConfig model;
  if (const auto found = models.find(name); found != models.end()) model = found->second;
  model.name = name;
  if (const VendorConfig* vendor = vendor_of_model(name)) model.vendor = vendor->name;
  return model;
}

CacheConfig Config::cache_for(const std::string& tenant_name, const std::string& model_name) const {
  CacheConfig out = cache;
  if (const auto found = models.find(model_name); found != models.end()) {
    apply(found->second.cache, out);
  }
  if (const auto found = tenants.find(tenant_name); found != tenants.end()) {
    apply(found->second.cache, out);
  }
  // One side may lower the end of life that another side's soft TTL was written for.
  out.soft_ttl_ms = std::min(out.soft_ttl_ms, out.hard_ttl_ms);
  return out;
}

}  // namespace aiq
