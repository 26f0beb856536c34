#include "core/money/cost_view.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace aiq {
namespace {

constexpr int kPageRows = 1'000;

class View {
 public:
  View(Reader& reader, const CostQuery& query) : ledger_(reader.ledger()), query_(query) {}

  std::vector<CostLine> lines() {
    if (from_summaries())
      add_summaries();
    else
      add_ledger();
    mark_pending();
    std::vector<CostLine> out;
    for (auto& [key, line] : lines_)
      out.push_back(std::move(line));
    return out;
  }

 private:
  [[nodiscard]] bool from_summaries() const {
    const auto on_hour = [](const std::optional<UnixMs>& at) { return !at || is_hour(*at); };
    return query_.group == CostGroup::tenant && query_.zone.is_utc() && !query_.billed &&
           on_hour(query_.from) && on_hour(query_.to);
  }

  void add_summaries() {
    const PeriodScope scope{query_.tenant, query_.from, query_.to};
    std::optional<TenantPeriod> after;
    for (;;) {
      const auto rows = ledger_.list_summaries(scope, after, kPageRows);
      for (const SummaryRow& row : rows) {
        after = TenantPeriod{row.tenant, row.period};
        if (!query_.currency.empty() && row.currency != query_.currency) continue;
        // An hour into which something of another hour was posted, and nothing else.
        if (row.ledger_rows == 0 && row.service_total == 0 && row.source.empty()) continue;
        CostLine& line = at(row.tenant, row.period, row.currency);
        // An imported row knows the total alone.
        const Int128 parts = row.usage + row.credit + row.correction;
        line.usage += row.source.empty() ? row.usage : row.usage + (row.service_total - parts);
        line.credit += row.credit;
        line.correction += row.correction;
        line.ledger_rows += row.ledger_rows;
        line.events += row.events;
        line.stale = line.stale || ledger_.summary_behind(row);
      }
      if (static_cast<int>(rows.size()) < kPageRows) return;
    }
  }

  void add_ledger() {
    CostFilter filter{
        .tenant = query_.tenant, .currency = query_.currency, .billed = query_.billed};
    if (query_.from) filter.from = hour_of(*query_.from);
    filter.to = query_.to;
    if (query_.group == CostGroup::label) filter.label_key = query_.label_key;
    ledger_.each_cost(filter, [this](const CostRow& row) {
      const UnixMs when = instant_of(row);
      if ((query_.from && when < *query_.from) || (query_.to && when >= *query_.to)) return;
      CostLine& line = at(group_of(row), when, row.currency);
      const bool usage = row.source_type == "usage";
      (usage                              ? line.usage
       : row.source_type == "credit_note" ? line.credit
                                          : line.correction) += row.amount;
      ++line.ledger_rows;
      if (usage) ++line.events;
    });
  }

  [[nodiscard]] UnixMs instant_of(const CostRow& row) const {
    if (query_.billed && row.posting_period != row.service_period) return row.posting_period;
    return hour_of(row.occurred_at) == row.service_period ? row.occurred_at : row.service_period;
  }

  [[nodiscard]] const std::string& group_of(const CostRow& row) const {
    switch (query_.group) {
      case CostGroup::tenant:
        return row.tenant;
      case CostGroup::model:
        return row.model;
      case CostGroup::vendor:
        return row.vendor;
      case CostGroup::meter:
        return row.meter;
      case CostGroup::label:
        return row.label;
    }
    AIQ_CHECK(false);
  }

  // The span of a time; asked for row by row, and of the same few ones.
  Span span_of(UnixMs when) {
    const auto next = spans_.upper_bound(when);
    if (next != spans_.begin()) {
      const Span& span = std::prev(next)->second;
      if (when < span.end) return span;
    }
    const Calendar unit = query_.by == CostBy::hour  ? Calendar::hour
                          : query_.by == CostBy::day ? Calendar::day
                                                     : Calendar::month;
    const Span span = query_.zone.span(unit, when);
    spans_.emplace(span.start, span);
    return span;
  }

  CostLine& at(const std::string& group, UnixMs when, const std::string& currency) {
    const bool total = query_.by == CostBy::total;
    const Span span =
        total ? Span{query_.from.value_or(when), query_.to.value_or(when)} : span_of(when);
    CostLine& line = lines_[{group, total ? 0 : span.start, currency}];
    if (line.currency.empty()) {
      line.group = group;
      line.currency = currency;
      line.span = span;
    }
    if (total) {  // without bounds: the hours that there is something of
      line.span.start = query_.from.value_or(std::min(line.span.start, hour_of(when)));
      line.span.end = query_.to.value_or(std::max(line.span.end, hour_of(when) + kHourMs));
    }
    return line;
  }

  void mark_pending() {
    const auto pending = ledger_.pending_units({query_.tenant, {}, {}});
    if (pending.empty()) return;
    std::map<std::string, std::set<UnixMs>> hours;
    for (const TenantPeriod& unit : pending)
      hours[query_.group == CostGroup::tenant ? unit.tenant : std::string()].insert(unit.period);
    for (auto& [key, line] : lines_) {
      const auto of_group =
          hours.find(query_.group == CostGroup::tenant ? line.group : std::string());
      if (of_group == hours.end()) continue;
      const auto first = of_group->second.lower_bound(line.span.start - kHourMs + 1);
      line.stale = line.stale || (first != of_group->second.end() && *first < line.span.end);
    }
  }

  CostLedger& ledger_;
  const CostQuery& query_;
  std::map<std::tuple<std::string, UnixMs, std::string>, CostLine> lines_;
  std::map<UnixMs, Span> spans_;  // by start
};

}  // namespace

std::vector<CostLine> cost_lines(Reader& reader, const CostQuery& query) {
  return View(reader, query).lines();
}

}  // namespace aiq
