#include "core/money/aggregate.h"

#include <algorithm>
#include <map>

#include "core/base/duration.h"
#include "core/base/process.h"
#include "core/money/postings.h"
#include "core/money/pricing.h"

namespace aiq {
namespace {

using Unit = AggregateState::Unit;
using Phase = AggregateState::Phase;

constexpr int kCollectSlice = 5'000;
constexpr int kUnitsPerStep = 100;
constexpr DurationMs kLockMs = 60'000;

// Posts events of one unit within one transaction, in which neither freezes nor invoices change.
class Posting {
 public:
  Posting(Store& store, const Config& config, UnixMs now)
      : store_(store), ledger_(store.ledger()), config_(config), now_(now) {}

  void post(Unit& unit, const UsageEvent& event) {
    if (is_posted(unit, event)) {
      ledger_.drop_pending(unit.at, event.usage_id);
      return;
    }
    LedgerRow row;
    const UsageEvent payload = effective(event, row);
    const auto rated = rate_usage(config_, store_, payload);
    if (!rated) {
      ++unit.counts.unpriced;
      ledger_.mark_pending(unit.at, event.usage_id, Pending::unpriced);
      return;
    }
    fill(row, unit, event, payload, *rated);
    if (frozen(row.tenant, row.service_period) || frozen(row.tenant, row.posting_period)) {
      unit.frozen = true;
      ledger_.mark_pending(unit.at, event.usage_id, Pending::frozen);
      return;
    }
    if (ledger_.append(row)) {
      note_posted(unit, row);
    } else {  // another payload has its key
      ++unit.counts.conflicts;
      ledger_.quarantine(event);
    }
    ledger_.drop_pending(unit.at, event.usage_id);
  }

 private:
  // A source counts as posted by what it is, whatever the key of its row.
  bool is_posted(Unit& unit, const UsageEvent& event) {
    const auto rows = ledger_.rows_of(event.source, event.tenant, "usage", event.event_id);
    if (rows.empty()) return false;
    // Rows of another system have hashes of their own making.
    const std::string hash = payload_hash(event);
    const bool equal = std::any_of(rows.begin(), rows.end(), [&](const LedgerRow& row) {
      return !row.given_id.empty() || row.payload_hash == hash;
    });
    if (equal || ledger_.replacement(event.tenant, event.event_id, event.source)) return true;
    ++unit.counts.conflicts;
    ledger_.quarantine(event);
    return true;
  }

  // The payload that counts, which a person may have put in the place of the first one.
  UsageEvent effective(const UsageEvent& event, LedgerRow& row) {
    row.idempotency_key = usage_key(event.tenant, event.event_id);
    auto replaced = ledger_.replacement(event.tenant, event.event_id, event.source);
    if (!replaced) return event;
    row.idempotency_key = replaced_usage_key(event.tenant, event.event_id, replaced->conflict_id);
    return std::move(replaced->event);
  }

  void fill(LedgerRow& row, const Unit& unit, const UsageEvent& event, const UsageEvent& payload,
            const Rated& rated) {
    row.source = event.source;
    row.tenant = event.tenant;
    row.source_type = "usage";
    row.source_ref = event.event_id;
    row.service_period = hour_of(payload.occurred_at);
    row.posting_period = open_period(event.tenant, rated.currency, row.service_period);
    row.occurred_at = payload.occurred_at;
    row.posted_at = now_;
    row.amount = rated.amount;
    row.currency = rated.currency;
    row.usage_id = event.usage_id;
    row.price_id = rated.price_id;
    row.payload_hash = payload_hash(payload);
    row.job_id = event.job_id ? std::to_string(*event.job_id) : payload.job_ref;
    row.run_id = unit.run_id;
    row.retry_count = unit.retry_count;
    row.correlation_id = payload.correlation_id;
  }

  static void note_posted(Unit& unit, const LedgerRow& row) {
    ++unit.counts.posted;
    if (row.posting_period > row.service_period) ++unit.counts.late;
    if (row.service_period == unit.at.period) ++unit.posted_here;
    for (const UnixMs period : {row.service_period, row.posting_period}) {
      if (period != unit.at.period) unit.touched.insert(period);
    }
  }

  bool frozen(const std::string& tenant, UnixMs period) {
    const auto known = frozen_.find(period);
    if (known != frozen_.end()) return known->second;
    return frozen_[period] = ledger_.freeze_of({tenant, period}, now_).has_value();
  }

  UnixMs open_period(const std::string& tenant, const std::string& currency, UnixMs from) {
    const auto [known, added] = open_.try_emplace({currency, from}, from);
    if (added) known->second = ledger_.first_open_period(tenant, currency, from);
    return known->second;
  }

  Store& store_;
  CostLedger& ledger_;
  const Config& config_;
  UnixMs now_;
  std::map<UnixMs, bool> frozen_;
  std::map<std::pair<std::string, UnixMs>, UnixMs> open_;
};

// One step of a call.
class Step {
 public:
  Step(Store& store, const Config& config, const AggregateCall& call, AggregateState& state,
       UnixMs now)
      : store_(store),
        ledger_(store.ledger()),
        config_(config),
        call_(call),
        state_(state),
        now_(now) {}

  void run() {
    if (state_.phase == Phase::collect) {
      collect();
      return;
    }
    int events = kAggregateSlice;
    for (int units = 0; units < kUnitsPerStep && events > 0; ++units) {
      if (!state_.unit && !start_next()) return;
      if (state_.unit) events -= work(events);
    }
  }

 private:
  void collect() {
    if (ledger_.collect_usage(kCollectSlice)) return;
    close_abandoned();
    if (call_.fresh_only) ledger_.wake_pending(now_);
    state_.phase = Phase::units;
  }

  // Runs whose process died. What they posted may not be in the summaries yet.
  void close_abandoned() {
    for (const RunRow& run : ledger_.open_runs()) {
      const std::string lock = aggregate_lock(run.unit);
      const auto owner = ledger_.lock_owner(lock, now_);
      // This call has none yet: what is its owner's is of an earlier call that broke off.
      const bool own = owner && *owner == call_.owner;
      if (owner && !own && process_lives(*owner)) continue;
      (void)store_.break_lock(lock);
      ledger_.set_run(run.run_id, run.counts, own ? "failed" : "abandoned", now_);
      std::set<TenantPeriod> hours = {run.unit};
      for (const UnixMs period : ledger_.later_postings(run.unit))
        hours.insert({run.unit.tenant, period});
      recompute_hours(ledger_, hours, now_);
    }
  }

  std::optional<TenantPeriod> next_unit() {
    auto pending = ledger_.next_pending_unit(state_.after, call_.scope, call_.fresh_only);
    if (call_.scope.all()) return pending;
    auto known = ledger_.next_summary_unit(state_.after, call_.scope);
    if (!pending || (known && *known < *pending)) return known;
    return pending;
  }

  // False: there is no further unit.
  bool start_next() {
    const auto next = next_unit();
    if (!next) {
      finish();
      return false;
    }
    state_.after = *next;
    const std::string lock = aggregate_lock(*next);
    const auto owner = ledger_.lock_owner(lock, now_);
    const OpenedRun run = ledger_.open_run({.call_id = call_.call_id,
                                            .initiator = call_.initiator,
                                            .unit = *next,
                                            .now = now_,
                                            .correlation_id = call_.correlation_id,
                                            .actor = call_.actor});
    if (owner && *owner != call_.owner && process_lives(*owner)) {
      ++state_.totals.busy;
      ledger_.set_run(run.run_id, {}, "busy", now_);
      return true;
    }
    if (owner && *owner != call_.owner) (void)store_.break_lock(lock);
    Unit unit;
    unit.at = *next;
    unit.run_id = run.run_id;
    unit.retry_count = run.retry_count;
    state_.unit = std::move(unit);
    return true;
  }

  // Posts up to `budget` events of the open unit; how many it looked at, at least 1.
  int work(int budget) {
    Unit& unit = *state_.unit;
    const auto events = ledger_.pending_events(unit.at, unit.after, budget + 1);
    const int count = std::min(static_cast<int>(events.size()), budget);
    Posting posting(store_, config_, now_);
    for (int i = 0; i < count; ++i) {
      posting.post(unit, events[static_cast<std::size_t>(i)]);
      unit.after = events[static_cast<std::size_t>(i)].usage_id;
    }
    if (static_cast<int>(events.size()) <= budget) {
      close_unit();
      return std::max(count, 1);
    }
    // It goes on in a later transaction. Should another process have taken the lock over, after
    // a long stall, both work on it: the keys see to it that this is no more than waste.
    (void)store_.acquire_lock(aggregate_lock(unit.at), call_.owner, now_, now_ + kLockMs);
    ledger_.set_run(unit.run_id, unit.counts, "", now_);
    return std::max(count, 1);
  }

  void close_unit() {
    Unit& unit = *state_.unit;
    std::set<TenantPeriod> hours = {unit.at};
    for (const UnixMs period : unit.touched)
      hours.insert({unit.at.tenant, period});
    recompute_hours(ledger_, hours, now_);
    std::int64_t events = 0;
    for (const SummaryRow& row : ledger_.summaries(unit.at))
      events += row.events;
    unit.counts.replayed = std::max<std::int64_t>(0, events - unit.posted_here);
    ledger_.set_run(unit.run_id, unit.counts, unit.frozen ? "frozen" : "done", now_);
    (void)store_.release_lock(aggregate_lock(unit.at), call_.owner);

    AggregateTotals& totals = state_.totals;
    ++totals.periods;
    totals.posted += unit.counts.posted;
    totals.replayed += unit.counts.replayed;
    totals.conflicts += unit.counts.conflicts;
    totals.unpriced += unit.counts.unpriced;
    totals.late += unit.counts.late;
    if (unit.frozen) ++totals.frozen;
    state_.unit.reset();
  }

  void finish() {
    state_.phase = Phase::done;
    // Nothing was new: all that there is was posted before.
    const AggregateTotals& totals = state_.totals;
    if (call_.scope.all() && totals.periods == 0 && totals.busy == 0)
      state_.totals.replayed = ledger_.posted_events();
  }

  Store& store_;
  CostLedger& ledger_;
  const Config& config_;
  const AggregateCall& call_;
  AggregateState& state_;
  UnixMs now_;
};

}  // namespace

AggregateState aggregate_step(Store& store, const Config& config, const AggregateCall& call,
                              const AggregateState& state, UnixMs now) {
  AggregateState next = state;
  if (next.phase != Phase::done) Step(store, config, call, next, now).run();
  return next;
}

std::string aggregate_lock(const TenantPeriod& unit) {
  return "aggregate:" + unit.tenant + ":" + format_rfc3339(unit.period).substr(0, 13);
}

}  // namespace aiq
