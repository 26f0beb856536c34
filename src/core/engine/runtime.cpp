#include "core/engine/runtime.h"

#include <utility>

#include "core/base/sha256.h"

namespace aiq {

const VendorConfig* Runtime::vendor(const std::string& name) const {
  const auto found = config.vendors.find(name);
  return found == config.vendors.end() ? nullptr : &found->second;
}

std::string_view Runtime::credential(const std::string& vendor) const {
  const auto found = credentials.find(vendor);
  return found == credentials.end() ? std::string_view() : std::string_view(found->second);
}

std::string Runtime::section_fingerprint(const VendorConfig& vendor) const {
  Sha256 hash;
  for (const std::string* text :
       {&vendor.name, &vendor.api, &vendor.base_url, &vendor.api_key_env, &vendor.api_key_file,
        &vendor.auth, &vendor.anthropic_version, &vendor.idempotency_header, &vendor.attempt_header,
        &vendor.ca_file, &vendor.proxy, &vendor.price_vendor}) {
    hash.update_field(*text);
  }
  for (const auto& [name, value] : vendor.headers) {
    hash.update_field(name);
    hash.update_field(value);
  }
  for (const std::int64_t number :
       {vendor.connect_timeout_ms, vendor.first_byte_timeout_ms, vendor.total_timeout_ms,
        vendor.max_connection_age_ms, std::int64_t{vendor.max_in_flight}, vendor.rpm, vendor.tpm}) {
    hash.update_field(std::to_string(number));
  }
  // Only the hash of the whole is kept, so the secret can't be read back from it.
  hash.update_field(credential(vendor.name));
  return hash.hex();
}

std::shared_ptr<const Runtime> make_runtime(Config config, GetEnv env, int in_flight_most) {
  auto runtime = std::make_shared<Runtime>();
  // All that is missing at once: an operator should not find the second at the second start.
  std::string missing;
  for (const auto& [name, vendor] : config.vendors) {
    try {
      runtime->credentials.emplace(name, read_credential(vendor, env));
    } catch (const ConfigError& error) {
      missing += missing.empty() ? "" : "; ";
      missing += error.what();
    }
  }
  if (!missing.empty()) throw ConfigError(missing);
  runtime->config = std::move(config);
  runtime->fingerprint = runtime->config.fingerprint();
  int& in_flight = runtime->config.daemon.max_in_flight;
  if (in_flight == 0 || in_flight > in_flight_most) in_flight = in_flight_most;
  return runtime;
}

}  // namespace aiq
