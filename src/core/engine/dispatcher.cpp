#include "core/engine/dispatcher.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/engine/admission.h"

namespace aiq {

namespace {

// Bounds of one pass, so that it never holds the writer for long.
constexpr int kMaxLeases = 256;
constexpr int kMaxPromoted = 1000;
constexpr int kMaxExpired = 200;
constexpr int kMaxServed = 500;

}  // namespace

Dispatcher::Dispatcher(Parts parts) : parts_(std::move(parts)) {}

void Dispatcher::start(std::function<void()> scheduled) {
  scheduled_ = std::move(scheduled);
  parts_.writer.set_tail({
      .run = [this](Store& store) { pass(store); },
      .committed = [this] { committed(); },
      .failed =
          [](std::exception_ptr error) {
            try {
              std::rethrow_exception(error);
            } catch (const std::exception& e) {
              log_error("no job could be leased", {{"error", std::string(e.what())}});
            }
          },
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
  if (!leasing_ || stopped_) return;
  const auto runtime = parts_.runtime.get();
  Admission admission(runtime->config, view, now);
  for (const std::string& vendor : admission.proven_by_time())
    store.mark_proven(vendor);

  while (const auto lane = admission.next()) {
    if (std::cmp_equal(leased_.size(), kMaxLeases)) {
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
  if (const auto opening = admission.next_opening()) {
    wake_at_ = wake_at_ ? std::min(*wake_at_, *opening) : opening;
  }
}

void Dispatcher::committed() {
  next_wake_ = wake_at_.value_or(0);
  std::vector<LeasedJob> leased = std::exchange(leased_, {});
  for (LeasedJob& job : leased)
    parts_.runner.start(std::move(job));
  ++passes_;
  if (more_) wake();
  scheduled_();
}

}  // namespace aiq
