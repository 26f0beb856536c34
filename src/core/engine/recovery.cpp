#include "core/engine/recovery.h"

#include <optional>
#include <vector>

#include "core/engine/batch.h"
#include "core/model/retry.h"
#include "core/vendor/vendor.h"

namespace aiq {

namespace {

constexpr int kSlice = 1000;

bool costs_nothing(const Runtime& runtime, const std::string& vendor) {
  const VendorConfig* config = runtime.vendor(vendor);
  const Vendor* adapter = config == nullptr ? nullptr : find_vendor(config->api);
  return adapter != nullptr && adapter->in_process();
}

AttemptClose close_for(const OpenLease& lease, const Runtime& runtime, UnixMs now, Random& random) {
  AttemptClose close;
  close.attempt_id = lease.job.attempt_id;
  close.job_id = lease.job.job_id;
  close.token = lease.job.token;
  close.now = now;
  const bool free = costs_nothing(runtime, lease.job.lane.vendor);
  close.result.outcome = free ? Outcome::crashed : Outcome::unknown;
  close.result.billed = free ? Billed::no : Billed::maybe;
  close.result.error_code = "process_died";
  close.result.error_message = "the process that ran this attempt ended before its answer";
  close.next = decide_next({.outcome = close.result.outcome,
                            .billed = close.result.billed,
                            .retryable = true,
                            .retry_after_ms = std::nullopt,
                            .started_at = lease.job.started_at},
                           lease.job.counters, runtime.config.retry, lease.job.max_attempts,
                           lease.job.deadline, now, random);
  return close;
}

}  // namespace

RecoveryReport recover(Writer& writer, const Runtime& runtime, Clock& clock, Random& random) {
  RecoveryReport report;
  report.locks =
      writer.run(WritePriority::control, [](Store& store) { return store.clear_locks(); });
  for (bool more = true; more;) {
    const RecoveryReport slice = writer.run(WritePriority::control, [&](Store& store) {
      RecoveryReport done;
      const UnixMs now = clock.wall_ms();
      for (const OpenLease& lease : store.open_leases(0, kSlice)) {
        const CloseOutcome outcome = store.close_attempt(close_for(lease, runtime, now, random));
        ++done.attempts;
        if (outcome.status == JobState::dead_lettered) ++done.dead_lettered;
      }
      return done;
    });
    report.attempts += slice.attempts;
    report.dead_lettered += slice.dead_lettered;
    more = slice.attempts == kSlice;
  }
  // Batches first: a stage that is gone would leave its batch behind.
  while (!writer.run(WritePriority::control,
                     [](Store& store) { return store.drop_staging_batches(kSlice); })) {
  }
  while (!writer.run(WritePriority::control,
                     [](Store& store) { return store.drop_unpublished_stages(kSlice); })) {
  }
  while (load_published_batch(writer, clock, WritePriority::control)) {
  }
  return report;
}

bool load_published_batch(Writer& writer, Clock& clock, WritePriority priority) {
  return writer.run(priority, [&clock](Store& store) {
    const auto batch_id = store.batch_to_load();
    if (batch_id) load_staged(store, *batch_id, clock.wall_ms());
    return batch_id.has_value();
  });
}

JobId sweep_orphans(Writer& writer, const Runtime& runtime, Clock& clock, Random& random,
                    const std::function<bool(const std::string&)>& held, JobId after, int limit) {
  return writer.run(WritePriority::maintenance, [&](Store& store) {
    const UnixMs now = clock.wall_ms();
    const std::vector<OpenLease> leases = store.open_leases(after, limit);
    for (const OpenLease& lease : leases) {
      if (lease.lease_until > now || held(lease.job.token)) continue;
      (void)store.close_attempt(close_for(lease, runtime, now, random));
    }
    return static_cast<int>(leases.size()) < limit ? JobId{0} : leases.back().job.job_id;
  });
}

}  // namespace aiq
