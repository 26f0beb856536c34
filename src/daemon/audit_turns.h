#pragma once
// The daemon's audit of the books every daemon.audit_every: what it finds is logged, a line per
// check that found something.
//
// It reads on a connection and a thread of its own: a check of a large ledger takes seconds, in
// which leases must be renewed.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/engine/runtime.h"

namespace aiq {

class AuditTurns {
 public:
  AuditTurns(RuntimeHolder& runtime, Clock& clock, std::string db_path);
  ~AuditTurns();  // stop()
  AuditTurns(const AuditTurns&) = delete;
  AuditTurns& operator=(const AuditTurns&) = delete;

  void start();
  // Waits for the check that is under way.
  void stop();

 private:
  void loop();
  void audit();
  [[nodiscard]] bool stopping();

  RuntimeHolder& runtime_;
  Clock& clock_;
  const std::string db_path_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace aiq
