#pragma once
// The circuit breaker of one vendor and model (contract, section 5.3): closed, open for a time,
// then half open, where a few requests probe. Pure.
//
// It opens when within `window` at least `min_requests` were answered or failed and
// `failure_share` of them failed. Counting begins with the first failure in the window, so that a
// vendor that works costs nothing. A probe that fails opens it again for twice as long, at most
// eight times `open_for`; `probes` that were answered close it.

#include <deque>

#include "core/base/clock.h"
#include "core/config/config.h"
#include "core/store/rows.h"

namespace aiq {

class Breaker {
 public:
  enum class State { closed, open, half_open };

  Breaker() = default;
  // Throws std::invalid_argument for a row that this program can't have written.
  explicit Breaker(const BreakerRow& row);
  void write_to(BreakerRow& row) const;

  [[nodiscard]] State state(UnixMs now) const;
  [[nodiscard]] std::optional<UnixMs> open_until() const { return open_until_; }

  // forgotten: what was counted is too old by now; nothing is left to be kept.
  enum class Change { none, counted, opened, closed, forgotten };
  // A request that began at `started_at` ended. What was sent before the breaker opened says
  // nothing any more.
  Change note(const BreakerConfig& config, bool failed, UnixMs started_at, UnixMs now);

 private:
  struct Second {
    std::int64_t at;  // seconds since 1970
    std::int64_t answered, failed;
  };
  Change count(const BreakerConfig& config, bool failed, UnixMs now);
  void open(const BreakerConfig& config, UnixMs now);

  std::optional<UnixMs> open_until_;
  int streak_ = 0, probes_ok_ = 0;
  std::deque<Second> recent_;
};

// Whether the breaker counts this end of a request, and how: nullopt: it says nothing about the
// vendor's health.
[[nodiscard]] std::optional<bool> fails_vendor(Outcome outcome);

}  // namespace aiq
