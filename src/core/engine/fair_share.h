#pragma once
// Whose turn it is among tenants that have a job ready (contract, section 5.3, "Order"). Pure.
//
// First by priority: the one of the tenant's own first job, plus one step per `age_step` that this
// tenant has waited since it was last served. Among equals weighted fair share by start-time fair
// queueing (Goyal, Vin, Cheng 1996): a tenant's next job is tagged with the later one of the
// virtual clock and the end of the tenant's last job; each job lasts 1/weight; the smallest tag
// goes first and sets the clock. Who was away returns at the clock: absence earns nothing.

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/store/rows.h"

namespace aiq {

class FairShare {
 public:
  FairShare(const std::vector<ShareRow>& rows, DurationMs age_step_ms, UnixMs now);

  // The tenant's first job is this one now; replaces the one before.
  void offer(const std::string& tenant, std::int64_t weight, const LaneHead& head);
  // The tenant has nothing (more) to offer.
  void withdraw(const std::string& tenant);
  // Whose turn it is; nullptr: nobody offers.
  [[nodiscard]] const std::string* first() const;
  // The offered job of this tenant started.
  void served(const std::string& tenant);

  // What changed since the beginning, the clock included.
  [[nodiscard]] std::vector<ShareRow> changes() const;

 private:
  struct Tenant {
    double finish = 0;
    UnixMs served_at = 0;
    std::int64_t weight = 1;
    bool changed = false;
  };
  // By priority downward, tag, rank, job; the name makes it unique.
  using Place = std::tuple<std::int64_t, double, std::int64_t, JobId, std::string>;

  DurationMs age_step_ms_;
  UnixMs now_;
  double clock_ = 0;
  std::map<std::string, Tenant, std::less<>> tenants_;
  std::map<std::string, Place, std::less<>> offers_;
  std::set<Place> order_;
};

}  // namespace aiq
