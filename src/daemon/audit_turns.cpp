#include "daemon/audit_turns.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "core/base/log.h"
#include "core/money/audit.h"
#include "core/store/store.h"

namespace aiq {
namespace {

// The clock is looked at so often: the configuration may change, and a machine may sleep.
constexpr std::chrono::seconds kLook{1};
// The first audit waits until what was left over at the start is posted.
constexpr DurationMs kFirstMs = 60'000;

// Findings that a person has neither settled nor accepted, by severity.
struct Counts {
  std::int64_t errors = 0, warnings = 0;
};

Counts count(CostAudit& audit, const std::string& code, const AuditScope& scope) {
  Counts out;
  for (const Finding& finding : run_check(audit, code, scope)) {
    if (finding.severity == Severity::error) ++out.errors;
    if (finding.severity == Severity::warn) ++out.warnings;
  }
  return out;
}

}  // namespace

AuditTurns::AuditTurns(RuntimeHolder& runtime, Clock& clock, std::string db_path)
    : runtime_(runtime), clock_(clock), db_path_(std::move(db_path)) {}

AuditTurns::~AuditTurns() {
  stop();
}

void AuditTurns::start() {
  thread_ = std::thread([this] { loop(); });
}

void AuditTurns::stop() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool AuditTurns::stopping() {
  const std::lock_guard guard(mutex_);
  return stopping_;
}

void AuditTurns::loop() {
  const MonoMs begun = clock_.mono_ms();
  std::optional<MonoMs> last;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, kLook, [this] { return stopping_; })) return;
    }
    const auto every = runtime_.get()->config.daemon.audit_every_ms;
    if (!every) continue;
    const MonoMs due = last ? *last + *every : begun + std::min(*every, kFirstMs);
    if (clock_.mono_ms() < due) continue;
    try {
      audit();
    } catch (const std::exception& error) {
      log_error("audit failed", {{"error", std::string(error.what())}});
    }
    last = clock_.mono_ms();
  }
}

void AuditTurns::audit() {
  const auto reader = open_reader(db_path_);
  const AuditScope scope = audit_scope(runtime_.get()->config, clock_.wall_ms());
  const MonoMs begun = clock_.mono_ms();
  Counts all;
  for (const std::string& code : default_checks(reader->audit())) {
    if (stopping()) return;
    const Counts found = count(reader->audit(), code, scope);
    all.errors += found.errors;
    all.warnings += found.warnings;
    const std::vector<LogField> fields = {{"code", code},
                                          {"findings", found.errors + found.warnings}};
    if (found.errors > 0) {
      log_error("the audit found errors, see aiq audit", fields);
    } else if (found.warnings > 0) {
      log_warn("the audit warns, see aiq audit", fields);
    }
  }
  log_info("audited",
           {{"errors", all.errors}, {"warnings", all.warnings}, {"ms", clock_.mono_ms() - begun}});
}

}  // namespace aiq
