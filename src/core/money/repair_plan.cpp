#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/sha256.h"
#include "core/money/audit.h"
#include "core/money/pricing.h"
#include "core/money/repair.h"

namespace aiq {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kWrongRow = {"duplicate_posting", "orphan_correction",
                                                       "posting_without_source"};
constexpr std::array<std::string_view, 3> kWrongSummary = {"stale_summary", "summary_row_missing",
                                                           "summary_vs_ledger_mismatch"};
// A person decides on the one, and the other may be as it should.
constexpr std::array<std::string_view, 2> kHoldsNothing = {"event_id_conflict",
                                                           "extreme_period_delta"};

template <class Codes>
bool is_one_of(const Codes& codes, const std::string& code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

Int128 rounded(Int128 exact, const std::string& currency) {
  const int digits = minor_digits(currency);
  return minor_to_pico(round_to_minor(exact, digits), digits);
}

// A row to append, and since when its source is known; a reversal's always was.
struct Draft {
  LedgerRow row;
  std::optional<UnixMs> known_at;
};

class Planner {
 public:
  Planner(Reader& reader, const Config& config, UnixMs now)
      : reader_(reader), ledger_(reader.ledger()), audit_(reader.audit()), config_(config) {
    plan_.created_at = now;
  }

  RepairPlan run() {
    plan_.marks = audit_.source_marks(plan_.created_at);
    read_findings();
    place();
    add_imported_hours();
    for (const RepairEntry& entry : plan_.entries) {
      hours_.insert({entry.row.tenant, entry.row.service_period});
      hours_.insert({entry.row.tenant, entry.row.posting_period});
    }
    for (const TenantPeriod& hour : hours_)
      add_period(hour);
    add_invoices();
    return std::move(plan_);
  }

 private:
  void read_findings() {
    const AuditScope scope = audit_scope(config_, plan_.created_at);
    for (const std::string& code : default_checks(audit_)) {
      for (const Finding& finding : run_check(audit_, code, scope)) {
        if (finding.severity == Severity::info) continue;
        const TenantPeriod hour{finding.row.tenant, finding.row.period};
        if (!is_one_of(kHoldsNothing, code)) suspect_.insert(hour);
        if (is_one_of(kWrongSummary, code)) hours_.insert(hour);
        take(code, finding);
      }
    }
  }

  void take(const std::string& code, const Finding& finding) {
    const Json detail = Json::parse(finding.row.detail);
    const auto text = [&](const char* name) { return detail.at(name).get<std::string>(); };
    if (is_one_of(kWrongRow, code)) {
      take_wrong_row(code, finding.row.tenant, text("source"), text("ledger_id"));
    } else if (code == "missing_posting") {
      const auto event = ledger_.find_usage(finding.row.tenant, text("event_id"), text("source"));
      if (event) take_event(*event);
    } else if (code == "missing_credit_note_posting") {
      const auto note = audit_.credit_note(text("source"), text("credit_note_id"));
      if (note) drafts_.push_back({credit_row(*note), note->created_at});
    }
  }

  void take_wrong_row(const std::string& code, const std::string& tenant, const std::string& source,
                      const std::string& id) {
    for (const LedgerRow& row : ledger_.rows_named(id)) {
      if (row.source != source || row.tenant != tenant) continue;
      reverse(row, code);
      for (const LedgerRow& reprice : ledger_.reprices_of(row.entry_id))
        reverse(reprice, code);
    }
  }

  void reverse(const LedgerRow& row, const std::string& code) {
    const auto live = in_force(ledger_, row);
    if (!live || live->amount == std::numeric_limits<Pico>::min()) return;
    const PostingContext context{.config = config_, .reason = code};
    LedgerRow out = reversal_row(ledger_, *live, context);
    out.posting_period = live->posting_period;
    drafts_.push_back({std::move(out), std::nullopt});
  }

  void take_event(const UsageEvent& event) {
    auto row = usage_row(reader_, config_, event);
    if (row) drafts_.push_back({std::move(*row), event.received_at});
  }

  // ---- into which hour

  // The total to which the repair would bring an issued invoice if all that it may have known were
  // booked within its hours.
  struct Issued {
    InvoiceRow invoice;
    Int128 sum = 0;
  };

  std::optional<InvoiceRow> issued_at(const std::string& tenant, const std::string& currency,
                                      UnixMs hour) {
    for (InvoiceRow& row : ledger_.invoices().of_span({tenant, currency, hour, hour + kHourMs})) {
      if (row.state == InvoiceState::issued) return std::move(row);
    }
    return std::nullopt;
  }

  static bool known_to(const InvoiceRow& invoice, const Draft& draft) {
    return !draft.known_at || *draft.known_at < invoice.created_at;
  }

  void place() {
    std::map<std::int64_t, Issued> issued;
    std::vector<std::int64_t> invoice_of;  // by draft; 0: none
    for (const Draft& draft : drafts_) {
      const LedgerRow& row = draft.row;
      const auto found = issued_at(row.tenant, row.currency, row.posting_period);
      invoice_of.push_back(found ? found->key : 0);
      if (!found) continue;
      const auto [at, fresh] = issued.try_emplace(found->key, Issued{*found, 0});
      if (fresh) at->second.sum = ledger_.invoices().billed_total(found->span);
      if (known_to(*found, draft)) at->second.sum += row.amount;
    }
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      LedgerRow& row = drafts_[i].row;
      if (invoice_of[i] != 0) {
        const Issued& invoice = issued.at(invoice_of[i]);
        const bool inside = known_to(invoice.invoice, drafts_[i]) &&
                            rounded(invoice.sum, row.currency) == invoice.invoice.total;
        if (!inside)
          row.posting_period =
              ledger_.first_open_period(row.tenant, row.currency, row.posting_period);
      }
      plan_.entries.push_back({std::move(row)});
    }
    std::sort(plan_.entries.begin(), plan_.entries.end(),
              [](const RepairEntry& a, const RepairEntry& b) {
                const auto order = [](const RepairEntry& e) {
                  return std::tuple(e.row.source_type != "reversal", e.row.idempotency_key,
                                    e.row.source, e.row.tenant);
                };
                return order(a) < order(b);
              });
    // A row that is wrong in two ways is reversed once.
    const auto same = [](const RepairEntry& a, const RepairEntry& b) {
      return a.row.idempotency_key == b.row.idempotency_key && a.row.source == b.row.source;
    };
    plan_.entries.erase(std::unique(plan_.entries.begin(), plan_.entries.end(), same),
                        plan_.entries.end());
  }

  // ---- what is computed anew

  void add_imported_hours() {
    Page page{.after = 0, .limit = 1000};
    for (bool more = true; more;) {
      const auto freezes = ledger_.list_freezes(false, "", plan_.created_at, page);
      more = static_cast<int>(freezes.size()) == page.limit;
      if (more) page.after = freezes.back().freeze_id;
      for (const Freeze& freeze : freezes) {
        if (freeze.origin == "operator") continue;
        plan_.freezes.push_back(freeze.origin);
        const PeriodScope scope{.tenant = freeze.tenant, .from = freeze.from, .to = freeze.to};
        std::optional<TenantPeriod> hour;
        while ((hour = ledger_.next_summary_unit(hour, scope)))
          hours_.insert(*hour);
      }
    }
    std::sort(plan_.freezes.begin(), plan_.freezes.end());
    plan_.freezes.erase(std::unique(plan_.freezes.begin(), plan_.freezes.end()),
                        plan_.freezes.end());
  }

  void add_period(const TenantPeriod& hour) {
    std::map<std::string, RepairPeriod> periods;
    const auto at = [&](const std::string& currency) -> RepairPeriod& {
      RepairPeriod& period = periods[currency];
      period.currency = currency;
      return period;
    };
    for (const HourState& state : audit_.hour_state(hour)) {
      RepairPeriod& period = at(state.currency);
      period.ledger_before = period.ledger_after = state.service_total;
      period.billed_before = period.billed_after = state.billed_total;
      if (state.posting_rows > 0) billed_.insert({hour, state.currency});
    }
    for (const SummaryRow& summary : ledger_.summaries(hour))
      at(summary.currency).summary_before = summary.service_total;
    for (const auto& [currency, amount] : amounts_of(by_service(), hour))
      at(currency).ledger_after += amount;
    for (const auto& [currency, amount] : amounts_of(by_posting(), hour)) {
      at(currency).billed_after += amount;
      billed_.insert({hour, currency});
    }
    const std::string hash = hour_hash(reader_, hour);
    for (auto& [currency, period] : periods) {
      period.unit = hour;
      period.content_hash = hash;
      plan_.periods.push_back(std::move(period));
    }
  }

  using Amounts = std::map<TenantPeriod, CurrencyTotals>;
  static CurrencyTotals amounts_of(const Amounts& amounts, const TenantPeriod& hour) {
    const auto found = amounts.find(hour);
    return found == amounts.end() ? CurrencyTotals{} : found->second;
  }
  const Amounts& by_service() {
    sum_entries();
    return by_service_;
  }
  const Amounts& by_posting() {
    sum_entries();
    return by_posting_;
  }
  void sum_entries() {
    if (summed_) return;
    summed_ = true;
    for (const RepairEntry& entry : plan_.entries) {
      const LedgerRow& row = entry.row;
      by_service_[{row.tenant, row.service_period}][row.currency] += row.amount;
      by_posting_[{row.tenant, row.posting_period}][row.currency] += row.amount;
    }
  }

  // ---- invoices

  void add_invoices() {
    std::set<TenantPeriod> hold = suspect_;
    for (const RepairEntry& entry : plan_.entries)
      hold.insert({entry.row.tenant, entry.row.posting_period});
    std::set<TenantPeriod> all = hours_;
    all.insert(hold.begin(), hold.end());
    std::map<std::int64_t, bool> keys;  // -> hold
    for (const TenantPeriod& hour : all) {
      for (const std::int64_t key : audit_.invoices_of_hour(hour))
        keys[key] = keys[key] || hold.contains(hour);
    }
    std::set<std::pair<TenantPeriod, std::string>> invoiced;
    for (const auto& [key, suspect] : keys)
      add_invoice(key, suspect, invoiced);
    std::sort(plan_.invoices.begin(), plan_.invoices.end(),
              [](const RepairInvoice& a, const RepairInvoice& b) {
                return std::tie(a.span.tenant, a.span.start, a.span.currency, a.key) <
                       std::tie(b.span.tenant, b.span.start, b.span.currency, b.key);
              });
    for (const auto& [hour, currency] : billed_) {
      if (invoiced.contains({hour, currency})) continue;
      const InvoiceSpan span{hour.tenant, currency, hour.period, hour.period + kHourMs};
      plan_.to_draft.push_back({span, expected_of(span)});
    }
  }

  void add_invoice(std::int64_t key, bool suspect,
                   std::set<std::pair<TenantPeriod, std::string>>& invoiced) {
    const auto row = ledger_.invoices().invoice(key);
    AIQ_CHECK(row.has_value());
    for (UnixMs hour = row->span.start; hour < row->span.end; hour += kHourMs)
      invoiced.insert({{row->span.tenant, hour}, row->span.currency});
    plan_.invoices.push_back({.key = key,
                              .source = row->source,
                              .invoice_id = invoice_id(*row),
                              .span = row->span,
                              .state = row->state,
                              .total = row->total,
                              .expected = expected_of(row->span),
                              .hold = suspect && row->state == InvoiceState::draft});
  }

  Int128 expected_of(const InvoiceSpan& span) {
    Int128 sum = ledger_.invoices().billed_total(span);
    for (auto at = by_posting().lower_bound({span.tenant, span.start});
         at != by_posting().end() && at->first < TenantPeriod{span.tenant, span.end}; ++at) {
      const auto amount = at->second.find(span.currency);
      if (amount != at->second.end()) sum += amount->second;
    }
    return rounded(sum, span.currency);
  }

  Reader& reader_;
  CostLedger& ledger_;
  CostAudit& audit_;
  const Config& config_;
  RepairPlan plan_;
  std::vector<Draft> drafts_;
  std::set<TenantPeriod> hours_;    // computed anew
  std::set<TenantPeriod> suspect_;  // whose drafts are held
  std::set<std::pair<TenantPeriod, std::string>> billed_;
  bool summed_ = false;
  Amounts by_service_, by_posting_;
};

}  // namespace

std::string hour_hash(Reader& reader, const TenantPeriod& hour) {
  Sha256 hash;
  hash.update_field("aiq.hour.1");
  const auto number = [&](Int128 value) { hash.update_field(format_int128(value)); };
  for (const HourState& state : reader.audit().hour_state(hour)) {
    hash.update_field("ledger");
    hash.update_field(state.currency);
    for (const Int128 value :
         {static_cast<Int128>(state.service_rows), static_cast<Int128>(state.posting_rows),
          static_cast<Int128>(state.newest), state.service_total, state.billed_total})
      number(value);
  }
  for (const SummaryRow& row : reader.ledger().summaries(hour)) {
    hash.update_field("summary");
    hash.update_field(row.source);
    hash.update_field(row.currency);
    number(row.service_total);
    hash.update_field(row.billed_total ? format_int128(*row.billed_total) : "");
    number(row.watermark);
  }
  for (const std::int64_t key : reader.audit().invoices_of_hour(hour)) {
    const auto invoice = reader.ledger().invoices().invoice(key);
    if (!invoice) continue;
    hash.update_field("invoice");
    number(key);
    hash.update_field(to_string(invoice->state));
    number(invoice->total);
  }
  return hash.hex();
}

std::optional<LedgerRow> usage_row(Reader& reader, const Config& config, const UsageEvent& event) {
  const auto replaced = reader.ledger().replacement(event.tenant, event.event_id, event.source);
  const UsageEvent& payload = replaced ? replaced->event : event;
  const auto rated = rate_usage(config, reader, payload);
  if (!rated) return std::nullopt;
  LedgerRow row;
  row.source = event.source;
  row.idempotency_key =
      replaced ? replaced_usage_key(event.tenant, event.event_id, replaced->conflict_id)
               : usage_key(event.tenant, event.event_id);
  row.tenant = event.tenant;
  row.source_type = "usage";
  row.source_ref = event.event_id;
  row.service_period = hour_of(payload.occurred_at);
  row.posting_period = row.service_period;
  row.occurred_at = payload.occurred_at;
  row.amount = rated->amount;
  row.currency = rated->currency;
  row.usage_id = event.usage_id;
  row.price_id = rated->price_id;
  row.payload_hash = payload_hash(payload);
  row.job_id = event.job_id ? std::to_string(*event.job_id) : payload.job_ref;
  row.correlation_id = payload.correlation_id;
  row.reason = "missing_posting";
  return row;
}

LedgerRow credit_row(const CreditNote& note) {
  LedgerRow row;
  row.source = note.source;
  row.idempotency_key = credit_note_key(note.credit_note_id);
  row.tenant = note.tenant;
  row.source_type = "credit_note";
  row.source_ref = note.credit_note_id;
  row.service_period = note.service_period;
  row.posting_period = note.service_period;
  row.occurred_at = note.service_period;
  row.amount = note.amount;
  row.currency = note.currency;
  row.reason = "missing_credit_note_posting";
  row.payload_hash = posting_hash(row);
  return row;
}

RepairPlan plan_repair(Reader& reader, const Config& config, UnixMs now) {
  return Planner(reader, config, now).run();
}

}  // namespace aiq
