#pragma once
// Which job may start now (contract, section 5.3): one decision over pauses, waits that vendors
// asked for, breakers, proof, the in-flight limits of the process, vendor, model and tenant, and
// the limits per minute of vendor, model and tenant.
//
// Pure: it reads a view of the store taken in the same transaction in which the leases follow, and
// says in changes() what these have taken. In flight means live leases, counted from the view,
// never a counter that could leak.

#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/engine/breaker.h"
#include "core/engine/fair_share.h"
#include "core/engine/rate_limits.h"
#include "core/engine/rate_window.h"
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
  Admission(const Admission&) = delete;  // it points into itself
  Admission& operator=(const Admission&) = delete;

  // The lane whose head goes first among those that may start one now; nullopt: none may.
  // Between tenants as FairShare says, within one by rank, then job id. Follow with started() or
  // passed().
  [[nodiscard]] std::optional<LaneId> next();
  // The lane's head was leased: it takes a place. `head`: the lane's next ready job, if any.
  void started(const std::optional<LaneHead>& head);
  // The head left the ready set without a lease (served from the cache, waits, dead).
  void passed(const std::optional<LaneHead>& head);

  // What the starts have taken, to be stored with the leases.
  struct Changes {
    std::vector<RateRow> rates;
    std::vector<RateHold> spreads;
    std::vector<ShareRow> shares;
  };
  [[nodiscard]] Changes changes() const;

  // Earliest time at which a lane that is closed now may open by itself; nullopt: only an event
  // (an answer, a submit, a command) can open one.
  [[nodiscard]] std::optional<UnixMs> next_opening() const { return next_opening_; }
  // By the rules of next(): what closes the lane of this head, what takes its places, and which
  // limits the head does not fit into. Empty: nothing does.
  [[nodiscard]] std::vector<Block> explain(const LaneHead& head);
  // Vendors that have earned their proof by time, to be recorded.
  [[nodiscard]] const std::vector<std::string>& proven_by_time() const { return proven_by_time_; }

 private:
  using VendorModel = std::pair<std::string, std::string>;
  // A limit per minute that is in force.
  struct Window {
    RateRow row;
    std::optional<RateWindow> state;  // read when it is first needed
    bool known = false;               // there is a row
    bool changed = false;
    // A job that goes before others did not fit: they must not take what it waits for.
    bool reserved = false;
  };
  struct WindowUse {
    Window* window;
    std::int64_t limit;  // in force, at the pace of the vendor and model
    bool tokens;
  };
  struct LaneState {
    Lane lane;
    LaneHead head;
    std::vector<WindowUse> windows;
    RateHold* spread = nullptr;  // a hold is over, and starts are spread
  };
  struct ByRank {
    const std::vector<LaneState>* lanes;
    bool operator()(std::size_t a, std::size_t b) const {
      const LaneHead& x = (*lanes)[a].head;
      const LaneHead& y = (*lanes)[b].head;
      return std::pair(x.rank, x.job_id) > std::pair(y.rank, y.job_id);
    }
  };
  using LaneQueue = std::priority_queue<std::size_t, std::vector<std::size_t>, ByRank>;

  enum class Closed { no_vendor, tenant_disabled, pause, hold, breaker };
  enum class Full { vendor, unproven, pace, probes, model, tenant };
  // Conditions that hold for the whole decision. Calls `each(closed, pause or nullptr, until)` for
  // each that closes the lane now.
  template <class Each>
  void each_closing(const Lane& lane, const Each& each) const;
  // Conditions that each start changes: `each(full, limit)` for each whose places are taken.
  template <class Each>
  void each_full(const Lane& lane, const Each& each) const;
  // Limits per minute and spread starts: `each(use or nullptr, until)` for each that does not let
  // the lane's head start now.
  template <class Each>
  void each_early(const LaneState& lane, const Each& each) const;

  [[nodiscard]] bool is_open(const Lane& lane);
  [[nodiscard]] bool has_place(const Lane& lane) const;
  [[nodiscard]] bool is_early(const LaneState& lane);
  [[nodiscard]] bool is_proven(const std::string& vendor) const;
  [[nodiscard]] double share_of(const Lane& lane) const;
  [[nodiscard]] int places_of(const Lane& lane) const;
  [[nodiscard]] std::int64_t units_of(const WindowUse& use, const LaneHead& head) const;
  [[nodiscard]] LaneState state_of(const LaneHead& head);
  void count(const Lane& lane, int n);
  void prove_by_time(const AdmissionView& view);
  void opens_at(UnixMs at);
  void offer(const std::string& tenant);
  void put(const std::optional<LaneHead>& head);
  [[nodiscard]] std::string words_of(const WindowUse& use) const;

  const Config& config_;
  UnixMs now_;
  std::vector<Pause> pauses_;
  std::map<VendorModel, RateHold> holds_;
  std::map<VendorModel, double> paces_;
  std::map<VendorModel, Breaker> breakers_;
  std::map<RateKey, Window> windows_;
  bool told_ = false;  // a vendor has told a limit
  std::set<std::string, std::less<>> proven_;
  std::vector<std::string> proven_by_time_;
  std::vector<LaneState> lanes_;
  std::map<std::string, LaneQueue, std::less<>> tenants_;
  FairShare fair_share_;
  std::size_t current_ = 0;  // lane given by next()
  int in_flight_ = 0;
  std::map<std::string, int, std::less<>> by_vendor_, by_model_, by_tenant_;
  std::map<VendorModel, int> by_vendor_model_;
  std::set<VendorModel> spread_;  // whose spread has changed
  std::optional<UnixMs> next_opening_;
};

}  // namespace aiq
