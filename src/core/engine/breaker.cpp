#include "core/engine/breaker.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace aiq {

namespace {

constexpr int kDoublings = 3;  // 2^3 = 8 times

std::int64_t parse_number(const char*& at, const char* end, char before) {
  if (before != 0) {
    if (at == end || *at != before) throw std::invalid_argument("breaker: unreadable counts");
    ++at;
  }
  std::int64_t value = 0;
  const auto [next, error] = std::from_chars(at, end, value);
  if (error != std::errc()) throw std::invalid_argument("breaker: not a number");
  at = next;
  return value;
}

}  // namespace

Breaker::Breaker(const BreakerRow& row)
    : open_until_(row.open_until), streak_(row.streak), probes_ok_(row.probes_ok) {
  const char* at = row.recent.data();
  const char* const end = at + row.recent.size();
  while (at != end) {
    if (*at == ' ') ++at;
    Second second{};
    second.at = parse_number(at, end, 0);
    second.answered = parse_number(at, end, ':');
    second.failed = parse_number(at, end, ':');
    recent_.push_back(second);
  }
}

void Breaker::write_to(BreakerRow& row) const {
  row.open_until = open_until_;
  row.streak = streak_;
  row.probes_ok = probes_ok_;
  row.recent.clear();
  for (const Second& second : recent_) {
    if (!row.recent.empty()) row.recent += ' ';
    row.recent += std::to_string(second.at) + ":" + std::to_string(second.answered) + ":" +
                  std::to_string(second.failed);
  }
}

Breaker::State Breaker::state(UnixMs now) const {
  if (!open_until_) return State::closed;
  return now < *open_until_ ? State::open : State::half_open;
}

Breaker::Change Breaker::note(const BreakerConfig& config, bool failed, UnixMs started_at,
                              UnixMs now) {
  if (!open_until_) return count(config, failed, now);
  if (started_at < *open_until_) return Change::none;
  if (failed) {
    ++streak_;
    open(config, now);
    return Change::opened;
  }
  if (++probes_ok_ < config.probes) return Change::counted;
  *this = Breaker();
  return Change::closed;
}

Breaker::Change Breaker::count(const BreakerConfig& config, bool failed, UnixMs now) {
  const std::int64_t second = now / 1000;
  const bool counted_before = !recent_.empty();
  while (!recent_.empty() && recent_.front().at * 1000 + config.window_ms <= now)
    recent_.pop_front();
  while (!recent_.empty() && recent_.front().failed == 0)
    recent_.pop_front();
  if (recent_.empty() && !failed) return counted_before ? Change::forgotten : Change::none;
  if (recent_.empty() || recent_.back().at < second) recent_.push_back({second, 0, 0});
  ++(failed ? recent_.back().failed : recent_.back().answered);
  std::int64_t all = 0, bad = 0;
  for (const Second& each : recent_) {
    all += each.answered + each.failed;
    bad += each.failed;
  }
  const bool share = static_cast<double>(bad) >= config.failure_share * static_cast<double>(all);
  if (!failed || all < config.min_requests || !share) return Change::counted;
  open(config, now);
  return Change::opened;
}

void Breaker::open(const BreakerConfig& config, UnixMs now) {
  open_until_ = now + (config.open_for_ms << std::min(streak_, kDoublings));
  probes_ok_ = 0;
  recent_.clear();
}

std::optional<bool> fails_vendor(Outcome outcome) {
  switch (outcome) {
    case Outcome::network:
    case Outcome::connect_timeout:
    case Outcome::first_byte_timeout:
    case Outcome::total_timeout:
    case Outcome::server_error:
    case Outcome::overloaded:
      return true;
    case Outcome::completed:
    case Outcome::bad_response:
    case Outcome::empty_response:
    case Outcome::rejected:
      return false;
    default:
      return std::nullopt;
  }
}

}  // namespace aiq
