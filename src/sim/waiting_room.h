#pragma once
// Exchanges that wait: for a time, for a release, or in vain because their client went away.
// One thread of its own watches the clock and the clients. Thread-safe.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/base/duration.h"

namespace aiq::sim {

// Why a wait ended.
enum class Woken { due, released, client_gone, stopping };

class WaitingRoom {
 public:
  struct Waiter {
    int fd = -1;                      // of the client's connection; open for as long as it waits
    std::optional<MonoMs> due;        // none = until released
    std::string rule;                 // by which it is released
    std::function<void(Woken)> wake;  // called once, on any thread; must not enter the room again
  };

  explicit WaitingRoom(Clock& clock);
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  // Once the room is closed a waiter is woken at once, with `stopping`.
  void enter(Waiter waiter);
  // Wakes the waiters without a due time, all or those of one rule. Returns how many.
  std::int64_t release(const std::optional<std::string>& rule);
  // Wakes all; the room stays closed.
  void close();

  [[nodiscard]] std::int64_t held() const;          // without a due time
  [[nodiscard]] std::int64_t clients_gone() const;  // so far

 private:
  void run();
  void wake_due(MonoMs now);
  void wake_gone();
  [[nodiscard]] DurationMs next_wait(MonoMs now) const;

  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiter> waiters_;
  std::int64_t clients_gone_ = 0;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace aiq::sim
