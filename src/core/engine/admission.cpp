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

bool Admission::is_open(const Lane& lane) {
  if (!config_.vendors.contains(lane.vendor)) return false;
  const auto tenant = config_.tenants.find(lane.tenant);
  if (tenant != config_.tenants.end() && tenant->second.disabled) return false;
  std::optional<UnixMs> closed_until;
  for (const Pause& pause : pauses_) {
    if (!matches(pause, lane)) continue;
    if (!pause.until) return false;
    if (*pause.until > now_) closed_until = std::max(closed_until.value_or(0), *pause.until);
  }
  const auto hold = holds_.find({lane.vendor, lane.model});
  if (hold != holds_.end() && hold->second > now_) {
    closed_until = std::max(closed_until.value_or(0), hold->second);
  }
  if (closed_until) opens_at(*closed_until);
  return !closed_until;
}

bool Admission::is_proven(const std::string& vendor) const {
  return proven_.contains(vendor);
}

bool Admission::has_place(const Lane& lane) const {
  const VendorConfig& vendor = config_.vendors.at(lane.vendor);
  const int vendor_limit = is_proven(lane.vendor) ? vendor.max_in_flight : 1;
  if (!below(by_vendor_, lane.vendor, vendor_limit)) return false;
  const auto model = config_.models.find(lane.model);
  if (model != config_.models.end() && !below(by_model_, lane.model, model->second.max_in_flight)) {
    return false;
  }
  const auto tenant = config_.tenants.find(lane.tenant);
  return tenant == config_.tenants.end() ||
         below(by_tenant_, lane.tenant, tenant->second.max_in_flight);
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
