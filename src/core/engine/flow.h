#pragma once
// What the end of an attempt teaches about its vendor: what it really used of the limits, which
// limits the vendor tells, whether it asks for a slower pace, whether it works at all.

#include "core/config/config.h"
#include "core/store/store.h"
#include "core/vendor/vendor.h"

namespace aiq {

struct EndedRequest {
  Lane lane;
  Outcome outcome = Outcome::unknown;
  UnixMs started_at = 0;
  bool sent = true;                           // false: it never left
  std::int64_t taken_tokens = 0;              // at the lease
  std::optional<std::int64_t> prompt_tokens;  // as used; nullopt: not told
  std::int64_t output_tokens = 0;             // as used
  std::optional<std::int64_t> output_limit;   // that the request itself set
  RateReport rate;
};

// Within the transaction that ends the attempt.
void learn_from(Store& store, const Config& config, const EndedRequest& ended, UnixMs now);

}  // namespace aiq
