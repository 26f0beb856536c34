#pragma once
// Leases what may start, at the end of the writer's transactions (Writer::Tail), and hands it to
// the AttemptRunner after the commit. Also brings waiting jobs to where they can be leased: due
// ones, expired deadlines, followers of a finished leader.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/engine/attempt.h"
#include "core/engine/runtime.h"
#include "core/store/writer.h"

namespace aiq {

class Dispatcher {
 public:
  struct Parts {
    Writer& writer;
    AttemptRunner& runner;
    RuntimeHolder& runtime;
    Clock& clock;
    Random& random;
    std::string worker;  // "pid:123", into the attempt rows
  };
  explicit Dispatcher(Parts parts);

  // Installs itself as the writer's tail. `scheduled`: called (writer thread) when
  // next_wake() became earlier, so that the owner can plan its wait anew.
  void start(std::function<void()> scheduled);
  // Something changed that may let a job start. Thread-safe, cheap.
  void wake() { parts_.writer.wake_tail(); }
  // Leasing on or off (low disk). Thread-safe. Due times and deadlines go on.
  void set_leasing(bool on) { leasing_ = on; }
  // Leases nothing more, for good. When it returns, everything leased was handed to the runner.
  // Never called on the writer thread.
  void stop_leasing();

  // When to wake up by itself at the latest; nullopt: only by events. Wall clock. Thread-safe.
  [[nodiscard]] std::optional<UnixMs> next_wake() const;
  // Wakes when that time has come, once. Thread-safe.
  void wake_if_due(UnixMs now);
  // Passes that failed since the last one that did not, and what the last of them met.
  // Thread-safe.
  [[nodiscard]] int failures() const { return failures_; }
  [[nodiscard]] StoreError::Kind last_failure() const { return last_failure_; }
  // Passes since start; a pass that leased nothing counts too. Thread-safe.
  [[nodiscard]] std::uint64_t passes() const { return passes_; }

 private:
  void pass(Store& store);
  void lease_all(Store& store, UnixMs now);
  void committed();
  void failed(const std::exception_ptr& error);
  void plan(std::optional<UnixMs> at);

  Parts parts_;
  std::function<void()> scheduled_;
  std::atomic<bool> leasing_{true}, stopped_{false};
  std::atomic<UnixMs> next_wake_{0};  // 0 = none
  std::atomic<std::uint64_t> passes_{0};
  std::atomic<int> failures_{0};
  std::atomic<StoreError::Kind> last_failure_{StoreError::Kind::io};
  // Of the running pass; writer thread only.
  std::vector<LeasedJob> leased_;
  std::optional<UnixMs> wake_at_;
  bool more_ = false;  // a bound was reached: pass again at once
};

}  // namespace aiq
