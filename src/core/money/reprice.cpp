#include "core/money/reprice.h"

#include <limits>

#include "core/money/pricing.h"

namespace aiq {
namespace {

// The payload that the row was posted for.
std::optional<UsageEvent> payload_of(CostLedger& ledger, const LedgerRow& row) {
  auto event = ledger.usage(row.usage_id.value_or(0));
  if (!event) return std::nullopt;
  if (payload_hash(*event) == row.payload_hash) return event;
  auto replaced = ledger.replacement(event->tenant, event->event_id, event->source);
  if (replaced && payload_hash(replaced->event) == row.payload_hash)
    return std::move(replaced->event);
  return std::nullopt;
}

LedgerRow posting_of(CostLedger& ledger, const LedgerRow& row, const Rated& rated, Pico difference,
                     const PostingContext& context) {
  LedgerRow out;
  out.source = row.source;
  out.idempotency_key = reprice_key(ledger_id(row), *rated.price_id);
  out.tenant = row.tenant;
  out.source_type = "reprice";
  out.source_ref = ledger_id(row);
  out.service_period = row.service_period;
  out.posting_period = ledger.first_open_period(row.tenant, row.currency, row.posting_period);
  out.occurred_at = row.occurred_at;
  out.posted_at = context.now;
  out.amount = difference;
  out.currency = row.currency;
  out.usage_id = row.usage_id;
  out.price_id = rated.price_id;
  out.reprices = row.entry_id;
  out.job_id = row.job_id;
  out.correlation_id = row.correlation_id;
  out.reason = context.reason;
  out.actor = context.actor;
  out.payload_hash = posting_hash(out);
  return out;
}

void look_at(Reader& reader, const LedgerRow& row, const PostingContext& context,
             RepriceSlice& out) {
  CostLedger& ledger = reader.ledger();
  if (!row.price_id || is_reversed(ledger, row.entry_id)) return;
  const auto payload = payload_of(ledger, row);
  if (!payload || payload->unit_pico) return;
  Int128 booked = row.amount;
  std::int64_t last_price = *row.price_id;
  for (const LedgerRow& reprice : ledger.reprices_of(row.entry_id)) {
    if (is_reversed(ledger, reprice.entry_id)) continue;
    booked += reprice.amount;
    last_price = reprice.price_id.value_or(last_price);
  }
  const auto rated = rate_usage(context.config, reader, *payload);
  if (rated && rated->price_id == last_price) return;
  if (!rated || rated->currency != row.currency || !rated->price_id) {
    ++out.skipped;
    return;
  }
  const Int128 difference = rated->amount - booked;
  if (difference == 0) return;
  if (difference < std::numeric_limits<Pico>::min() ||
      difference > std::numeric_limits<Pico>::max()) {
    ++out.skipped;
    return;
  }
  out.changes.push_back(
      {.row = row,
       .booked = booked,
       .posting = posting_of(ledger, row, *rated, static_cast<Pico>(difference), context)});
}

}  // namespace

RepriceSlice plan_reprice(Reader& reader, const PeriodScope& scope, std::int64_t after, int limit,
                          const PostingContext& context) {
  RepriceSlice out;
  const auto rows = reader.ledger().usage_rows(scope, after, limit);
  for (const LedgerRow& row : rows)
    look_at(reader, row, context, out);
  if (static_cast<int>(rows.size()) == limit) out.next_after = rows.back().entry_id;
  return out;
}

RepriceSlice post_reprice(Store& store, const PeriodScope& scope, std::int64_t after, int limit,
                          const PostingContext& context) {
  RepriceSlice out = plan_reprice(store, scope, after, limit, context);
  CostLedger& ledger = store.ledger();
  std::set<TenantPeriod> hours;
  for (Reprice& change : out.changes) {
    const auto entry = ledger.append(change.posting);
    if (!entry) {  // posted with this price before, and taken back
      ++out.skipped;
      continue;
    }
    change.posting.entry_id = *entry;
    hours.insert({change.posting.tenant, change.posting.service_period});
    hours.insert({change.posting.tenant, change.posting.posting_period});
  }
  recompute_hours(ledger, hours, context.now);
  return out;
}

}  // namespace aiq
