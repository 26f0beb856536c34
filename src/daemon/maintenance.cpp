#include "daemon/maintenance.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>

#include "core/base/log.h"
#include "core/engine/recovery.h"
#include "daemon/notify.h"

namespace aiq {

namespace {

constexpr DurationMs kSecond = 1'000;
constexpr DurationMs kMinute = 60'000;
constexpr int kSweepSlice = 1'000;
constexpr int kEvictSlice = 500;

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Maintenance::Maintenance(Parts parts) : parts_(std::move(parts)) {}

Maintenance::~Maintenance() {
  stop();
}

void Maintenance::start() {
  const MonoMs now = parts_.clock.mono_ms();
  next_renewal_ = now + parts_.runtime.get()->config.daemon.lease_ms / 3;
  next_second_ = now;
  next_minute_ = now + kMinute;
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

void Maintenance::tick() {
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
  }
  if (now >= next_minute_) {
    next_minute_ = now + kMinute;
    every_minute();
  }
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

void Maintenance::every_minute() {
  const auto runtime = parts_.runtime.get();
  (void)parts_.writer.run(WritePriority::maintenance, [&](Store& store) {
    return store.clear_expired_pauses(parts_.clock.wall_ms());
  });
  // In slices of their own, so that a large clean-up never holds the writer.
  for (int removed = kEvictSlice; removed == kEvictSlice;) {
    removed = parts_.writer.run(WritePriority::maintenance, [&](Store& store) {
      return store.evict_cache(parts_.clock.wall_ms(), runtime->config.cache.max_bytes,
                               kEvictSlice);
    });
  }
  sweep_after_ = sweep_orphans(
      parts_.writer, *runtime, parts_.clock, parts_.random,
      [this](const std::string& token) { return parts_.runner.holds(token); }, sweep_after_,
      kSweepSlice);
}

}  // namespace aiq
