#pragma once
// The configuration that a running daemon works by, with the secrets it names. Replaced as a
// whole on reload; who works with one keeps it until done.

#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/config/config.h"

namespace aiq {

struct Runtime {
  Config config;
  std::map<std::string, std::string> credentials;  // by vendor; never logged
  std::string fingerprint;                         // config.fingerprint(), computed once

  // nullptr when the vendor is not configured (any more).
  [[nodiscard]] const VendorConfig* vendor(const std::string& name) const;
  [[nodiscard]] std::string_view credential(const std::string& vendor) const;
  // Changes when anything of the vendor's section or its secret changes.
  [[nodiscard]] std::string section_fingerprint(const VendorConfig& vendor) const;
};

// Reads every configured secret. Throws ConfigError when one can't be read. `in_flight_most`:
// what the process can carry; daemon.max_in_flight is held to it (not part of the fingerprint).
[[nodiscard]] std::shared_ptr<const Runtime> make_runtime(
    Config config, GetEnv env, int in_flight_most = std::numeric_limits<int>::max());

class RuntimeHolder {
 public:
  explicit RuntimeHolder(std::shared_ptr<const Runtime> runtime) : runtime_(std::move(runtime)) {}
  [[nodiscard]] std::shared_ptr<const Runtime> get() const {
    const std::lock_guard guard(mutex_);
    return runtime_;
  }
  void set(std::shared_ptr<const Runtime> runtime) {
    const std::lock_guard guard(mutex_);
    runtime_ = std::move(runtime);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Runtime> runtime_;  // guarded by mutex_
};

}  // namespace aiq
