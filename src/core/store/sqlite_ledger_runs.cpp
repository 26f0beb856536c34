// cost_runs, freezes, credit_notes, and who holds a lock

#include <limits>

#include "core/store/sqlite_ledger.h"
#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

constexpr UnixMs kEver = std::numeric_limits<UnixMs>::max();

// Runs of the unit since the last one that ended well.
constexpr const char* kRetries =
    "SELECT count(*) FROM cost_runs INDEXED BY cost_runs_unit WHERE tenant = ?1 AND period = ?2 "
    "AND source = '' AND outcome IN ('busy', 'failed', 'abandoned') AND run_id > coalesce(("
    "SELECT max(run_id) FROM cost_runs INDEXED BY cost_runs_unit WHERE tenant = ?1 "
    "AND period = ?2 AND source = '' AND outcome IN ('done', 'frozen')), 0)";
constexpr const char* kOpenRun =
    "INSERT INTO cost_runs (call_id, tenant, period, initiator, started_at, retry_count, "
    "correlation_id, actor) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
constexpr const char* kSetRun =
    "UPDATE cost_runs SET events = ?2, posted = ?3, replayed = ?4, conflicts = ?5, unpriced = ?6, "
    "late = ?7, outcome = ?8, finished_at = ?9 WHERE run_id = ?1 AND outcome IS NULL";

#define AIQ_RUN_COLUMNS                                                                       \
  "r.run_id, r.source, r.call_id, r.tenant, r.period, r.initiator, r.job_ref, r.started_at, " \
  "r.finished_at, r.retry_count, r.outcome, r.events, r.posted, r.replayed, r.conflicts, "    \
  "r.unpriced, r.late, r.correlation_id, r.actor FROM cost_runs r "
constexpr const char* kOpenRuns = "SELECT " AIQ_RUN_COLUMNS
                                  "INDEXED BY cost_runs_open WHERE r.outcome IS NULL "
                                  "AND r.source = '' ORDER BY r.run_id LIMIT 1000";
constexpr const char* kListRuns =
    "SELECT " AIQ_RUN_COLUMNS
    "WHERE r.run_id < ?1 AND (?2 = '' OR r.tenant = ?2) AND (?3 = '' OR r.outcome = ?3) "
    "AND (?4 = '' OR r.call_id = ?4) AND (?5 IS NULL OR r.period = ?5) AND r.started_at >= ?6 "
    "AND r.started_at < ?7 ORDER BY r.run_id DESC LIMIT ?8";
constexpr const char* kLockOwner = "SELECT owner FROM locks WHERE name = ?1 AND expires_at > ?2";

constexpr const char* kFreeze =
    "INSERT INTO freezes (tenant, period_from, period_to, origin, until, reason, actor, "
    "created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
#define AIQ_FREEZE_COLUMNS                                                                       \
  "SELECT freeze_id, tenant, period_from, period_to, origin, until, reason, actor, created_at, " \
  "lifted_at, lifted_by FROM freezes "
constexpr const char* kFreezeOf = AIQ_FREEZE_COLUMNS
    "INDEXED BY freezes_in_force WHERE tenant = ?1 AND lifted_at IS NULL AND period_from <= ?2 "
    "AND period_to > ?2 AND (until IS NULL OR until > ?3) ORDER BY freeze_id LIMIT 1";
constexpr const char* kListFreezes = AIQ_FREEZE_COLUMNS
    "WHERE freeze_id < ?1 AND (?2 = '' OR tenant = ?2) "
    "AND (?3 <> 0 OR (lifted_at IS NULL AND (until IS NULL OR until > ?4))) "
    "ORDER BY freeze_id DESC LIMIT ?5";
constexpr const char* kLift =
    "UPDATE freezes SET lifted_at = ?5, lifted_by = ?4 WHERE tenant = ?1 AND lifted_at IS NULL "
    "AND period_from < ?3 AND period_to > ?2 AND (until IS NULL OR until > ?5)";
constexpr const char* kLiftOrigin =
    "UPDATE freezes SET lifted_at = ?3, lifted_by = ?2 WHERE origin = ?1 AND lifted_at IS NULL";

constexpr const char* kAddCredit =
    "INSERT INTO credit_notes (source, credit_note_id, tenant, service_period, amount_pico, "
    "currency, status, reason, approved_by, created_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
    "ON CONFLICT (credit_note_id, source) DO NOTHING";

RunRow read_run(const Query& query) {
  RunRow out;
  int c = -1;
  out.run_id = query.i64(++c);
  out.source = query.text(++c);
  out.call_id = query.text(++c);
  out.unit.tenant = query.text(++c);
  out.unit.period = query.i64(++c);
  out.initiator = query.text(++c);
  out.job_ref = query.text(++c);
  out.started_at = query.i64(++c);
  out.finished_at = query.opt_i64(++c);
  out.retry_count = query.i32(++c);
  out.outcome = query.text(++c);
  out.events = query.i64(++c);
  out.counts.posted = query.i64(++c);
  out.counts.replayed = query.i64(++c);
  out.counts.conflicts = query.i64(++c);
  out.counts.unpriced = query.i64(++c);
  out.counts.late = query.i64(++c);
  out.correlation_id = query.text(++c);
  out.actor = query.text(++c);
  return out;
}

std::vector<RunRow> read_runs(Query& query) {
  std::vector<RunRow> out;
  while (query.step())
    out.push_back(read_run(query));
  return out;
}

Freeze read_freeze(const Query& query) {
  Freeze out;
  int c = -1;
  out.freeze_id = query.i64(++c);
  out.tenant = query.text(++c);
  out.from = query.i64(++c);
  out.to = query.i64(++c);
  out.origin = query.text(++c);
  out.until = query.opt_i64(++c);
  out.reason = query.text(++c);
  out.actor = query.text(++c);
  out.created_at = query.i64(++c);
  out.lifted_at = query.opt_i64(++c);
  out.lifted_by = query.text(++c);
  return out;
}

}  // namespace

OpenedRun SqliteLedger::open_run(const NewRun& r) {
  int retries = 0;
  {
    Query query(db_, kRetries, r.unit.tenant, r.unit.period);
    if (query.step()) retries = query.i32(0);
  }
  run(db_, kOpenRun, r.call_id, r.unit.tenant, r.unit.period, r.initiator, r.now, retries,
      r.correlation_id, r.actor);
  return {db_.last_id(), retries};
}

void SqliteLedger::set_run(std::int64_t run_id, const RunCounts& counts, const std::string& outcome,
                           UnixMs now) {
  std::optional<UnixMs> finished;
  if (!outcome.empty()) finished = now;
  run(db_, kSetRun, run_id, counts.events(), counts.posted, counts.replayed, counts.conflicts,
      counts.unpriced, counts.late, TextOrNull{outcome}, finished);
}

std::vector<RunRow> SqliteLedger::open_runs() {
  Query query(db_, kOpenRuns);
  return read_runs(query);
}

std::vector<RunRow> SqliteLedger::list_runs(const RunFilter& f, const Page& page) {
  Query query(db_, kListRuns, first_id_below(page), f.tenant, f.outcome, f.call_id, f.period,
              f.since.value_or(0), f.until.value_or(kEver), page.limit);
  return read_runs(query);
}

std::optional<std::string> SqliteLedger::lock_owner(const std::string& name, UnixMs now) {
  Query query(db_, kLockOwner, name, now);
  return query.step() ? std::optional(query.text(0)) : std::nullopt;
}

std::int64_t SqliteLedger::freeze(const Freeze& f) {
  run(db_, kFreeze, f.tenant, f.from, f.to, f.origin, f.until, f.reason, f.actor, f.created_at);
  return db_.last_id();
}

std::optional<Freeze> SqliteLedger::freeze_of(const TenantPeriod& unit, UnixMs now) {
  Query query(db_, kFreezeOf, unit.tenant, unit.period, now);
  return query.step() ? std::optional(read_freeze(query)) : std::nullopt;
}

std::vector<Freeze> SqliteLedger::list_freezes(bool all, const std::string& tenant, UnixMs now,
                                               const Page& page) {
  Query query(db_, kListFreezes, first_id_below(page), tenant, all ? 1 : 0, now, page.limit);
  std::vector<Freeze> out;
  while (query.step())
    out.push_back(read_freeze(query));
  return out;
}

int SqliteLedger::lift_freezes(const std::string& tenant, UnixMs from, UnixMs to,
                               const std::string& actor, UnixMs now) {
  return run(db_, kLift, tenant, from, to, actor, now);
}

int SqliteLedger::lift_origin(const std::string& origin, const std::string& actor, UnixMs now) {
  return run(db_, kLiftOrigin, origin, actor, now);
}

std::optional<std::int64_t> SqliteLedger::add_credit_note(const CreditNote& n) {
  const int added =
      run(db_, kAddCredit, n.source, n.credit_note_id, n.tenant, n.service_period, n.amount,
          n.currency, n.status, n.reason, TextOrNull{n.approved_by}, n.created_at);
  return added > 0 ? std::optional(db_.last_id()) : std::nullopt;
}

}  // namespace aiq
