#pragma once
// Hours, days and months as a place has them, by the time zone database of the system. Spans are
// half-open intervals of UTC that cover all time without gap or overlap, so that what is summed by
// them adds up whatever the clocks of the place did.

#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"

namespace aiq {

enum class Calendar { hour, day, month };

struct Span {
  UnixMs start = 0, end = 0;

  bool operator==(const Span&) const = default;
};

class TimeZone {
 public:
  // "UTC", "Asia/Kolkata". nullopt: the system knows no such zone.
  [[nodiscard]] static std::optional<TimeZone> find(const std::string& name);

  // The span that holds `at`. An hour or a day that the clocks cut short or repeat is as long as
  // it was; a repeated hour is two.
  [[nodiscard]] Span span(Calendar unit, UnixMs at) const;
  [[nodiscard]] bool is_utc() const { return zone_ == nullptr; }

 private:
  struct Zone;
  std::shared_ptr<const Zone> zone_;  // null: UTC
};

}  // namespace aiq
