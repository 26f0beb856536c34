#include "core/model/ledger.h"

#include "core/base/sha256.h"

namespace aiq {
namespace {

void add_number(Sha256& hash, std::optional<std::int64_t> number) {
  hash.update_field(number ? std::to_string(*number) : std::string());
}

std::string join(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) {
    if (!out.empty()) out += '|';
    out += part;
  }
  return out;
}

}  // namespace

std::string payload_hash(const UsageEvent& event) {
  Sha256 hash;
  hash.update_field("aiq.usage.1");
  for (const std::string* text :
       {&event.tenant, &event.event_id, &event.vendor, &event.model, &event.meter})
    hash.update_field(*text);
  add_number(hash, event.units);
  add_number(hash, event.context_tokens);
  add_number(hash, event.unit_pico);
  hash.update_field(event.currency);
  add_number(hash, event.occurred_at);
  add_number(hash, event.job_id);
  hash.update_field(event.job_ref);
  hash.update_field(event.correlation_id);
  return hash.hex();
}

std::string ledger_id(const LedgerRow& row) {
  return row.given_id.empty() ? std::to_string(row.entry_id) : row.given_id;
}

std::string usage_key(std::string_view tenant, std::string_view event_id) {
  return join({"usage", tenant, event_id});
}

std::string replaced_usage_key(std::string_view tenant, std::string_view event_id,
                               std::int64_t conflict_id) {
  return join({"usage", tenant, event_id, std::to_string(conflict_id)});
}

std::string reversal_key(std::string_view ledger_id) {
  return join({"reversal", ledger_id});
}

std::string credit_note_key(std::string_view credit_note_id) {
  return join({"credit_note", credit_note_id});
}

std::string reprice_key(std::string_view ledger_id, std::int64_t price_id) {
  return join({"reprice", ledger_id, std::to_string(price_id)});
}

std::string posting_hash(const LedgerRow& row) {
  Sha256 hash;
  hash.update_field("aiq.posting.1");
  for (const std::string* text :
       {&row.tenant, &row.source_type, &row.source_ref, &row.currency, &row.reason})
    hash.update_field(*text);
  add_number(hash, row.service_period);
  add_number(hash, row.amount);
  return hash.hex();
}

std::string content_hash(const SummaryRow& row) {
  Sha256 hash;
  hash.update_field("aiq.summary.1");
  hash.update_field(row.tenant);
  add_number(hash, row.period);
  hash.update_field(row.currency);
  for (const Int128 total :
       {row.service_total, row.billed_total.value_or(0), row.usage, row.credit, row.correction})
    hash.update_field(format_int128(total));
  add_number(hash, row.ledger_rows);
  add_number(hash, row.events);
  return hash.hex();
}

}  // namespace aiq
