#pragma once
// The vendor's limits: sliding windows by arrival, and requests in flight.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "sim/message.h"

namespace aiq::sim {

inline constexpr DurationMs kWindowMs = 60'000;

// At most `limit` units in any 60 s. A unit taken at t is free again at t + 60 s exactly.
class SlidingWindow {
 public:
  // `limit` > 0.
  explicit SlidingWindow(std::int64_t limit) : limit_(limit) {}

  // Milliseconds from `now` until `amount` would fit; 0 = fits now; nullopt = above the whole
  // limit, never fits. Times must not go back from call to call.
  [[nodiscard]] std::optional<DurationMs> wait_for(MonoMs now, std::int64_t amount);
  void take(MonoMs now, std::int64_t amount);

  [[nodiscard]] std::int64_t limit() const { return limit_; }
  [[nodiscard]] std::int64_t remaining(MonoMs now);
  // Milliseconds until the whole limit is free again.
  [[nodiscard]] DurationMs full_in(MonoMs now);

 private:
  struct Entry {
    MonoMs at;
    std::int64_t amount;
  };
  void forget_old(MonoMs now);

  std::int64_t limit_;
  std::int64_t used_ = 0;
  std::deque<Entry> entries_;
};

struct LimitOptions {
  std::int64_t rpm = 0;  // requests per 60 s; 0 = no limit, here and below
  std::int64_t tpm = 0;  // tokens per 60 s
  std::int64_t max_in_flight = 0;
};

// Why a request is refused with 429.
struct Refusal {
  std::string limit;               // "rpm", "tpm", "max_in_flight"
  std::int64_t retry_after_s = 1;  // rounded up
  std::string message;
};

class Limits {
 public:
  explicit Limits(const LimitOptions& options);

  // Takes one request and `tokens` from the windows, or takes nothing and says why.
  [[nodiscard]] std::optional<Refusal> admit(MonoMs now, std::int64_t tokens,
                                             std::int64_t in_flight);

  // The rate headers of the limits that are on, as the vendor writes them after this request:
  // Go durations for OpenAI, RFC 3339 times for Anthropic.
  [[nodiscard]] Headers rate_headers(bool anthropic, MonoMs now, UnixMs wall);

 private:
  std::optional<SlidingWindow> requests_;
  std::optional<SlidingWindow> tokens_;
  std::int64_t max_in_flight_;
};

// As Go prints durations: "0s" "12ms" "1.5s" "6m0s" "23h47m36.648s". `ms` >= 0.
[[nodiscard]] std::string go_duration(DurationMs ms);

}  // namespace aiq::sim
