#include "daemon/maintenance.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/engine/recovery.h"
#include "core/engine/retention.h"
#include "daemon/notify.h"

namespace aiq {

namespace {

constexpr DurationMs kSecond = 1'000;
constexpr DurationMs kMinute = 60'000;
constexpr DurationMs kLoadMs = 200;
constexpr DurationMs kEvictMs = 100;
constexpr int kSweepSlice = 1'000;
constexpr int kEvictSlice = 500;
constexpr DurationMs kCostShareMs = 100;           // of one tick, before it looks at the rest again
constexpr DurationMs kPassEveryMs = 10 * kMinute;  // cleaning up
// Of each second: the same thread renews leases, and others write too.
constexpr DurationMs kPruneShareMs = 200;

bool is_restored(Store& store) {
  const std::vector<Pause> pauses = store.list_pauses();
  return std::any_of(pauses.begin(), pauses.end(),
                     [](const Pause& pause) { return pause.cause == "restored"; });
}

}  // namespace

Maintenance::Maintenance(Parts parts)
    : parts_(std::move(parts)),
      cost_turns_(parts_.writer, parts_.runtime, parts_.clock, parts_.random) {}

Maintenance::~Maintenance() {
  stop();
}

void Maintenance::start() {
  const MonoMs now = parts_.clock.mono_ms();
  next_renewal_ = now + parts_.runtime.get()->config.daemon.lease_ms / 3;
  next_second_ = now;
  next_minute_ = now + kMinute;
  next_pass_ = now;
  watch_disk();
  thread_ = std::thread([this] { loop(); });
}

void Maintenance::stop() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Maintenance::poke() {
  {
    const std::lock_guard guard(mutex_);
    poked_ = true;
  }
  changed_.notify_all();
}

DurationMs Maintenance::wait_ms() const {
  if (cost_waits_) return 0;
  const MonoMs now = parts_.clock.mono_ms();
  DurationMs wait = std::clamp<DurationMs>(std::min(next_second_, next_renewal_) - now, 0, kSecond);
  if (const auto wake = parts_.dispatcher.next_wake()) {
    wait = std::clamp<DurationMs>(*wake - parts_.clock.wall_ms(), 0, wait);
  }
  return wait;
}

void Maintenance::loop() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (!poked_ && !stopping_) {
        (void)changed_.wait_for(lock, std::chrono::milliseconds(wait_ms()),
                                [this] { return poked_ || stopping_; });
      }
      if (stopping_) return;
      poked_ = false;
    }
    try {
      tick();
    } catch (const std::exception& error) {
      log_error("maintenance failed", {{"error", std::string(error.what())}});
      store_failing_ = true;
    }
  }
}

// Holds and retries are kept as times of the wall clock, so that they outlive a restart. Were they
// left alone when it is set back, they would wait for the same stretch of time again.
void Maintenance::watch_clock() {
  const UnixMs now = parts_.clock.wall_ms();
  const auto by = clock_watch_.set_back(now, parts_.clock.mono_ms());
  if (!by) return;
  log_warn("the wall clock was set back, waits are moved with it", {{"by_ms", *by}});
  parts_.writer.run(WritePriority::control, [&](Store& store) { store.set_back_waits(*by, now); });
  parts_.dispatcher.wake();
}

void Maintenance::tick() {
  watch_clock();
  const MonoMs now = parts_.clock.mono_ms();
  parts_.dispatcher.wake_if_due(parts_.clock.wall_ms());
  if (now >= next_renewal_) {
    next_renewal_ = now + parts_.runtime.get()->config.daemon.lease_ms / 3;
    renew();
  }
  if (now >= next_second_) {
    next_second_ = now + kSecond;
    notify_watchdog();
    watch_disk();
    store_failing_ = parts_.runner.retry_unstored() > 0 || parts_.dispatcher.failures() > 0;
    prune_some();
    load_batches();
    evict_some();
  }
  if (now >= next_minute_) {
    next_minute_ = now + kMinute;
    every_minute();
  }
  cost_waits_ = false;
  cost_waits_ = cost_turns_.work(kCostShareMs);
}

void Maintenance::renew() {
  const auto leases = parts_.runner.leases();
  if (leases.empty()) return;
  const UnixMs until = parts_.clock.wall_ms() + parts_.runtime.get()->config.daemon.lease_ms;
  const auto lost = parts_.writer.run(WritePriority::renewal,
                                      [&](Store& store) { return store.renew(leases, until); });
  for (const std::string& token : lost)
    parts_.runner.abort_lost(token);
}

void Maintenance::watch_disk() {
  struct statvfs disk {};
  if (::statvfs(folder_of(parts_.db_path).c_str(), &disk) != 0) return;
  const auto free =
      static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  const std::int64_t reserve = parts_.runtime.get()->config.daemon.disk_reserve_bytes;
  const bool low = free < reserve;
  if (low == disk_low_) return;
  disk_low_ = low;
  parts_.dispatcher.set_leasing(!low);
  if (low) {
    log_warn("disk is low, nothing new is leased",
             {{"free_bytes", free}, {"disk_reserve_bytes", reserve}});
  } else {
    log_info("disk has space again", {{"free_bytes", free}});
    parts_.dispatcher.wake();
  }
}

void Maintenance::prune_some() {
  const MonoMs begun = parts_.clock.mono_ms();
  if (begun < next_pass_) return;
  const bool first = prune_cursor_.phase == PruneCursor::Phase::jobs && prune_cursor_.after == 0;
  // Who has put a copy back looks at it first: it may be the only one of what is old.
  if (first && parts_.writer.run(WritePriority::maintenance, is_restored)) {
    log_info("nothing is removed while a restored queue is paused", {});
    next_pass_ = begun + kPassEveryMs;
    return;
  }
  const PruneRules rules =
      prune_rules(parts_.runtime.get()->config.retention, parts_.clock.wall_ms());
  while (parts_.clock.mono_ms() - begun < kPruneShareMs) {
    const PruneSlice slice = parts_.writer.run(WritePriority::maintenance, [&](Store& store) {
      return store.prune(rules, prune_cursor_);
    });
    pruned_ += slice.counts;
    prune_cursor_ = slice.next;
    if (prune_cursor_.phase != PruneCursor::Phase::done) continue;
    if (pruned_.jobs + pruned_.attempts + pruned_.batches + pruned_.client_keys + pruned_.events >
        0) {
      log_info("removed what is over", {{"jobs", pruned_.jobs},
                                        {"attempts", pruned_.attempts},
                                        {"results", pruned_.results},
                                        {"batches", pruned_.batches},
                                        {"client_keys", pruned_.client_keys},
                                        {"events", pruned_.events}});
    }
    prune_cursor_ = {};
    pruned_ = {};
    next_pass_ = begun + kPassEveryMs;
    return;
  }
}

// A little at a time: leases are renewed by this thread.
void Maintenance::load_batches() {
  const MonoMs begun = parts_.clock.mono_ms();
  bool any = false;
  bool more = true;
  while (more && parts_.clock.mono_ms() - begun < kLoadMs) {
    more = load_published_batch(parts_.writer, parts_.clock, WritePriority::maintenance);
    any = any || more;
  }
  if (any) parts_.dispatcher.wake();
  if (more) next_second_ = begun;
}

// In slices, so that a large clean-up holds neither the writer nor this thread.
void Maintenance::evict_some() {
  const MonoMs begun = parts_.clock.mono_ms();
  const std::int64_t max_bytes = parts_.runtime.get()->config.cache.max_bytes;
  int removed = kEvictSlice;
  while (removed == kEvictSlice && parts_.clock.mono_ms() - begun < kEvictMs) {
    removed = parts_.writer.run(WritePriority::maintenance, [&](Store& store) {
      return store.evict_cache(parts_.clock.wall_ms(), max_bytes, kEvictSlice);
    });
  }
  if (removed == kEvictSlice) next_second_ = begun;
}

void Maintenance::every_minute() {
  const auto runtime = parts_.runtime.get();
  (void)parts_.writer.run(WritePriority::maintenance, [&](Store& store) {
    const UnixMs now = parts_.clock.wall_ms();
    store.forget_idle(now);
    return store.clear_expired_pauses(now);
  });
  sweep_after_ = sweep_orphans(
      parts_.writer, *runtime, parts_.clock, parts_.random,
      [this](const std::string& token) { return parts_.runner.holds(token); }, sweep_after_,
      kSweepSlice);
}

}  // namespace aiq
