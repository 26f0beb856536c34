#include "core/money/import_lines.h"

#include <array>
#include <limits>

#include "core/base/names.h"
#include "core/money/usage_lines.h"

namespace aiq {
namespace {

constexpr std::size_t kIdBytes = 200, kNoteBytes = 500;
constexpr UnixMs kLongestInvoiceMs = 400LL * 24 * kHourMs;

constexpr std::array<std::string_view, 6> kKinds = {"usage", "ledger",  "summary",
                                                    "runs",  "credits", "invoices"};

UnixMs required_hour(JsonLine& in, std::string_view name) {
  const UnixMs at = in.required_instant(name);
  if (!is_hour(at)) in.invalid(name, "the start of an hour in UTC");
  return at;
}

std::string required_id(JsonLine& in, std::string_view name) {
  std::string out = in.decimal(name);
  if (out.empty())
    in.missing(name);
  else if (!is_plain_text(out, kIdBytes))
    in.invalid(name, "at most 200 bytes without control characters");
  return out;
}

std::string note(JsonLine& in, std::string_view name) {
  std::string out = in.decimal(name);
  if (!is_plain_text(out, kNoteBytes))
    in.invalid(name, "at most 500 bytes without control characters");
  return out;
}

std::string required_tenant(JsonLine& in) {
  std::string out = in.required_text("tenant");
  if (!out.empty() && !is_tenant_name(out)) in.invalid("tenant", "a tenant name");
  return out;
}

std::string required_currency(JsonLine& in) {
  std::string out = in.required_text("currency");
  if (!out.empty() && !is_currency(out))
    in.invalid("currency", "three capital letters such as USD");
  return out;
}

Pico required_amount(JsonLine& in, std::string_view name) {
  const auto out = in.whole(name);
  if (!out) in.missing(name);
  return out.value_or(0);
}

// A sum has to fit into its two columns.
bool fits_columns(Int128 sum) {
  constexpr Int128 kMost =
      static_cast<Int128>(std::numeric_limits<std::int64_t>::max()) * kPicoPerWhole;
  return sum < kMost && sum > -kMost;
}

std::optional<Int128> sum(JsonLine& in, std::string_view name) {
  const auto out = in.whole_128(name);
  if (out && !fits_columns(*out)) {
    in.invalid(name, "a sum that can be kept");
    return std::nullopt;
  }
  return out;
}

int retry_count(JsonLine& in) {
  const std::int64_t out = in.whole("retry_count").value_or(0);
  if (out < 0 || out > 1'000'000) in.invalid("retry_count", "a whole number of 0 or more");
  return static_cast<int>(out);
}

LedgerRow read_ledger(JsonLine& in) {
  LedgerRow row;
  row.given_id = required_id(in, "ledger_id");
  row.idempotency_key = note(in, "idempotency_key");
  if (row.idempotency_key.empty()) row.idempotency_key = "import|" + row.given_id;
  row.tenant = required_tenant(in);
  row.source_type = required_id(in, "source_type");
  row.source_ref = required_id(in, "source_ref");
  row.service_period = required_hour(in, "service_period");
  row.posting_period =
      in.has("posting_period") ? required_hour(in, "posting_period") : row.service_period;
  row.occurred_at = in.instant("occurred_at").value_or(row.service_period);
  row.posted_at = in.required_instant("posted_at");
  row.amount = required_amount(in, "amount_pico");
  row.currency = required_currency(in);
  row.job_id = note(in, "job_id");
  row.retry_count = retry_count(in);
  row.correlation_id = note(in, "correlation_id");
  row.payload_hash = note(in, "payload_hash");
  row.reason = note(in, "reason");
  return row;
}

SummaryRow read_summary(JsonLine& in) {
  SummaryRow row;
  row.tenant = required_tenant(in);
  row.period = required_hour(in, "period");
  row.currency = required_currency(in);
  const auto total = sum(in, "total_pico");
  if (!total) in.missing("total_pico");
  row.service_total = total.value_or(0);
  row.billed_total = sum(in, "billed_total_pico");
  return row;
}

RunRow read_run(JsonLine& in) {
  RunRow run;
  run.call_id = run.initiator = "import";
  run.unit.tenant = required_tenant(in);
  run.unit.period = required_hour(in, "period");
  run.job_ref = note(in, "job_id");
  run.started_at = in.required_instant("started_at");
  run.finished_at = in.instant("finished_at");
  run.retry_count = retry_count(in);
  const std::string status = in.text("status");
  if (run.finished_at && *run.finished_at < run.started_at)
    in.invalid("finished_at", "a time after started_at");
  // A run without an end has none to come.
  run.outcome = !run.finished_at ? "abandoned" : status == "success" ? "done" : "failed";
  if (!run.finished_at) run.finished_at = run.started_at;
  run.correlation_id = note(in, "correlation_id");
  return run;
}

CreditNote read_credit(JsonLine& in, UnixMs now) {
  CreditNote out;
  out.credit_note_id = required_id(in, "credit_note_id");
  out.tenant = required_tenant(in);
  out.service_period = required_hour(in, "service_period");
  out.amount = required_amount(in, "amount_pico");
  out.currency = required_currency(in);
  out.status = required_id(in, "status");
  out.reason = note(in, "reason");
  out.approved_by = note(in, "approved_by");
  out.created_at = in.instant("created_at").value_or(now);
  return out;
}

ImportedInvoice read_invoice(JsonLine& in) {
  ImportedInvoice out;
  out.invoice_id = required_id(in, "invoice_id");
  out.tenant = required_tenant(in);
  out.currency = required_currency(in);
  out.start = required_hour(in, "period");
  out.end = in.has("period_end") ? required_hour(in, "period_end") : out.start + kHourMs;
  if (out.end <= out.start || out.end - out.start > kLongestInvoiceMs)
    in.invalid("period_end", "after the period's start, by at most 400 days");
  out.state = in.required_text("state");
  if (out.state != "draft" && out.state != "held" && out.state != "issued" && out.state != "void")
    in.invalid("state", "one of draft, held, issued, void");
  const auto cents = in.whole("total_cents");
  if (!cents) in.missing("total_cents");
  out.total = minor_to_pico(cents.value_or(0), minor_digits(out.currency));
  if (!fits_columns(out.total)) in.invalid("total_cents", "a sum that can be kept");
  out.created_at = in.required_instant("created_at");
  return out;
}

ImportRow read_row(ImportKind kind, JsonLine& in, UnixMs now) {
  switch (kind) {
    case ImportKind::ledger:
      return read_ledger(in);
    case ImportKind::summary:
      return read_summary(in);
    case ImportKind::runs:
      return read_run(in);
    case ImportKind::credits:
      return read_credit(in, now);
    case ImportKind::invoices:
      return read_invoice(in);
    case ImportKind::usage:
      break;  // has a reader of its own
  }
  AIQ_CHECK(false);
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

std::optional<ImportKind> parse_import_kind(std::string_view name) {
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i] == name) return static_cast<ImportKind>(i);
  return std::nullopt;
}

Expected<ImportRow, LineError> parse_import_line(ImportKind kind, std::string_view line,
                                                 const std::string& source, UnixMs now) {
  if (kind == ImportKind::usage) {
    auto event = parse_usage_line(line, source, now);
    if (!event) return Unexpected{event.error()};
    return ImportRow(std::move(*event));
  }
  auto in = JsonLine::read(line);
  if (!in) return Unexpected{in.error()};
  ImportRow row = read_row(kind, *in, now);
  in->refuse_unread();
  if (in->error()) return Unexpected{*in->error()};
  std::visit([&](auto& value) { value.source = source; }, row);
  return row;
}

std::set<TenantPeriod> hours_of(const ImportRow& row) {
  return std::visit(Overloaded{
                        [](const UsageEvent& e) {
                          return std::set<TenantPeriod>{{e.tenant, hour_of(e.occurred_at)}};
                        },
                        [](const LedgerRow& l) {
                          return std::set<TenantPeriod>{{l.tenant, l.service_period},
                                                        {l.tenant, l.posting_period}};
                        },
                        [](const SummaryRow& s) {
                          return std::set<TenantPeriod>{{s.tenant, s.period}};
                        },
                        [](const RunRow& r) { return std::set<TenantPeriod>{r.unit}; },
                        [](const CreditNote& c) {
                          return std::set<TenantPeriod>{{c.tenant, c.service_period}};
                        },
                        [](const ImportedInvoice& i) {
                          std::set<TenantPeriod> out;
                          for (UnixMs hour = i.start; hour < i.end; hour += kHourMs)
                            out.insert({i.tenant, hour});
                          return out;
                        },
                    },
                    row);
}

std::string describe(const ImportRow& row) {
  return std::visit(
      Overloaded{
          [](const UsageEvent& e) { return "event " + e.event_id + " of tenant " + e.tenant; },
          [](const LedgerRow& l) { return "ledger row " + l.given_id; },
          [](const SummaryRow& s) {
            return "summary of " + s.tenant + " at " + format_rfc3339(s.period) + " in " +
                   s.currency;
          },
          [](const RunRow& r) {
            return "run of " + r.unit.tenant + " at " + format_rfc3339(r.unit.period) +
                   " started " + format_rfc3339(r.started_at);
          },
          [](const CreditNote& c) { return "credit note " + c.credit_note_id; },
          [](const ImportedInvoice& i) { return "invoice " + i.invoice_id; },
      },
      row);
}

}  // namespace aiq
