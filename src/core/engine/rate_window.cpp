#include "core/engine/rate_window.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace aiq {

namespace {

constexpr double kRefillMs = 61'000;
constexpr std::int64_t kBurstPercent = 4;
// What was taken within second s is forgotten this much after the begin of s.
constexpr std::int64_t kForgetS = 62;

std::int64_t burst_of(std::int64_t limit) {
  return std::max<std::int64_t>(1, limit * kBurstPercent / 100);
}

// Units per ms. With a burst of one, evenly spaced takers: as many as the limit in 61 s.
double refill_of(std::int64_t limit) {
  const std::int64_t burst = burst_of(limit);
  return static_cast<double>(burst == 1 ? limit : limit - burst) / kRefillMs;
}

std::int64_t parse_number(const char*& at, const char* end) {
  std::int64_t value = 0;
  const auto [next, error] = std::from_chars(at, end, value);
  if (error != std::errc()) throw std::invalid_argument("rate window: not a number");
  at = next;
  return value;
}

}  // namespace

RateWindow::RateWindow(const RateRow& row) : begun_(true), level_(row.level), at_(row.at) {
  const char* at = row.recent.data();
  const char* const end = at + row.recent.size();
  while (at != end) {
    if (*at == ' ') ++at;
    const std::int64_t second = parse_number(at, end);
    if (at == end || *at++ != ':') throw std::invalid_argument("rate window: no units");
    recent_.push_back({second, parse_number(at, end)});
  }
}

void RateWindow::write_to(RateRow& row) const {
  row.level = level_;
  row.at = at_;
  row.recent.clear();
  for (const Second& second : recent_) {
    if (!row.recent.empty()) row.recent += ' ';
    row.recent += std::to_string(second.at) + ":" + std::to_string(second.units);
  }
}

double RateWindow::level_at(std::int64_t limit, UnixMs now) const {
  const auto burst = static_cast<double>(burst_of(limit));
  if (!begun_) return burst;
  const auto passed = static_cast<double>(std::max<DurationMs>(0, now - at_));
  return std::min(burst, level_ + passed * refill_of(limit));
}

UnixMs RateWindow::fits_at(std::int64_t limit, UnixMs now, std::int64_t units) const {
  UnixMs at = now;
  const auto need = static_cast<double>(std::min(units, burst_of(limit)));
  // A sum of many small steps: what is missing by rounding is there.
  const double missing = need - level_at(limit, now) - 1e-6;
  if (missing > 0) at = now + static_cast<DurationMs>(std::ceil(missing / refill_of(limit)));
  std::int64_t over = taken(now) + std::min(units, limit) - limit;
  for (const Second& second : recent_) {
    if (over <= 0) break;
    const UnixMs forgotten = (second.at + kForgetS) * 1000;
    if (forgotten <= now) continue;
    over -= second.units;
    at = std::max(at, forgotten);
  }
  return at;
}

void RateWindow::take(std::int64_t limit, UnixMs now, std::int64_t units) {
  level_ = level_at(limit, now) - static_cast<double>(units);
  at_ = begun_ ? std::max(at_, now) : now;
  begun_ = true;
  add(now, units);
}

void RateWindow::add(UnixMs at, std::int64_t units) {
  // A clock that went back: the last second known takes it.
  std::int64_t second = at / 1000;
  if (!recent_.empty()) second = std::max(second, recent_.back().at);
  if (recent_.empty() || recent_.back().at != second) recent_.push_back({second, 0});
  recent_.back().units += units;
  while (recent_.front().at + kForgetS <= second)
    recent_.pop_front();
}

void RateWindow::correct(UnixMs taken_at, std::int64_t taken, std::int64_t used) {
  level_ += static_cast<double>(taken - used);
  const std::int64_t second = taken_at / 1000;
  for (Second& each : recent_) {
    if (each.at < second) continue;
    each.units = std::max<std::int64_t>(0, each.units + used - taken);
    return;
  }
}

void RateWindow::observe(UnixMs now, std::int64_t used, std::int64_t remaining) {
  const std::int64_t unknown = used - taken(now);
  if (unknown > 0) add(now, unknown);
  if (!begun_) {
    begun_ = true;
    at_ = now;
    level_ = static_cast<double>(remaining);
    return;
  }
  level_ = std::min(level_, static_cast<double>(remaining));
}

std::int64_t RateWindow::taken(UnixMs now) const {
  std::int64_t sum = 0;
  for (const Second& second : recent_)
    if ((second.at + kForgetS) * 1000 > now) sum += second.units;
  return sum;
}

}  // namespace aiq
