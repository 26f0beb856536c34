#include "sim/limits.h"

#include <algorithm>

namespace aiq::sim {
namespace {

Refusal refusal(const char* limit, const char* unit, SlidingWindow& window, MonoMs now,
                std::int64_t amount) {
  const std::optional<DurationMs> wait = window.wait_for(now, amount);
  const std::string numbers = " " + std::string(unit) +
                              " per min. Limit: " + std::to_string(window.limit()) +
                              ", requested: " + std::to_string(amount) + ".";
  if (!wait) return {limit, kWindowMs / 1000, "Request too large for" + numbers};
  return {limit, (*wait + 999) / 1000,
          "Rate limit reached for" + numbers + " Please try again in " + go_duration(*wait) + "."};
}

void add_headers(Headers& out, bool anthropic, const char* unit, SlidingWindow& window, MonoMs now,
                 UnixMs wall) {
  const std::string limit = std::to_string(window.limit());
  const std::string remaining = std::to_string(window.remaining(now));
  const DurationMs full_in = window.full_in(now);
  if (anthropic) {
    const std::string prefix = "anthropic-ratelimit-" + std::string(unit);
    out.emplace_back(prefix + "-limit", limit);
    out.emplace_back(prefix + "-remaining", remaining);
    out.emplace_back(prefix + "-reset", format_rfc3339(wall + full_in));
  } else {
    const std::string prefix = "x-ratelimit-";
    out.emplace_back(prefix + "limit-" + unit, limit);
    out.emplace_back(prefix + "remaining-" + unit, remaining);
    out.emplace_back(prefix + "reset-" + unit, go_duration(full_in));
  }
}

}  // namespace

void SlidingWindow::forget_old(MonoMs now) {
  while (!entries_.empty() && entries_.front().at + kWindowMs <= now) {
    used_ -= entries_.front().amount;
    entries_.pop_front();
  }
}

std::optional<DurationMs> SlidingWindow::wait_for(MonoMs now, std::int64_t amount) {
  forget_old(now);
  if (amount > limit_) return std::nullopt;
  std::int64_t used = used_;
  DurationMs wait = 0;
  for (const Entry& entry : entries_) {
    if (used + amount <= limit_) break;
    used -= entry.amount;
    wait = entry.at + kWindowMs - now;
  }
  return wait;
}

void SlidingWindow::take(MonoMs now, std::int64_t amount) {
  if (amount == 0) return;
  entries_.push_back({now, amount});
  used_ += amount;
}

std::int64_t SlidingWindow::remaining(MonoMs now) {
  forget_old(now);
  return limit_ - used_;
}

DurationMs SlidingWindow::full_in(MonoMs now) {
  forget_old(now);
  return entries_.empty() ? 0 : entries_.back().at + kWindowMs - now;
}

Limits::Limits(const LimitOptions& options) : max_in_flight_(options.max_in_flight) {
  if (options.rpm > 0) requests_.emplace(options.rpm);
  if (options.tpm > 0) tokens_.emplace(options.tpm);
}

std::optional<Refusal> Limits::admit(MonoMs now, std::int64_t tokens, std::int64_t in_flight) {
  if (max_in_flight_ > 0 && in_flight >= max_in_flight_) {
    return Refusal{"max_in_flight", 1,
                   "Too many concurrent requests. Limit: " + std::to_string(max_in_flight_) + "."};
  }
  const auto request_wait = requests_ ? requests_->wait_for(now, 1) : 0;
  const auto token_wait = tokens_ ? tokens_->wait_for(now, tokens) : 0;
  // The longer wait decides: a client that honours it fits into both windows.
  const bool tokens_decide = !token_wait || *token_wait > request_wait.value_or(0);
  if (tokens_ && tokens_decide) return refusal("tpm", "tokens", *tokens_, now, tokens);
  if (requests_ && request_wait.value_or(1) > 0) {
    return refusal("rpm", "requests", *requests_, now, 1);
  }
  if (requests_) requests_->take(now, 1);
  if (tokens_) tokens_->take(now, tokens);
  return std::nullopt;
}

Headers Limits::rate_headers(bool anthropic, MonoMs now, UnixMs wall) {
  Headers out;
  if (requests_) add_headers(out, anthropic, "requests", *requests_, now, wall);
  if (tokens_) add_headers(out, anthropic, "tokens", *tokens_, now, wall);
  return out;
}

std::string go_duration(DurationMs ms) {
  if (ms == 0) return "0s";
  if (ms < 1000) return std::to_string(ms) + "ms";
  const DurationMs hours = ms / 3'600'000;
  const DurationMs minutes = ms / 60'000 % 60;
  std::string out;
  if (hours > 0) out += std::to_string(hours) + "h";
  if (hours > 0 || minutes > 0) out += std::to_string(minutes) + "m";
  out += std::to_string(ms / 1000 % 60);
  if (const DurationMs fraction = ms % 1000; fraction > 0) {
    std::string digits = std::to_string(1000 + fraction).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    out += "." + digits;
  }
  return out + "s";
}

}  // namespace aiq::sim
