#pragma once
// Usage events as files have them, one JSON object per line:
//   event_id, tenant, model, meter, units, occurred_at   required
//   price_per_million and currency                       its own price; without one the price
//                                                        book's at occurred_at
//   received_at (default: now), vendor, job_id, correlation_id, context_tokens
// job_id is of the system that delivers; it is kept as text.

#include <string>
#include <string_view>

#include "core/base/expected.h"
#include "core/model/ledger.h"
#include "core/money/json_line.h"

namespace aiq {

inline constexpr std::size_t kEventIdBytes = 200;

// [a-z0-9_]{1,32}
[[nodiscard]] bool is_meter_name(std::string_view name);

// `source`: "" for our own, else the name of the import, whose event ids may also begin "job:".
[[nodiscard]] Expected<UsageEvent, LineError> parse_usage_line(std::string_view line,
                                                               const std::string& source,
                                                               UnixMs now);

}  // namespace aiq
