#include "core/money/explain.h"

#include <algorithm>
#include <set>

#include "core/base/duration.h"
#include "core/money/postings.h"

namespace aiq {
namespace {

constexpr int kRowsMax = 1'000;

class Walk {
 public:
  explicit Walk(Reader& reader) : ledger_(reader.ledger()) {}

  // All that was posted for a row's source, and what corrects it.
  void add_family(const LedgerRow& row) {
    if (row.source_type == "usage" || row.source_type == "credit_note") {
      for (const LedgerRow& each :
           ledger_.rows_of(row.source, row.tenant, row.source_type, row.source_ref))
        add_with_corrections(each);
    }
    add_with_corrections(row);
  }

  // A correction leads to what it corrects, up to the first row.
  LedgerRow root_of(LedgerRow row) {
    while (const auto parent = row.reverses ? row.reverses : row.reprices) {
      auto up = ledger_.row(*parent);
      if (!up) break;
      row = std::move(*up);
    }
    return row;
  }

  void add_event(const UsageRow& event) {
    out.events.push_back(event);
    const UsageEvent& e = event.event;
    for (UsageConflict& conflict : ledger_.conflicts_of(e.tenant, e.event_id, e.source))
      out.conflicts.push_back(std::move(conflict));
  }

  void add_event_of(const LedgerRow& row) {
    if (!row.usage_id) return;
    if (const auto event = ledger_.usage(*row.usage_id)) add_event({*event, "posted"});
  }

  void add(const LedgerRow& row) {
    if (!seen_.insert(row.entry_id).second) return;
    ExplainedRow each;
    each.row = row;
    if (row.usage_id) each.event = ledger_.usage(*row.usage_id);
    if (const auto back = ledger_.reversal_of(row.entry_id)) each.reversed_by = ledger_id(*back);
    each.in_force = !is_reversed(ledger_, row.entry_id);
    for (const LedgerRow& reprice : ledger_.reprices_of(row.entry_id))
      each.repriced_by.push_back(ledger_id(reprice));
    each.invoice = ledger_.invoice_of_hour({row.tenant, row.posting_period}, row.currency);
    hours_.insert({row.tenant, row.service_period});
    hours_.insert({row.tenant, row.posting_period});
    out.rows.push_back(std::move(each));
  }

  Explained finish() {
    std::sort(out.rows.begin(), out.rows.end(), [](const ExplainedRow& a, const ExplainedRow& b) {
      return a.row.entry_id < b.row.entry_id;
    });
    for (const TenantPeriod& hour : hours_) {
      for (SummaryRow& row : ledger_.summaries(hour))
        out.summaries.push_back(std::move(row));
    }
    return std::move(out);
  }

  Explained out;

 private:
  void add_with_corrections(const LedgerRow& row) {
    add(row);
    for (const LedgerRow& reprice : ledger_.reprices_of(row.entry_id))
      add_with_corrections(reprice);
    if (const auto back = ledger_.reversal_of(row.entry_id)) add_with_corrections(*back);
  }

  CostLedger& ledger_;
  std::set<std::int64_t> seen_;
  std::set<TenantPeriod> hours_;
};

Expected<Explained, Failure> explain_event(Reader& reader, const ExplainQuery& query) {
  CostLedger& ledger = reader.ledger();
  Walk walk(reader);
  const UsageFilter filter{.tenant = query.tenant, .event_id = query.event_id};
  for (const UsageRow& event : ledger.list_usage(filter, Page{.after = 0, .limit = kRowsMax})) {
    walk.add_event(event);
    const UsageEvent& e = event.event;
    for (const LedgerRow& row : ledger.rows_of(e.source, e.tenant, "usage", e.event_id))
      walk.add_family(row);
  }
  if (walk.out.events.empty())
    return Unexpected{Failure{Exit::not_found, "no_such_event",
                              "there is no event " + query.event_id,
                              "`aiq usage list` shows them"}};
  return walk.finish();
}

Expected<Explained, Failure> explain_period(Reader& reader, const ExplainQuery& query, UnixMs now) {
  CostLedger& ledger = reader.ledger();
  const TenantPeriod unit{query.tenant, *query.period};
  Walk walk(reader);
  LedgerFilter filter{.tenant = unit.tenant, .from = unit.period, .to = unit.period + kHourMs};
  const auto rows = ledger.list_rows(filter, Page{.after = 0, .limit = kRowsMax});
  for (const LedgerRow& row : rows)
    walk.add(row);
  walk.out.truncated = static_cast<int>(rows.size()) == kRowsMax;
  walk.out.freeze = ledger.freeze_of(unit, now);
  const UsageFilter unposted{.tenant = unit.tenant,
                             .since = unit.period,
                             .until = unit.period + kHourMs,
                             .state = "unposted"};
  for (const UsageRow& event : ledger.list_usage(unposted, Page{.after = 0, .limit = kRowsMax}))
    walk.add_event(event);
  if (rows.empty() && walk.out.events.empty() && ledger.summaries(unit).empty())
    return Unexpected{
        Failure{Exit::not_found, "no_such_period",
                "tenant " + unit.tenant + " has nothing in the hour " + format_rfc3339(unit.period),
                "`aiq cost summary --tenant " + unit.tenant + "` shows its hours"}};
  return walk.finish();
}

}  // namespace

Expected<Explained, Failure> explain_cost(Reader& reader, const ExplainQuery& query, UnixMs now) {
  if (!query.event_id.empty()) return explain_event(reader, query);
  if (query.period) return explain_period(reader, query, now);
  auto row = find_ledger_row(reader, query.ledger_id);
  if (!row) return Unexpected{row.error()};
  Walk walk(reader);
  const LedgerRow root = walk.root_of(*row);
  walk.add_event_of(root);
  walk.add_family(root);
  walk.add(*row);
  return walk.finish();
}

}  // namespace aiq
