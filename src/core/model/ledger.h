#pragma once
// What was used and what is owed for it, as values, with their keys and hashes. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/money.h"
#include "core/model/period.h"

namespace aiq {

// One metered use. `source` "" is this aiq; another name is an import.
struct UsageEvent {
  std::int64_t usage_id = 0;  // 0: not stored yet
  std::string source;
  std::string tenant, event_id;
  std::string vendor;  // "" = not told
  std::string model, meter;
  std::int64_t units = 0;                      // > 0
  std::optional<std::int64_t> context_tokens;  // prompt tokens of its request
  std::optional<Pico> unit_pico;               // its own price; nullopt: the price book's
  // Of its own price; without one: the currency that the book must have, "" = whichever.
  std::string currency;
  UnixMs occurred_at = 0, received_at = 0;
  std::optional<std::int64_t> job_id;   // ours
  std::string job_ref, correlation_id;  // job_ref: job id of another system
};

// SHA-256 over all that an event says, without when it was received and where it came from: two
// deliveries of one event id are equal when these are.
[[nodiscard]] std::string payload_hash(const UsageEvent& event);

// Ids of our own jobs' events begin so; others may not.
inline constexpr std::string_view kOwnEventPrefix = "job:";

// A row of the ledger, as it is appended or read.
struct LedgerRow {
  std::int64_t entry_id = 0;  // 0: not stored yet
  std::string source, given_id, idempotency_key;
  std::string tenant;
  std::string source_type;  // ours: usage, credit_note, reversal, reprice
  std::string source_ref;   // event id, note id, ledger id
  UnixMs service_period = 0, posting_period = 0;
  // Of usage: when it was used. Of a reversal or reprice: the reversed row's, so that days of any
  // time zone balance. Of a credit note: the service period.
  UnixMs occurred_at = 0;
  UnixMs posted_at = 0;
  Pico amount = 0;
  std::string currency;
  // Of a correction: the corrected row's.
  std::optional<std::int64_t> usage_id;
  std::optional<std::int64_t> price_id, reverses, reprices, repair_id;
  std::string payload_hash;
  std::string job_id;
  std::optional<std::int64_t> run_id;
  int retry_count = 0;
  std::string correlation_id, reason, actor;
};

// The id that an operator sees and gives: of imported rows as given, else the entry's.
[[nodiscard]] std::string ledger_id(const LedgerRow& row);

[[nodiscard]] std::string usage_key(std::string_view tenant, std::string_view event_id);
// Of the payload that replaced the first one.
[[nodiscard]] std::string replaced_usage_key(std::string_view tenant, std::string_view event_id,
                                             std::int64_t conflict_id);
[[nodiscard]] std::string reversal_key(std::string_view ledger_id);
[[nodiscard]] std::string credit_note_key(std::string_view credit_note_id);
[[nodiscard]] std::string reprice_key(std::string_view ledger_id, std::int64_t price_id);

// Hash of a row that no event stands behind.
[[nodiscard]] std::string posting_hash(const LedgerRow& row);

// What a tenant owes for an hour in one currency. The total by service period is the sum of its
// three parts.
struct SummaryRow {
  std::string source;  // "" = computed here
  std::string tenant;
  UnixMs period = 0;
  std::string currency;
  Int128 service_total = 0;
  std::optional<Int128> billed_total;  // by posting period; nullopt: imported without
  Int128 usage = 0, credit = 0, correction = 0;
  std::int64_t ledger_rows = 0;  // by service period
  std::int64_t events = 0;       // usage rows of these
  std::int64_t watermark = 0;    // latest entry_id of the rows it is made of
  std::string content_hash;
};

// SHA-256 over totals and counts, not over ids or times: equal for equal content.
[[nodiscard]] std::string content_hash(const SummaryRow& row);

}  // namespace aiq
