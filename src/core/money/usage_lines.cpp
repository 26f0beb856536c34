#include "core/money/usage_lines.h"

#include <algorithm>

#include "core/base/names.h"

namespace aiq {
namespace {

constexpr std::size_t kReferenceBytes = 200;

void read_price(JsonLine& in, UsageEvent& event) {
  const std::string price = in.decimal("price_per_million");
  event.currency = in.text("currency");
  if (!event.currency.empty() && !is_currency(event.currency))
    in.invalid("currency", "three capital letters such as USD");
  if (price.empty()) return;
  if (event.currency.empty()) in.missing("currency");
  const auto unit = parse_price_per_million(price);
  if (!unit) {
    in.problem(decimal_code(unit.error(), "price_per_million"),
               "price_per_million " + price + ": " +
                   (unit.error() == DecimalError::not_representable
                        ? "a price per million units has at most 6 decimals"
                        : "not a price that can be booked"));
    return;
  }
  if (*unit < 0) {
    in.invalid("price_per_million", "a price of 0 or more");
    return;
  }
  event.unit_pico = *unit;
  if (event.units > 0 && !rate(event.units, *unit))
    in.problem("amount_overflow",
               std::to_string(event.units) + " units at " + price +
                   " per million are more than one row can hold (9223372.036854775807)");
}

void check_names(JsonLine& in, const UsageEvent& event) {
  if (!event.event_id.empty() && !is_plain_text(event.event_id, kEventIdBytes))
    in.invalid("event_id", "at most 200 bytes without control characters");
  if (!event.tenant.empty() && !is_tenant_name(event.tenant)) in.invalid("tenant", "a tenant name");
  if (!event.vendor.empty() && !is_label_name(event.vendor)) in.invalid("vendor", "a vendor name");
  if (!event.model.empty() && !is_label_name(event.model)) in.invalid("model", "a model name");
  if (!event.meter.empty() && !is_meter_name(event.meter))
    in.invalid("meter", "a meter name (a-z, 0-9 and _, at most 32)");
  if (event.source.empty() && event.event_id.starts_with(kOwnEventPrefix))
    in.problem("reserved_event_id", "event ids that begin with job: are aiq's own");
  if (!is_plain_text(event.job_ref, kReferenceBytes))
    in.invalid("job_id", "at most 200 bytes without control characters");
  if (!is_plain_text(event.correlation_id, kReferenceBytes))
    in.invalid("correlation_id", "at most 200 bytes without control characters");
}

}  // namespace

bool is_meter_name(std::string_view name) {
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Expected<UsageEvent, LineError> parse_usage_line(std::string_view line, const std::string& source,
                                                 UnixMs now) {
  auto read = JsonLine::read(line);
  if (!read) return Unexpected{read.error()};
  JsonLine& in = *read;
  UsageEvent event;
  event.source = source;
  event.event_id = in.required_text("event_id");
  event.tenant = in.required_text("tenant");
  event.vendor = in.text("vendor");
  event.model = in.required_text("model");
  event.meter = in.required_text("meter");
  const auto units = in.whole("units");
  if (!units) in.missing("units");
  event.units = units.value_or(0);
  if (units && event.units < 1) in.invalid("units", "a whole number of 1 or more");
  event.context_tokens = in.whole("context_tokens");
  if (event.context_tokens && *event.context_tokens < 0)
    in.invalid("context_tokens", "a whole number of 0 or more");
  event.occurred_at = in.required_instant("occurred_at");
  event.received_at = in.instant("received_at").value_or(now);
  event.job_ref = in.decimal("job_id");
  event.correlation_id = in.text("correlation_id");
  check_names(in, event);
  read_price(in, event);
  in.refuse_unread();
  if (in.error()) return Unexpected{*in.error()};
  return event;
}

}  // namespace aiq
