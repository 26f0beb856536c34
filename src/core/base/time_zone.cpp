#include "core/base/time_zone.h"

#include <date/tz.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace aiq {

struct TimeZone::Zone {
  const date::time_zone* zone;
};

namespace {

using std::chrono::milliseconds;
using Sys = date::sys_time<milliseconds>;
using Local = date::local_time<milliseconds>;

UnixMs ms_of(Sys at) {
  return at.time_since_epoch().count();
}

// The first instant of a local time; where the clocks skipped it, the instant of the skip.
UnixMs begin_of(const date::time_zone* zone, date::local_days day) {
  const Local local{day};
  if (zone == nullptr) return local.time_since_epoch().count();
  return ms_of(zone->to_sys(local, date::choose::earliest));
}

Span hour_span(const date::time_zone* zone, Sys at) {
  if (zone == nullptr) {
    const Sys start{date::floor<std::chrono::hours>(at)};
    return {ms_of(start), ms_of(start + std::chrono::hours(1))};
  }
  // By the offset that holds now; a change of it ends the hour.
  const date::sys_info info = zone->get_info(at);
  const Local local{at.time_since_epoch() + info.offset};
  const Local hour{date::floor<std::chrono::hours>(local)};
  const Sys start{hour.time_since_epoch() - info.offset};
  return {ms_of(std::max(start, Sys{std::max(info.begin, date::sys_seconds{})})),
          std::min<UnixMs>(ms_of(start + std::chrono::hours(1)),
                           info.end.time_since_epoch().count() > 4'000'000'000'000
                               ? INT64_MAX
                               : ms_of(Sys{info.end}))};
}

}  // namespace

std::optional<TimeZone> TimeZone::find(const std::string& name) {
  TimeZone out;
  if (name == "UTC" || name == "Z") return out;
  try {
    out.zone_ = std::make_shared<const Zone>(Zone{date::locate_zone(name)});
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  return out;
}

Span TimeZone::span(Calendar unit, UnixMs at_ms) const {
  const date::time_zone* zone = zone_ ? zone_->zone : nullptr;
  const Sys at{milliseconds(at_ms)};
  if (unit == Calendar::hour) return hour_span(zone, at);
  const Local local = zone != nullptr ? zone->to_local(at) : Local{at.time_since_epoch()};
  const date::local_days day = date::floor<date::days>(local);
  if (unit == Calendar::day) return {begin_of(zone, day), begin_of(zone, day + date::days(1))};
  const date::year_month_day ymd{day};
  const date::year_month month = ymd.year() / ymd.month();
  return {begin_of(zone, date::local_days{month / 1}),
          begin_of(zone, date::local_days{(month + date::months(1)) / 1})};
}

}  // namespace aiq
