#pragma once
// Rows of another system's tables as files have them, one JSON object per line. Amounts are whole
// pico, as numbers or, beyond 2^53, as strings.
//   ledger    ledger_id, tenant, service_period, source_type, source_ref, amount_pico, currency,
//             posted_at; optional posting_period (default: the service period), idempotency_key,
//             job_id, retry_count, correlation_id, payload_hash, occurred_at, reason
//   summary   tenant, period, currency, total_pico; optional billed_total_pico
//   runs      tenant, period, started_at; optional job_id, finished_at, retry_count, status
//             ("success" counts), correlation_id
//   credits   credit_note_id, tenant, service_period, amount_pico (as posted: negative reduces),
//             currency, status ("approved" counts); optional reason, approved_by, created_at
//   invoices  invoice_id, tenant, period, state, total_cents, currency, created_at; optional
//             period_end (default: one hour)
//   usage     as usage_lines.h says

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/expected.h"
#include "core/money/json_line.h"
#include "core/store/cost_audit.h"

namespace aiq {

using ImportRow =
    std::variant<UsageEvent, LedgerRow, SummaryRow, RunRow, CreditNote, ImportedInvoice>;

enum class ImportKind { usage, ledger, summary, runs, credits, invoices };
[[nodiscard]] std::optional<ImportKind> parse_import_kind(std::string_view name);

// `source`: not "".
[[nodiscard]] Expected<ImportRow, LineError> parse_import_line(ImportKind kind,
                                                               std::string_view line,
                                                               const std::string& source,
                                                               UnixMs now);

// The tenant-hours that a row belongs to.
[[nodiscard]] std::set<TenantPeriod> hours_of(const ImportRow& row);
// What an operator calls it: "ledger row L000007".
[[nodiscard]] std::string describe(const ImportRow& row);

}  // namespace aiq
