#pragma once
// Findings of the audit: what a check found, with its severity and a name that stays the same as
// long as it says the same.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"
#include "core/store/cost_audit.h"

namespace aiq {

enum class Severity { error, warn, info };
[[nodiscard]] std::string_view to_string(Severity severity);

// Of an unresolved finding of a code.
[[nodiscard]] Severity severity_of(std::string_view code);

// All tenants and hours, with the age from which an event that is not posted is missing:
// daemon.aggregate_every, or a minute where only cron aggregates.
[[nodiscard]] AuditScope audit_scope(const Config& config, UnixMs now);

struct Finding {
  std::string finding_id;  // 12 hex digits, of what it says
  std::string code;
  Severity severity = Severity::error;
  AuditRow row;
  std::string acknowledged_by;  // "" = nobody
};

// Codes that an audit without a choice of checks runs.
[[nodiscard]] std::vector<std::string> default_checks(CostAudit& audit);

// The findings of one check, in order of tenant and period.
[[nodiscard]] std::vector<Finding> run_check(CostAudit& audit, const std::string& code,
                                             const AuditScope& scope);

// Severity error, not acknowledged.
[[nodiscard]] bool is_open_error(const Finding& finding);
// How many there are of a tenant's hours [from, to), of all checks.
[[nodiscard]] std::int64_t unacknowledged_errors(CostAudit& audit, const AuditScope& scope);

}  // namespace aiq
