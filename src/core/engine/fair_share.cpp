#include "core/engine/fair_share.h"

#include <algorithm>

namespace aiq {

FairShare::FairShare(const std::vector<ShareRow>& rows, DurationMs age_step_ms, UnixMs now)
    : age_step_ms_(std::max<DurationMs>(1, age_step_ms)), now_(now) {
  for (const ShareRow& row : rows) {
    if (row.tenant.empty()) {
      clock_ = row.finish;
    } else {
      tenants_[row.tenant] = {.finish = row.finish, .served_at = row.served_at};
    }
  }
}

void FairShare::offer(const std::string& tenant, std::int64_t weight, const LaneHead& head) {
  withdraw(tenant);
  Tenant& t = tenants_[tenant];
  t.weight = std::max<std::int64_t>(1, weight);
  const DurationMs waited = std::max<DurationMs>(0, now_ - std::max(t.served_at, head.run_at));
  const std::int64_t priority = head.priority + waited / age_step_ms_;
  Place place{-priority, std::max(clock_, t.finish), head.rank, head.job_id, tenant};
  order_.insert(place);
  offers_.emplace(tenant, std::move(place));
}

void FairShare::withdraw(const std::string& tenant) {
  const auto found = offers_.find(tenant);
  if (found == offers_.end()) return;
  order_.erase(found->second);
  offers_.erase(found);
}

const std::string* FairShare::first() const {
  return order_.empty() ? nullptr : &std::get<4>(*order_.begin());
}

void FairShare::served(const std::string& tenant) {
  Tenant& t = tenants_[tenant];
  const double start = std::max(clock_, t.finish);
  clock_ = start;
  t.finish = start + 1.0 / static_cast<double>(t.weight);
  t.served_at = now_;
  t.changed = true;
}

std::vector<ShareRow> FairShare::changes() const {
  std::vector<ShareRow> rows;
  for (const auto& [name, tenant] : tenants_)
    if (tenant.changed) rows.push_back({name, tenant.served_at, tenant.finish});
  if (!rows.empty()) rows.push_back({"", now_, clock_});
  return rows;
}

}  // namespace aiq
