#pragma once
// Rows of money as the JSON of the operator's contract: amounts as exact decimals in strings, ids
// as strings, periods and times RFC 3339.

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/json_render.h"
#include "core/ops/op.h"
#include "core/store/cost_ledger.h"

namespace aiq {

[[nodiscard]] Json json_money(Int128 pico);
[[nodiscard]] Json json_ids(const std::vector<std::int64_t>& ids);

[[nodiscard]] Json json_usage_event(const UsageEvent& event);
[[nodiscard]] Json json_usage_row(const UsageRow& row);
[[nodiscard]] Json json_conflict(const UsageConflict& conflict);
[[nodiscard]] Json json_ledger_row(const LedgerRow& row);
[[nodiscard]] Json json_summary(const SummaryRow& row);
[[nodiscard]] Json json_run(const RunRow& run);
[[nodiscard]] Json json_freeze(const Freeze& freeze);

// A reason or a name that a person gives: at most 500 bytes, no control characters.
[[nodiscard]] bool is_plain_note(std::string_view text);

}  // namespace aiq
