#pragma once
// Which job may start now (contract, section 5.3): one decision over pauses, waits that vendors
// asked for, proof, and the in-flight limits of the process, vendor, model and tenant.
//
// Pure: it reads a view of the store taken in the same transaction in which the leases follow.
// In flight means live leases, counted from the view, never a counter that could leak.

#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/store/rows.h"

namespace aiq {

// An unproven vendor whose only request has run this long is taken for proven.
inline constexpr DurationMs kProofAfterMs = 5'000;

// What keeps a job from starting now (contract, section 4.3, `why`).
struct Block {
  std::string code;    // vendor_paused, rate_limited, tenant_in_flight, ...
  std::string detail;  // a sentence
  std::optional<UnixMs> until;
};

class Admission {
 public:
  // `now`: wall clock of the view.
  Admission(const Config& config, const AdmissionView& view, UnixMs now);

  // The lane whose head goes first among those that may start one now; nullopt: none may.
  // Order: rank (time waited and priority), then job id. Follow with started() or passed().
  [[nodiscard]] std::optional<LaneId> next();
  // The lane's head was leased: it takes a place. `head`: the lane's next ready job, if any.
  void started(const std::optional<LaneHead>& head);
  // The head left the ready set without a lease (served from the cache, waits, dead).
  void passed(const std::optional<LaneHead>& head);

  // Earliest time at which a lane that is closed now may open by itself; nullopt: only an event
  // (an answer, a submit, a command) can open one.
  [[nodiscard]] std::optional<UnixMs> next_opening() const { return next_opening_; }
  // By the rules of next(): what closes a lane, and what takes its places. Empty: nothing does.
  [[nodiscard]] std::vector<Block> explain(const Lane& lane) const;
  // Vendors that have earned their proof by time, to be recorded.
  [[nodiscard]] const std::vector<std::string>& proven_by_time() const { return proven_by_time_; }

 private:
  struct Candidate {
    std::int64_t rank;
    JobId job_id;
    std::size_t lane;  // index into lanes_
    bool operator>(const Candidate& other) const {
      return std::pair(rank, job_id) > std::pair(other.rank, other.job_id);
    }
  };

  enum class Closed { no_vendor, tenant_disabled, pause, hold };
  enum class Full { vendor, unproven, model, tenant };
  // Conditions that hold for the whole decision: paused, on hold, unknown vendor. Calls
  // `each(closed, pause or nullptr, until)` for each that closes the lane now.
  template <class Each>
  void each_closing(const Lane& lane, const Each& each) const;
  // Conditions that each start changes: `each(full, limit)` for each whose places are taken.
  template <class Each>
  void each_full(const Lane& lane, const Each& each) const;
  [[nodiscard]] bool is_open(const Lane& lane);
  [[nodiscard]] bool has_place(const Lane& lane) const;
  [[nodiscard]] bool is_proven(const std::string& vendor) const;
  void count(const Lane& lane, int n);
  void prove_by_time(const AdmissionView& view);
  void opens_at(UnixMs at);
  void push(std::size_t lane, const std::optional<LaneHead>& head);

  const Config& config_;
  UnixMs now_;
  std::vector<Pause> pauses_;
  std::map<std::pair<std::string, std::string>, UnixMs> holds_;
  std::set<std::string, std::less<>> proven_;
  std::vector<std::string> proven_by_time_;
  std::vector<Lane> lanes_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
  std::size_t current_ = 0;  // lane given by next()
  int in_flight_ = 0;
  std::map<std::string, int, std::less<>> by_vendor_, by_model_, by_tenant_;
  std::optional<UnixMs> next_opening_;
};

}  // namespace aiq
