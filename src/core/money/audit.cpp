#include "core/money/audit.h"

#include <array>

#include "core/base/sha256.h"

namespace aiq {
namespace {

// Runs only when it is asked for.
constexpr std::string_view kOnlyByChoice = "run_retries";

// The other codes are errors.
constexpr std::array<std::pair<std::string_view, Severity>, 11> kMilder = {{
    {"duplicate_delivery", Severity::info},
    {"extreme_period_delta", Severity::warn},
    {"frozen_period", Severity::info},
    {"negative_total_with_credit_note", Severity::info},
    {"posting_event_ratio", Severity::warn},
    {"run_retries", Severity::info},
    {"stale_summary", Severity::warn},
    {"unknown_outcome", Severity::warn},
    {"unpriced_usage", Severity::warn},
    {"usage_invalid", Severity::warn},
    {"usage_missing", Severity::warn},
}};

// A finding that says something else is another one, which nobody has acknowledged.
std::string id_of(const std::string& code, const AuditRow& row) {
  std::string text = code;
  for (const std::string& part : {row.tenant, std::to_string(row.period), row.currency, row.refs,
                                  row.amount ? format_int128(*row.amount) : std::string()})
    text += "\n" + part;
  return sha256_hex(text).substr(0, 12);
}

}  // namespace

Severity severity_of(std::string_view code) {
  for (const auto& [name, severity] : kMilder)
    if (name == code) return severity;
  return Severity::error;
}

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warn:
      return "warn";
    case Severity::info:
      break;
  }
  return "info";
}

AuditScope audit_scope(const Config& config, UnixMs now) {
  constexpr DurationMs kGraceMs = 60'000;
  AuditScope out{.now = now, .grace_ms = config.daemon.aggregate_every_ms.value_or(kGraceMs)};
  for (const auto& [name, vendor] : config.vendors)
    out.price_vendors[name] = vendor.price_vendor;
  return out;
}

std::vector<std::string> default_checks(CostAudit& audit) {
  std::vector<std::string> out = audit.codes();
  std::erase(out, kOnlyByChoice);
  return out;
}

std::vector<Finding> run_check(CostAudit& audit, const std::string& code, const AuditScope& scope) {
  std::vector<Finding> out;
  audit.run(code, scope, [&](const AuditRow& row) {
    out.push_back({.finding_id = id_of(code, row),
                   .code = code,
                   .severity = row.resolved ? Severity::info : severity_of(code),
                   .row = row});
  });
  for (Finding& finding : out) {
    if (const auto ack = audit.ack(finding.finding_id)) {
      finding.acknowledged_by = ack->actor;
      finding.severity = Severity::info;
    }
  }
  return out;
}

bool is_open_error(const Finding& finding) {
  return finding.severity == Severity::error && finding.acknowledged_by.empty();
}

std::int64_t unacknowledged_errors(CostAudit& audit, const AuditScope& scope) {
  std::int64_t out = 0;
  for (const std::string& code : default_checks(audit)) {
    if (severity_of(code) != Severity::error) continue;
    for (const Finding& finding : run_check(audit, code, scope))
      out += is_open_error(finding) ? 1 : 0;
  }
  return out;
}

}  // namespace aiq
