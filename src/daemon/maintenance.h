#pragma once
// The thread that does what time asks for: wakes the dispatcher when a job is due, renews leases,
// stores what could not be stored, watches the disk, evicts the cache, sweeps orphans, removes what
// is over, aggregates.
//
// It waits on the monotonic clock, at most a second at a time, and reads the wall clock anew each
// time. When that was set back, the times of holds and retries are set back with it.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/engine/attempt.h"
#include "core/engine/clock_watch.h"
#include "core/engine/dispatcher.h"
#include "core/engine/runtime.h"
#include "core/store/prune.h"
#include "core/store/writer.h"
#include "daemon/cost_turns.h"

namespace aiq {

class Maintenance {
 public:
  struct Parts {
    Writer& writer;
    AttemptRunner& runner;
    Dispatcher& dispatcher;
    RuntimeHolder& runtime;
    Clock& clock;
    Random& random;
    std::string db_path;
  };
  explicit Maintenance(Parts parts);
  ~Maintenance();  // stop()

  void start();
  void stop();
  // Plans anew: the dispatcher's next wake-up changed. Thread-safe.
  void poke();

  [[nodiscard]] bool disk_low() const { return disk_low_; }
  [[nodiscard]] bool store_failing() const { return store_failing_; }

 private:
  void loop();
  void tick();
  void renew();
  void every_minute();
  void load_batches();
  void evict_some();
  void watch_clock();
  void watch_disk();
  void prune_some();
  [[nodiscard]] DurationMs wait_ms() const;

  Parts parts_;
  std::atomic<bool> disk_low_{false}, store_failing_{false};
  MonoMs next_renewal_ = 0, next_second_ = 0, next_minute_ = 0;  // of the thread alone
  ClockWatch clock_watch_;
  JobId sweep_after_ = 0;
  MonoMs next_pass_ = 0;      // of cleaning up
  PruneCursor prune_cursor_;  // where the pass goes on
  PruneCounts pruned_;        // by it so far
  CostTurns cost_turns_;
  bool cost_waits_ = false;  // aggregation goes on at once
  std::mutex mutex_;
  std::condition_variable changed_;
  bool poked_ = false, stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace aiq
