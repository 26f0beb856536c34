#include "core/engine/admission.h"

#include <algorithm>
#include <cmath>

#include "core/engine/pace.h"

namespace aiq {

namespace {

// Starts that could not be made in time while a hold's end is spread are made up for, up to this.
constexpr double kSpreadLagMs = 20;

bool matches(const Pause& pause, const Lane& lane) {
  return (pause.vendor.empty() || pause.vendor == lane.vendor) &&
         (pause.model.empty() || pause.model == lane.model) &&
         (pause.tenant.empty() || pause.tenant == lane.tenant);
}

template <class Map, class Key>
int tally_of(const Map& tally, const Key& key) {
  const auto found = tally.find(key);
  return found == tally.end() ? 0 : found->second;
}

// 0 in a limit means none.
bool below(int n, int limit) {
  return limit == 0 || n < limit;
}

}  // namespace

Admission::Admission(const Config& config, const AdmissionView& view, UnixMs now)
    : config_(config),
      now_(now),
      pauses_(view.pauses),
      fair_share_(view.shares, config.daemon.age_step_ms, now) {
  for (const RateHold& hold : view.holds)
    holds_.emplace(VendorModel{hold.vendor, hold.model}, hold);
  for (const PaceRow& row : view.paces)
    paces_[{row.vendor, row.model}] = pace_share(row, now);
  for (const BreakerRow& row : view.breakers)
    breakers_.emplace(VendorModel{row.vendor, row.model}, Breaker(row));
  for (const RateRow& row : view.rates)
    windows_.emplace(RateKey{row.scope, row.name, row.unit}, Window{.row = row, .known = true});
  told_ = std::any_of(view.rates.begin(), view.rates.end(),
                      [](const RateRow& row) { return row.reported.has_value(); });
  for (const VendorRow& row : view.vendors) {
    if (row.proven) proven_.insert(row.vendor);
  }
  for (const LaneHead& running : view.running)
    count(running.lane, running.in_flight);
  prove_by_time(view);
  lanes_.reserve(view.lanes.size());
  for (const LaneHead& head : view.lanes) {
    if (!is_open(head.lane)) continue;
    lanes_.push_back(state_of(head));
    tenants_.try_emplace(head.lane.tenant, ByRank{&lanes_}).first->second.push(lanes_.size() - 1);
  }
  for (const auto& [tenant, lanes] : tenants_)
    offer(tenant);
}

void Admission::prove_by_time(const AdmissionView& view) {
  for (const auto& [vendor, started_at] : view.oldest_start) {
    if (proven_.contains(vendor)) continue;
    if (started_at + kProofAfterMs <= now_) {
      proven_.insert(vendor);
      proven_by_time_.push_back(vendor);
    } else {
      opens_at(started_at + kProofAfterMs);
    }
  }
}

void Admission::opens_at(UnixMs at) {
  next_opening_ = next_opening_ ? std::min(*next_opening_, at) : at;
}

// ---- conditions

template <class Each>
void Admission::each_closing(const Lane& lane, const Each& each) const {
  if (!config_.vendors.contains(lane.vendor)) each(Closed::no_vendor, nullptr, std::nullopt);
  const auto tenant = config_.tenants.find(lane.tenant);
  if (tenant != config_.tenants.end() && tenant->second.disabled) {
    each(Closed::tenant_disabled, nullptr, std::nullopt);
  }
  for (const Pause& pause : pauses_) {
    if (matches(pause, lane) && (!pause.until || *pause.until > now_)) {
      each(Closed::pause, &pause, pause.until);
    }
  }
  const VendorModel pair{lane.vendor, lane.model};
  const auto hold = holds_.find(pair);
  if (hold != holds_.end() && hold->second.until > now_) {
    each(Closed::hold, nullptr, std::optional(hold->second.until));
  }
  const auto breaker = breakers_.find(pair);
  if (breaker != breakers_.end() && breaker->second.state(now_) == Breaker::State::open) {
    each(Closed::breaker, nullptr, breaker->second.open_until());
  }
}

bool Admission::is_open(const Lane& lane) {
  bool open = true, by_itself = true;
  UnixMs until = 0;
  each_closing(lane, [&](Closed, const Pause*, std::optional<UnixMs> end) {
    open = false;
    by_itself = by_itself && end.has_value();
    until = std::max(until, end.value_or(0));
  });
  if (!open && by_itself) opens_at(until);
  return open;
}

bool Admission::is_proven(const std::string& vendor) const {
  return proven_.contains(vendor);
}

double Admission::share_of(const Lane& lane) const {
  const auto found = paces_.find({lane.vendor, lane.model});
  return found == paces_.end() ? 1.0 : found->second;
}

// In flight at most, by the vendor, the model and the daemon; 0 = no limit.
int Admission::places_of(const Lane& lane) const {
  int places = 0;
  const auto limit_to = [&places](int limit) {
    if (limit != 0) places = places == 0 ? limit : std::min(places, limit);
  };
  limit_to(config_.daemon.max_in_flight);
  if (const auto vendor = config_.vendors.find(lane.vendor); vendor != config_.vendors.end())
    limit_to(vendor->second.max_in_flight);
  if (const auto model = config_.models.find(lane.model); model != config_.models.end())
    limit_to(model->second.max_in_flight);
  return places;
}

template <class Each>
void Admission::each_full(const Lane& lane, const Each& each) const {
  if (const auto vendor = config_.vendors.find(lane.vendor); vendor != config_.vendors.end()) {
    const int running = tally_of(by_vendor_, lane.vendor);
    if (!is_proven(lane.vendor)) {
      if (running >= 1) each(Full::unproven, 1);
    } else if (!below(running, vendor->second.max_in_flight)) {
      each(Full::vendor, vendor->second.max_in_flight);
    }
  }
  const VendorModel pair{lane.vendor, lane.model};
  if (const double share = share_of(lane); share < 1.0) {
    const auto places = static_cast<int>(paced(places_of(lane), share));
    if (!below(tally_of(by_vendor_model_, pair), places)) each(Full::pace, places);
  }
  const auto breaker = breakers_.find(pair);
  if (breaker != breakers_.end() && breaker->second.state(now_) == Breaker::State::half_open &&
      !below(tally_of(by_vendor_model_, pair), config_.breaker.probes)) {
    each(Full::probes, config_.breaker.probes);
  }
  const auto model = config_.models.find(lane.model);
  if (model != config_.models.end() &&
      !below(tally_of(by_model_, lane.model), model->second.max_in_flight)) {
    each(Full::model, model->second.max_in_flight);
  }
  const auto tenant = config_.tenants.find(lane.tenant);
  if (tenant != config_.tenants.end() &&
      !below(tally_of(by_tenant_, lane.tenant), tenant->second.max_in_flight)) {
    each(Full::tenant, tenant->second.max_in_flight);
  }
}

bool Admission::has_place(const Lane& lane) const {
  bool place = true;
  each_full(lane, [&](Full, int) { place = false; });
  return place;
}

// ---- limits per minute

Admission::LaneState Admission::state_of(const LaneHead& head) {
  LaneState out{.lane = head.lane, .head = head, .windows = {}, .spread = nullptr};
  const double share = share_of(head.lane);
  for (const RateLimit& limit : rate_limits_of(config_, head.lane, told_)) {
    const auto found = windows_.find(limit.key);
    const RateRow* row = found == windows_.end() ? nullptr : &found->second.row;
    std::int64_t in_force = limit_in_force(limit.configured, row, now_);
    if (in_force == 0) continue;
    if (limit.key.scope != "tenant") in_force = paced(in_force, share);
    Window& window = windows_[limit.key];
    if (!window.known) {
      window.row.scope = limit.key.scope;
      window.row.name = limit.key.name;
      window.row.unit = limit.key.unit;
    }
    if (!window.state) window.state = window.known ? RateWindow(window.row) : RateWindow();
    out.windows.push_back({&window, in_force, limit.key.unit == "tokens"});
  }
  const auto hold = holds_.find({head.lane.vendor, head.lane.model});
  if (hold != holds_.end() && hold->second.until <= now_) out.spread = &hold->second;
  return out;
}

std::int64_t Admission::units_of(const WindowUse& use, const LaneHead& head) const {
  if (!use.tokens) return 1;
  return tokens_of(config_, head.lane.model, head.prompt_tokens, head.output_tokens);
}

template <class Each>
void Admission::each_early(const LaneState& lane, const Each& each) const {
  if (lane.spread != nullptr && lane.spread->next_start.value_or(0) > static_cast<double>(now_)) {
    each(nullptr, static_cast<UnixMs>(std::ceil(*lane.spread->next_start)));
  }
  for (const WindowUse& use : lane.windows) {
    const UnixMs at = use.window->state->fits_at(use.limit, now_, units_of(use, lane.head));
    if (at > now_ || use.window->reserved) each(&use, at);
  }
}

// What it waits for, nobody behind it may take.
bool Admission::is_early(const LaneState& lane) {
  bool early = false;
  UnixMs until = 0;
  each_early(lane, [&](const WindowUse* use, UnixMs at) {
    early = true;
    until = std::max(until, at);
    if (use != nullptr && at > now_) use->window->reserved = true;
  });
  if (early && until > now_) opens_at(until);
  return early;
}

// ---- the order

void Admission::offer(const std::string& tenant) {
  LaneQueue& lanes = tenants_.at(tenant);
  if (lanes.empty()) return fair_share_.withdraw(tenant);
  const auto section = config_.tenants.find(tenant);
  fair_share_.offer(tenant, section == config_.tenants.end() ? 1 : section->second.weight,
                    lanes_[lanes.top()].head);
}

std::optional<LaneId> Admission::next() {
  while (const std::string* first = fair_share_.first()) {
    if (!below(in_flight_, config_.daemon.max_in_flight)) return std::nullopt;
    const std::string tenant = *first;
    LaneQueue& lanes = tenants_.at(tenant);
    const std::size_t best = lanes.top();
    lanes.pop();
    // Places and units only get fewer within one decision, so a lane without is done with.
    if (!has_place(lanes_[best].lane) || is_early(lanes_[best])) {
      offer(tenant);
      continue;
    }
    current_ = best;
    return lanes_[best].lane.lane_id;
  }
  return std::nullopt;
}

void Admission::count(const Lane& lane, int n) {
  in_flight_ += n;
  by_vendor_[lane.vendor] += n;
  by_model_[lane.model] += n;
  by_tenant_[lane.tenant] += n;
  by_vendor_model_[{lane.vendor, lane.model}] += n;
}

void Admission::put(const std::optional<LaneHead>& head) {
  LaneState& lane = lanes_[current_];
  if (head) {
    lane.head = *head;
    tenants_.at(lane.lane.tenant).push(current_);
  }
  offer(lane.lane.tenant);
}

void Admission::started(const std::optional<LaneHead>& head) {
  LaneState& lane = lanes_[current_];
  count(lane.lane, 1);
  for (const WindowUse& use : lane.windows) {
    use.window->state->take(use.limit, now_, units_of(use, lane.head));
    use.window->changed = true;
  }
  if (lane.spread != nullptr) {
    RateHold& spread = *lane.spread;
    const double step =
        static_cast<double>(spread.spread()) / std::max(1, spread.waiting.value_or(1));
    const auto now = static_cast<double>(now_);
    spread.next_start = std::max(spread.next_start.value_or(now), now - kSpreadLagMs) + step;
    spread_.insert({spread.vendor, spread.model});
  }
  fair_share_.served(lane.lane.tenant);
  put(head);
}

void Admission::passed(const std::optional<LaneHead>& head) {
  put(head);
}

Admission::Changes Admission::changes() const {
  Changes out;
  for (const auto& [key, window] : windows_) {
    if (!window.changed) continue;
    out.rates.push_back(window.row);
    window.state->write_to(out.rates.back());
  }
  for (const VendorModel& pair : spread_)
    out.spreads.push_back(holds_.at(pair));
  out.shares = fair_share_.changes();
  return out;
}

// ---- why

std::string Admission::words_of(const WindowUse& use) const {
  const RateRow& row = use.window->row;
  const std::string limit =
      "the limit of " + std::to_string(use.limit) + " " + row.unit + " a minute of ";
  const std::size_t gap = row.name.find(' ');
  if (row.scope != "model") return limit + row.scope + " " + row.name + " is reached";
  return limit + row.name.substr(gap + 1) + " at " + row.name.substr(0, gap) + " is reached";
}

std::vector<Block> Admission::explain(const LaneHead& head) {
  const Lane& lane = head.lane;
  std::vector<Block> blocks;
  each_closing(lane, [&](Closed closed, const Pause* pause, std::optional<UnixMs> until) {
    switch (closed) {
      case Closed::no_vendor:
        blocks.push_back({"vendor_paused", "vendor " + lane.vendor + " is not configured", until});
        break;
      case Closed::tenant_disabled:
        blocks.push_back({"tenant_paused", "tenant " + lane.tenant + " is disabled", until});
        break;
      case Closed::pause:
        blocks.push_back({!pause->tenant.empty()   ? "tenant_paused"
                          : !pause->model.empty()  ? "model_paused"
                          : !pause->vendor.empty() ? "vendor_paused"
                                                   : "queue_paused",
                          pause->cause + (pause->reason.empty() ? "" : ": " + pause->reason),
                          until});
        break;
      case Closed::hold:
        blocks.push_back(
            {"rate_limited", lane.vendor + " asked to wait with " + lane.model, until});
        break;
      case Closed::breaker:
        blocks.push_back({"breaker_open",
                          "too many requests for " + lane.model + " at " + lane.vendor + " failed",
                          until});
        break;
    }
  });
  each_full(lane, [&](Full full, int limit) {
    const std::string places = std::to_string(limit) + " in flight, the limit of ";
    switch (full) {
      case Full::unproven:
        blocks.push_back(
            {"vendor_in_flight",
             "vendor " + lane.vendor + " is unproven: one request at a time until one succeeds",
             std::nullopt});
        break;
      case Full::vendor:
        blocks.push_back({"vendor_in_flight", places + "vendor " + lane.vendor, std::nullopt});
        break;
      case Full::pace:
        blocks.push_back({"vendor_in_flight",
                          std::to_string(limit) + " in flight, as many as " + lane.vendor +
                              " gets after it refused for being asked too much",
                          std::nullopt});
        break;
      case Full::probes:
        blocks.push_back({"breaker_open",
                          lane.vendor + " is being tried out with " + std::to_string(limit) +
                              " requests at a time",
                          std::nullopt});
        break;
      case Full::model:
        blocks.push_back({"model_in_flight", places + "model " + lane.model, std::nullopt});
        break;
      case Full::tenant:
        blocks.push_back({"tenant_in_flight", places + "tenant " + lane.tenant, std::nullopt});
        break;
    }
  });
  each_early(state_of(head), [&](const WindowUse* use, UnixMs until) {
    blocks.push_back({"rate_limited",
                      use != nullptr ? words_of(*use)
                                     : "the wait that " + lane.vendor +
                                           " asked for is over; those who waited start one by one",
                      until > now_ ? std::optional(until) : std::nullopt});
  });
  return blocks;
}

}  // namespace aiq
