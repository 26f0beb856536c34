#pragma once
// aiqd: owns the database of one host and works off its queue.
//
// Start: configuration -> owner lock -> database (migrated) -> socket (503) -> recovery ->
// leasing -> ready. Stop: no new lease, running requests end or are given back within
// drain_timeout, their results first; then the API, the writer and the lock.

#include <cstdint>
#include <string>

#include "core/base/errors.h"

namespace aiq {

struct DaemonOptions {
  std::string config;  // --config
  std::string db;      // --db
  bool check = false;  // only say whether it could run
  bool until_idle = false;
};

// Runs until told to stop. Messages for people go to the log. Throws ConfigError, StoreError and
// std::runtime_error for what prevents a start.
[[nodiscard]] Exit run_daemon(const DaemonOptions& options);

}  // namespace aiq
