#include "core/engine/dispatcher.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/engine/admission.h"

namespace aiq {

namespace {

// Bounds of one pass, so that it never holds the writer for long.
constexpr int kMaxHeads = 256;  // leased, served, set to wait or dead
constexpr int kMaxPromoted = 1000;
constexpr int kMaxExpired = 200;
constexpr int kMaxServed = 500;
// After a failed pass; nothing else may come that would wake it.
constexpr DurationMs kTryAgainMs = 1'000;

}  // namespace

Dispatcher::Dispatcher(Parts parts) : parts_(std::move(parts)) {}

void Dispatcher::start(std::function<void()> scheduled) {
  scheduled_ = std::move(scheduled);
  parts_.writer.set_tail({
      .run = [this](Store& store) { pass(store); },
      .committed = [this] { committed(); },
      .failed = [this](std::exception_ptr error) { failed(error); },
  });
  wake();
}

void Dispatcher::stop_leasing() {
  stopped_ = true;
  // A pass may be under way and start requests after its commit: it ends before this does.
  try {
    parts_.writer.run(WritePriority::control, [](Store&) {});
  } catch (const StoreError&) {
    // The database is out of reach: then no pass can have leased anything either.
  }
}

std::optional<UnixMs> Dispatcher::next_wake() const {
  const UnixMs at = next_wake_;
  return at == 0 ? std::nullopt : std::optional(at);
}

void Dispatcher::wake_if_due(UnixMs now) {
  UnixMs at = next_wake_;
  // Taken back first: a pass that fails must not be woken again at once, for ever.
  if (at != 0 && at <= now && next_wake_.compare_exchange_strong(at, 0)) wake();
}

void Dispatcher::plan(std::optional<UnixMs> at) {
  const UnixMs before = next_wake_.exchange(at.value_or(0));
  if (at && (before == 0 || *at < before)) scheduled_();
}

void Dispatcher::failed(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const StoreError& e) {
    last_failure_ = e.kind();
    log_error("no job could be leased", {{"error", std::string(e.what())}});
  } catch (const std::exception& e) {
    log_error("no job could be leased", {{"error", std::string(e.what())}});
  }
  ++failures_;
  plan(parts_.clock.wall_ms() + kTryAgainMs);
}

void Dispatcher::pass(Store& store) {
  // A pass may run again after a rollback: it starts from nothing each time.
  leased_.clear();
  wake_at_.reset();
  more_ = false;
  const UnixMs now = parts_.clock.wall_ms();
  const int promoted = store.promote_due(now, kMaxPromoted);
  const auto expired = store.expire_deadlines(now, kMaxExpired);
  const int served = store.serve_followers(now, kMaxServed);
  more_ = promoted == kMaxPromoted || expired.size() == kMaxExpired || served == kMaxServed;
  lease_all(store, now);
}

void Dispatcher::lease_all(Store& store, UnixMs now) {
  const AdmissionView view = store.admission_view(now);
  wake_at_ = view.next_due;
  if (view.next_deadline && (!wake_at_ || *view.next_deadline < *wake_at_)) {
    wake_at_ = view.next_deadline;
  }
  if (!leasing_ || stopped_) return;
  const auto runtime = parts_.runtime.get();
  Admission admission(runtime->config, view, now);
  for (const std::string& vendor : admission.proven_by_time())
    store.mark_proven(vendor);

  for (int heads = 0; const auto lane = admission.next(); ++heads) {
    if (heads == kMaxHeads) {
      more_ = true;
      break;
    }
    LeaseOutcome outcome = store.lease({.lane_id = *lane,
                                        .token = parts_.random.token(),
                                        .now = now,
                                        .lease_until = now + runtime->config.daemon.lease_ms,
                                        .worker = parts_.worker});
    const auto head = store.lane_head(*lane);
    if (outcome.kind == LeaseOutcome::Kind::leased) {
      leased_.push_back(std::move(*outcome.job));
      admission.started(head);
    } else {
      admission.passed(head);
    }
  }
  const Admission::Changes changes = admission.changes();
  for (const RateRow& row : changes.rates)
    store.save_rate(row);
  for (const RateHold& hold : changes.spreads)
    store.save_spread(hold);
  for (const ShareRow& row : changes.shares)
    store.save_share(row);
  if (const auto opening = admission.next_opening()) {
    wake_at_ = wake_at_ ? std::min(*wake_at_, *opening) : opening;
  }
}

void Dispatcher::committed() {
  failures_ = 0;
  std::vector<LeasedJob> leased = std::exchange(leased_, {});
  for (LeasedJob& job : leased)
    parts_.runner.start(std::move(job));
  ++passes_;
  if (more_) wake();
  plan(wake_at_);
}

}  // namespace aiq
