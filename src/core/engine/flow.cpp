#include "core/engine/flow.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/engine/breaker.h"
#include "core/engine/pace.h"
#include "core/engine/rate_limits.h"
#include "core/engine/rate_window.h"

namespace aiq {

namespace {

// A window whose end is farther away is none of minutes: some vendors count requests by the day
// under the same names.
constexpr DurationMs kMinuteWindowMs = 65'000;
// After an outage a vendor is not asked at full pace at once.
constexpr double kShareAfterOutage = 0.1;

// Vendors charge what a request may use when they let it in, so that an answer shorter than the
// request's own limit gives nothing back (OpenAI, "Rate limits").
std::int64_t used_tokens(const EndedRequest& ended) {
  if (!ended.sent) return 0;
  if (!ended.prompt_tokens) return ended.taken_tokens;
  return *ended.prompt_tokens + std::max(ended.output_tokens, ended.output_limit.value_or(0));
}

void correct_tokens(Store& store, const Config& config, const EndedRequest& ended) {
  const std::int64_t used = used_tokens(ended);
  if (used == ended.taken_tokens) return;
  for (const RateLimit& limit : rate_limits_of(config, ended.lane, true)) {
    if (limit.key.unit != "tokens") continue;
    auto row = store.rate(limit.key.scope, limit.key.name, limit.key.unit);
    if (!row) continue;
    RateWindow window(*row);
    window.correct(ended.started_at, ended.taken_tokens, used);
    window.write_to(*row);
    store.save_rate(*row);
  }
}

struct Told {
  std::optional<std::int64_t> limit, remaining;
  std::optional<DurationMs> reset_ms;
};

void take_report(Store& store, const EndedRequest& ended, const char* unit, const Told& told,
                 UnixMs now) {
  if (!told.limit || *told.limit <= 0) return;
  if (told.reset_ms && *told.reset_ms > kMinuteWindowMs) return;
  RateRow row;
  row.scope = "model";
  row.name = model_scope_name(ended.lane.vendor, ended.lane.model);
  row.unit = unit;
  row.at = now;
  const auto known = store.rate(row.scope, row.name, row.unit);
  if (known) row = *known;
  RateWindow window = known ? RateWindow(row) : RateWindow();
  if (told.remaining) {
    const std::int64_t left = std::clamp<std::int64_t>(*told.remaining, 0, *told.limit);
    window.observe(now, *told.limit - left, left);
    window.write_to(row);
  }
  row.reported = told.limit;
  row.reported_at = now;
  store.save_rate(row);
}

void slow_down(Store& store, const EndedRequest& ended, UnixMs now) {
  const auto known = store.pace(ended.lane.vendor, ended.lane.model);
  // Many that were under way together are one refusal.
  if (known && ended.started_at <= known->at) return;
  const double share = known ? pace_share(*known, now) : 1.0;
  store.save_pace({ended.lane.vendor, ended.lane.model, std::max(kPaceMin, share / 2), now});
}

void note_health(Store& store, const Config& config, const EndedRequest& ended, UnixMs now) {
  const auto failed = fails_vendor(ended.outcome);
  if (!failed) return;
  const Lane& lane = ended.lane;
  const auto known = store.breaker(lane.vendor, lane.model);
  if (!known && !*failed) return;
  BreakerRow row = known.value_or(BreakerRow{lane.vendor, lane.model, {}, 0, 0, {}});
  Breaker breaker(row);
  const Breaker::Change change = breaker.note(config.breaker, *failed, ended.started_at, now);
  switch (change) {
    case Breaker::Change::none:
      return;
    case Breaker::Change::forgotten:
      return store.drop_breaker(lane.vendor, lane.model);
    case Breaker::Change::closed:
      log_info("breaker closed", {{"vendor", lane.vendor}, {"model", lane.model}});
      store.save_pace({lane.vendor, lane.model, kShareAfterOutage, now});
      return store.drop_breaker(lane.vendor, lane.model);
    case Breaker::Change::opened:
      log_warn("breaker opened", {{"vendor", lane.vendor},
                                  {"model", lane.model},
                                  {"for_ms", *breaker.open_until() - now}});
      break;
    case Breaker::Change::counted:
      break;
  }
  breaker.write_to(row);
  store.save_breaker(row);
}

}  // namespace

void learn_from(Store& store, const Config& config, const EndedRequest& ended, UnixMs now) {
  correct_tokens(store, config, ended);
  const RateReport& rate = ended.rate;
  take_report(store, ended, "requests",
              {rate.limit_requests, rate.remaining_requests, rate.reset_requests_ms}, now);
  take_report(store, ended, "tokens",
              {rate.limit_tokens, rate.remaining_tokens, rate.reset_tokens_ms}, now);
  if (ended.outcome == Outcome::rate_limited || ended.outcome == Outcome::overloaded)
    slow_down(store, ended, now);
  note_health(store, config, ended, now);
}

}  // namespace aiq
