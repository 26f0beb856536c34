#include "core/money/postings.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/duration.h"
#include "core/money/invoice.h"
#include "core/money/pricing.h"

namespace aiq {
namespace {

Failure no_row(const std::string& id) {
  return {Exit::not_found, "no_such_ledger_row", "there is no ledger row " + id,
          "`aiq cost ledger` shows them"};
}

// Hours whose summaries are to be computed at the end.
class Touched {
 public:
  void add(const LedgerRow& row) {
    hours_.insert({row.tenant, row.service_period});
    hours_.insert({row.tenant, row.posting_period});
  }
  void recompute(CostLedger& ledger, UnixMs now) const { recompute_hours(ledger, hours_, now); }

 private:
  std::set<TenantPeriod> hours_;
};

// What to reverse so that nothing of a usage source is in force, its price corrections included.
std::vector<LedgerRow> rows_in_force(CostLedger& ledger, const UsageEvent& event) {
  std::vector<LedgerRow> out;
  for (const LedgerRow& row : ledger.rows_of(event.source, event.tenant, "usage", event.event_id)) {
    for (const LedgerRow& reprice : ledger.reprices_of(row.entry_id)) {
      if (auto live = in_force(ledger, reprice)) out.push_back(std::move(*live));
    }
    if (auto live = in_force(ledger, row)) out.push_back(std::move(*live));
  }
  return out;
}

Failure conflict_decided(const UsageConflict& conflict) {
  return {Exit::conflict, "already_resolved",
          "conflict " + std::to_string(conflict.conflict_id) + " is " + conflict.state + " since " +
              format_rfc3339(conflict.decided_at.value_or(0)) + " by " + conflict.actor,
          "`aiq usage conflicts list` shows those that are open"};
}

Expected<UsageConflict, Failure> open_conflict(CostLedger& ledger, std::int64_t id) {
  auto conflict = ledger.conflict(id);
  if (!conflict)
    return Unexpected{Failure{Exit::not_found, "no_such_conflict",
                              "there is no conflict " + std::to_string(id),
                              "`aiq usage conflicts list` shows them"}};
  if (conflict->state != "open") return Unexpected{conflict_decided(*conflict)};
  return std::move(*conflict);
}

Failure frozen_failure(const std::string& tenant, UnixMs period, const Freeze& freeze) {
  return {Exit::conflict, "frozen",
          "the hour " + format_rfc3339(period) + " of tenant " + tenant +
              " is frozen: " + freeze.reason,
          "`aiq cost freezes` shows it; `aiq cost unfreeze` lifts it"};
}

}  // namespace

std::optional<LedgerRow> in_force(CostLedger& ledger, LedgerRow row) {
  while (const auto back = ledger.reversal_of(row.entry_id)) {
    auto again = ledger.reversal_of(back->entry_id);
    if (!again) return std::nullopt;
    row = std::move(*again);
  }
  return row;
}

LedgerRow reversal_row(CostLedger& ledger, const LedgerRow& row, const PostingContext& context) {
  LedgerRow out;
  out.source = row.source;
  out.idempotency_key = reversal_key(ledger_id(row));
  out.tenant = row.tenant;
  out.source_type = "reversal";
  out.source_ref = ledger_id(row);
  out.service_period = row.service_period;
  out.posting_period = ledger.first_open_period(row.tenant, row.currency, row.posting_period);
  out.occurred_at = row.occurred_at;
  out.posted_at = context.now;
  out.amount = -row.amount;
  out.currency = row.currency;
  out.usage_id = row.usage_id;
  out.price_id = row.price_id;
  out.reverses = row.entry_id;
  out.job_id = row.job_id;
  out.correlation_id = row.correlation_id;
  out.reason = context.reason;
  out.actor = context.actor;
  out.payload_hash = posting_hash(out);
  return out;
}

bool is_reversed(CostLedger& ledger, std::int64_t entry_id) {
  const auto row = ledger.row(entry_id);
  return row && !in_force(ledger, *row);
}

void recompute_hours(CostLedger& ledger, const std::set<TenantPeriod>& hours, UnixMs now) {
  for (const TenantPeriod& hour : hours) {
    const auto freeze = ledger.freeze_of(hour, now);
    if (freeze && freeze->origin != "operator") continue;
    (void)ledger.recompute(hour, now, true);
  }
  (void)recompute_drafts(ledger, hours, now);
}

Expected<LedgerRow, Failure> find_ledger_row(Reader& reader, const std::string& id) {
  auto rows = reader.ledger().rows_named(id);
  if (rows.empty()) return Unexpected{no_row(id)};
  if (rows.size() == 1) return std::move(rows.front());
  return Unexpected{
      Failure{Exit::conflict, "ambiguous_ledger_row", "several imports have a ledger row " + id,
              "name one as SOURCE/ID, for example " + rows.front().source + "/" + id}};
}

Expected<Decision, Failure> keep_conflict(Store& store, std::int64_t conflict_id,
                                          const PostingContext& context) {
  CostLedger& ledger = store.ledger();
  auto conflict = open_conflict(ledger, conflict_id);
  if (!conflict) return Unexpected{conflict.error()};
  AIQ_CHECK(
      ledger.decide_conflict(conflict_id, "kept", context.reason, context.actor, context.now));
  return Decision{.conflict = *ledger.conflict(conflict_id), .reversed = {}, .posted = {}};
}

Expected<Decision, Failure> replace_conflict(Store& store, std::int64_t conflict_id,
                                             const PostingContext& context) {
  CostLedger& ledger = store.ledger();
  auto conflict = open_conflict(ledger, conflict_id);
  if (!conflict) return Unexpected{conflict.error()};
  const UsageEvent& payload = conflict->event;
  const auto first = ledger.find_usage(payload.tenant, payload.event_id, payload.source);
  if (!first)
    return Unexpected{Failure{Exit::conflict, "no_event",
                              "the event of conflict " + std::to_string(conflict_id) +
                                  " is not there: nothing can be replaced",
                              ""}};
  const auto posted = rows_in_force(ledger, *first);
  const bool ever_posted =
      !ledger.rows_of(first->source, first->tenant, "usage", first->event_id).empty();
  std::optional<LedgerRow> row;
  if (ever_posted) {
    const auto rated = rate_usage(context.config, store, payload);
    if (!rated)
      return Unexpected{Failure{Exit::refused, "unpriced",
                                "no price covers " + payload.model + " " + payload.meter + " at " +
                                    format_rfc3339(payload.occurred_at),
                                "set one with `aiq price set`, then decide"}};
    row.emplace();
    row->source = payload.source;
    row->idempotency_key = replaced_usage_key(payload.tenant, payload.event_id, conflict_id);
    row->tenant = payload.tenant;
    row->source_type = "usage";
    row->source_ref = payload.event_id;
    row->service_period = hour_of(payload.occurred_at);
    row->posting_period =
        ledger.first_open_period(payload.tenant, rated->currency, row->service_period);
    row->occurred_at = payload.occurred_at;
    row->posted_at = context.now;
    row->amount = rated->amount;
    row->currency = rated->currency;
    row->usage_id = first->usage_id;
    row->price_id = rated->price_id;
    row->payload_hash = payload_hash(payload);
    row->job_id = payload.job_ref;
    row->correlation_id = payload.correlation_id;
    row->reason = context.reason;
    row->actor = context.actor;
    for (const UnixMs period : {row->service_period, row->posting_period}) {
      if (const auto freeze = ledger.freeze_of({row->tenant, period}, context.now))
        return Unexpected{frozen_failure(row->tenant, period, *freeze)};
    }
  }
  AIQ_CHECK(
      ledger.decide_conflict(conflict_id, "replaced", context.reason, context.actor, context.now));
  Decision out{.conflict = *ledger.conflict(conflict_id), .reversed = {}, .posted = {}};
  Touched touched;
  for (const LedgerRow& old : posted) {
    const LedgerRow reversal = reversal_row(ledger, old, context);
    if (const auto id = ledger.append(reversal)) out.reversed.push_back(*id);
    touched.add(reversal);
    touched.add(old);
  }
  if (row) {
    out.posted = ledger.append(*row);
    touched.add(*row);
  }
  touched.recompute(ledger, context.now);
  return out;
}

Expected<LedgerRow, Failure> post_credit(Store& store, const Credit& given,
                                         const PostingContext& context) {
  CostLedger& ledger = store.ledger();
  Credit credit = given;
  const auto summaries = ledger.summaries({credit.tenant, credit.period});
  if (credit.currency.empty() && summaries.size() == 1) credit.currency = summaries[0].currency;
  if (credit.currency.empty())
    return Unexpected{Failure{Exit::usage, "missing_option",
                              "the hour holds no currency, or several: name one",
                              "for example --currency USD"}};
  LedgerRow row;
  row.tenant = credit.tenant;
  row.source_type = "credit_note";
  row.source_ref = credit.id;
  row.idempotency_key = credit_note_key(credit.id);
  row.service_period = credit.period;
  row.posting_period = ledger.first_open_period(credit.tenant, credit.currency, credit.period);
  row.occurred_at = credit.period;
  row.posted_at = context.now;
  row.amount = -credit.amount;
  row.currency = credit.currency;
  row.reason = context.reason;
  row.actor = context.actor;
  row.payload_hash = posting_hash(row);
  const auto known = ledger.rows_of("", credit.tenant, "credit_note", credit.id);
  // Asked again with the same words: it is posted, once.
  if (!known.empty() && known.front().payload_hash == row.payload_hash) return known.front();
  const Failure taken{Exit::conflict, "credit_note_exists",
                      "a credit note " + credit.id + " is there with other words",
                      "give another --id"};
  if (!known.empty()) return Unexpected{taken};
  Int128 total = 0;
  for (const SummaryRow& summary : summaries) {
    if (summary.currency == credit.currency) total = summary.service_total;
  }
  if (!credit.allow_negative && credit.amount > 0 && total - credit.amount < 0)
    return Unexpected{Failure{Exit::refused, "more_than_period",
                              "the hour holds " + format_money(total) + " " + credit.currency +
                                  ", less than the credit of " + format_money(credit.amount),
                              "--allow-negative posts it all the same"}};
  if (!ledger.add_credit_note({.source = "",
                               .credit_note_id = credit.id,
                               .tenant = credit.tenant,
                               .service_period = credit.period,
                               .amount = row.amount,
                               .currency = credit.currency,
                               .status = "approved",
                               .reason = context.reason,
                               .approved_by = credit.approved_by,
                               .created_at = context.now}))
    return Unexpected{taken};  // another tenant's
  const auto entry = ledger.append(row);
  AIQ_CHECK(entry.has_value());
  row.entry_id = *entry;
  Touched touched;
  touched.add(row);
  touched.recompute(ledger, context.now);
  return row;
}

Expected<std::vector<LedgerRow>, Failure> reverse_row(Store& store, const std::string& id,
                                                      const PostingContext& context) {
  CostLedger& ledger = store.ledger();
  auto row = find_ledger_row(store, id);
  if (!row) return Unexpected{row.error()};
  if (const auto reversal = ledger.reversal_of(row->entry_id))
    return Unexpected{
        Failure{Exit::conflict, "already_reversed",
                "ledger row " + id + " was reversed by row " + ledger_id(*reversal) + " at " +
                    format_rfc3339(reversal->posted_at),
                "a reversal can be reversed once, which puts the row in force again"}};
  // The reversal of a reversal ends the chain: a third would only go on and on.
  if (row->reverses) {
    const auto first = ledger.row(*row->reverses);
    if (first && first->reverses)
      return Unexpected{Failure{Exit::conflict, "already_reversed",
                                "ledger row " + id + " put back what had been reversed before",
                                "post the difference with `aiq cost credit`"}};
  }
  if (row->amount == std::numeric_limits<Pico>::min())
    return Unexpected{Failure{Exit::refused, "amount_overflow",
                              "the opposite of the amount of row " + id + " fits no row", ""}};
  std::vector<LedgerRow> rows = {std::move(*row)};
  if (rows.front().source_type == "usage") {
    for (const LedgerRow& reprice : ledger.reprices_of(rows.front().entry_id)) {
      if (auto live = in_force(ledger, reprice)) rows.push_back(std::move(*live));
    }
  }
  Touched touched;
  for (LedgerRow& each : rows) {
    each = reversal_row(ledger, each, context);
    const auto entry = ledger.append(each);
    AIQ_CHECK(entry.has_value());
    each.entry_id = *entry;
    touched.add(each);
  }
  touched.recompute(ledger, context.now);
  return rows;
}

}  // namespace aiq
