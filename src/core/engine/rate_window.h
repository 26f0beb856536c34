#pragma once
// A limit of so many units in any 60 s, kept so that its edge is used and never crossed.
//
// Two rules together (contract, section 5.3, "Windows"):
//   bucket: refilled evenly with (limit - b) per 61 s, holds at most b = 4 % of the limit (at least
//           one unit). It keeps starts apart. Who needs more than b may start when it is full; the
//           bucket is then in debt.
//   window: what was taken in the last 60 s, by whole seconds, and what is asked for now, are not
//           more than the limit. It holds for takers of any size, and after a limit was lowered.
// 61 s and whole seconds: a request reaches the vendor somewhat later than it was let go.
//
// Pure. Times are of the wall clock; one that goes back neither refills nor frees anything.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/store/rows.h"

namespace aiq {

class RateWindow {
 public:
  // Never used: the bucket is full.
  RateWindow() = default;
  // Throws std::invalid_argument for a row that this program can't have written.
  explicit RateWindow(const RateRow& row);
  void write_to(RateRow& row) const;

  // `limit` > 0, units in any 60 s; `units` >= 0: above the whole limit it counts as the limit.
  [[nodiscard]] bool fits(std::int64_t limit, UnixMs now, std::int64_t units) const {
    return fits_at(limit, now, units) <= now;
  }
  // The earliest time, if nothing else is taken; `now` = it fits.
  [[nodiscard]] UnixMs fits_at(std::int64_t limit, UnixMs now, std::int64_t units) const;
  void take(std::int64_t limit, UnixMs now, std::int64_t units);
  // What was taken at `taken_at` turned out to be `used`.
  void correct(UnixMs taken_at, std::int64_t taken, std::int64_t used);
  // The vendor says that `remaining` are left, and counts `used` in its own window. What others
  // took beside us counts like ours.
  void observe(UnixMs now, std::int64_t used, std::int64_t remaining);

  // Taken within the last minute.
  [[nodiscard]] std::int64_t taken(UnixMs now) const;

 private:
  struct Second {
    std::int64_t at;  // seconds since 1970
    std::int64_t units;
  };
  [[nodiscard]] double level_at(std::int64_t limit, UnixMs now) const;
  void add(UnixMs at, std::int64_t units);

  bool begun_ = false;
  double level_ = 0;
  UnixMs at_ = 0;
  std::deque<Second> recent_;  // by time
};

}  // namespace aiq
