#include "core/money/job_cost.h"

#include "core/money/pricing.h"
#include "core/store/cost_ledger.h"

namespace aiq {
namespace {

// A row with all that corrects it.
Int128 net_amount(CostLedger& ledger, const LedgerRow& row) {
  Int128 out = row.amount;
  for (const LedgerRow& reprice : ledger.reprices_of(row.entry_id))
    out += net_amount(ledger, reprice);
  if (const auto reversal = ledger.reversal_of(row.entry_id)) out += net_amount(ledger, *reversal);
  return out;
}

// False: it has no price.
bool add_event(const Config& config, Reader& reader, const UsageEvent& event, JobCost& cost) {
  CostLedger& ledger = reader.ledger();
  Int128 amount = 0;
  std::string currency;
  const auto rows = ledger.rows_of(event.source, event.tenant, "usage", event.event_id);
  for (const LedgerRow& row : rows) {
    amount += net_amount(ledger, row);
    currency = row.currency;
  }
  if (rows.empty()) {
    cost.posted = false;
    const auto rated = rate_usage(config, reader, event);
    if (!rated) return false;
    amount = rated->amount;
    currency = rated->currency;
  }
  if (!cost.currency.empty() && cost.currency != currency) return false;
  cost.currency = currency;
  cost.amount = cost.amount.value_or(0) + amount;
  return true;
}

}  // namespace

std::optional<JobCost> job_cost(const Config& config, Reader& reader, const JobRow& job) {
  const auto events = reader.ledger().usage_of_job(job.job_id);
  JobCost out{.amount = Int128{0}, .currency = "", .posted = true};
  if (events.empty()) return job.result_source == "cache" ? std::optional(out) : std::nullopt;
  bool known = true;
  for (const UsageEvent& event : events)
    known = add_event(config, reader, event, out) && known;
  if (!known) out.amount.reset();
  return out;
}

}  // namespace aiq
