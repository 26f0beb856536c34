#include "core/engine/admission.h"

#include <algorithm>

namespace aiq {

namespace {

bool matches(const Pause& pause, const Lane& lane) {
  return (pause.vendor.empty() || pause.vendor == lane.vendor) &&
         (pause.model.empty() || pause.model == lane.model) &&
         (pause.tenant.empty() || pause.tenant == lane.tenant);
}

// 0 in a limit means none.
bool below(const std::map<std::string, int, std::less<>>& tally, const std::string& name,
           int limit) {
  if (limit == 0) return true;
  const auto found = tally.find(name);
  return found == tally.end() || found->second < limit;
}

}  // namespace

Admission::Admission(const Config& config, const AdmissionView& view, UnixMs now)
    : config_(config), now_(now), pauses_(view.pauses) {
  for (const RateHold& hold : view.holds)
    holds_[{hold.vendor, hold.model}] = hold.until;
  for (const VendorRow& row : view.vendors) {
    if (row.proven) proven_.insert(row.vendor);
  }
  for (const LaneHead& running : view.running)
    count(running.lane, running.in_flight);
  prove_by_time(view);
  for (const LaneHead& head : view.lanes) {
    if (!is_open(head.lane)) continue;
    lanes_.push_back(head.lane);
    queue_.push({head.rank, head.job_id, lanes_.size() - 1});
  }
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
  const auto hold = holds_.find({lane.vendor, lane.model});
  if (hold != holds_.end() && hold->second > now_) {
    each(Closed::hold, nullptr, std::optional(hold->second));
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

template <class Each>
void Admission::each_full(const Lane& lane, const Each& each) const {
  if (const auto vendor = config_.vendors.find(lane.vendor); vendor != config_.vendors.end()) {
    if (!is_proven(lane.vendor)) {
      if (!below(by_vendor_, lane.vendor, 1)) each(Full::unproven, 1);
    } else if (!below(by_vendor_, lane.vendor, vendor->second.max_in_flight)) {
      each(Full::vendor, vendor->second.max_in_flight);
    }
  }
  const auto model = config_.models.find(lane.model);
  if (model != config_.models.end() && !below(by_model_, lane.model, model->second.max_in_flight)) {
    each(Full::model, model->second.max_in_flight);
  }
  const auto tenant = config_.tenants.find(lane.tenant);
  if (tenant != config_.tenants.end() &&
      !below(by_tenant_, lane.tenant, tenant->second.max_in_flight)) {
    each(Full::tenant, tenant->second.max_in_flight);
  }
}

bool Admission::has_place(const Lane& lane) const {
  bool place = true;
  each_full(lane, [&](Full, int) { place = false; });
  return place;
}

std::vector<Block> Admission::explain(const Lane& lane) const {
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
      case Full::model:
        blocks.push_back({"model_in_flight", places + "model " + lane.model, std::nullopt});
        break;
      case Full::tenant:
        blocks.push_back({"tenant_in_flight", places + "tenant " + lane.tenant, std::nullopt});
        break;
    }
  });
  return blocks;
}

void Admission::count(const Lane& lane, int n) {
  in_flight_ += n;
  by_vendor_[lane.vendor] += n;
  by_model_[lane.model] += n;
  by_tenant_[lane.tenant] += n;
}

std::optional<LaneId> Admission::next() {
  if (config_.daemon.max_in_flight != 0 && in_flight_ >= config_.daemon.max_in_flight) {
    return std::nullopt;
  }
  while (!queue_.empty()) {
    const Candidate best = queue_.top();
    queue_.pop();
    // Places only get fewer within one decision, so a lane without one is done with.
    if (!has_place(lanes_[best.lane])) continue;
    current_ = best.lane;
    return lanes_[current_].lane_id;
  }
  return std::nullopt;
}

void Admission::push(std::size_t lane, const std::optional<LaneHead>& head) {
  if (head) queue_.push({head->rank, head->job_id, lane});
}

void Admission::started(const std::optional<LaneHead>& head) {
  count(lanes_[current_], 1);
  push(current_, head);
}

void Admission::passed(const std::optional<LaneHead>& head) {
  push(current_, head);
}

}  // namespace aiq
