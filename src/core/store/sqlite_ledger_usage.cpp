// usage_events, usage_duplicates, usage_conflicts

#include <limits>

#include "core/base/check.h"
#include "core/store/sqlite_ledger.h"
#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

constexpr const char* kInsertUsage =
    "INSERT INTO usage_events (source, tenant, event_id, vendor, model, meter, units, "
    "context_tokens, unit_pico, currency, occurred_at, received_at, job_ref, correlation_id, "
    "payload_hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) "
    "ON CONFLICT (tenant, event_id, source) DO NOTHING";
constexpr const char* kKnownPayload =
    "SELECT payload_hash FROM usage_events WHERE tenant = ?1 AND event_id = ?2 AND source = ?3";
constexpr const char* kInsertDuplicate =
    "INSERT INTO usage_duplicates (source, tenant, event_id, occurred_at, received_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5)";
constexpr const char* kInsertConflict =
    "INSERT INTO usage_conflicts (source, tenant, event_id, vendor, model, meter, units, "
    "context_tokens, unit_pico, currency, occurred_at, received_at, job_ref, correlation_id, "
    "payload_hash, state) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 'open') "
    "ON CONFLICT (tenant, event_id, source, payload_hash) DO NOTHING";

#define AIQ_USAGE_COLUMNS                                                                          \
  "u.usage_id, u.source, u.tenant, u.event_id, u.vendor, u.model, u.meter, u.units, "              \
  "u.context_tokens, u.unit_pico, u.currency, u.occurred_at, u.received_at, u.job_id, u.job_ref, " \
  "u.correlation_id"
#define AIQ_CONFLICT_COLUMNS                                                                   \
  "0, u.source, u.tenant, u.event_id, u.vendor, u.model, u.meter, u.units, u.context_tokens, " \
  "u.unit_pico, u.currency, u.occurred_at, u.received_at, NULL, u.job_ref, u.correlation_id, " \
  "u.conflict_id, u.state, u.reason, u.actor, u.decided_at"

constexpr const char* kUsageById =
    "SELECT " AIQ_USAGE_COLUMNS " FROM usage_events u WHERE u.usage_id = ?1";
constexpr const char* kUsageByEvent =
    "SELECT " AIQ_USAGE_COLUMNS
    " FROM usage_events u WHERE u.tenant = ?1 AND u.event_id = ?2 AND u.source = ?3";
constexpr const char* kUsageOfJob =
    "SELECT " AIQ_USAGE_COLUMNS
    " FROM usage_events u INDEXED BY usage_events_job WHERE u.job_id = ?1 ORDER BY u.usage_id";
// A source counts as posted by what it is, not by its key.
constexpr const char* kListUsage =
    "SELECT " AIQ_USAGE_COLUMNS
    ", EXISTS (SELECT 1 FROM cost_ledger l INDEXED BY cost_ledger_origin WHERE "
    "l.source_ref = u.event_id AND l.tenant = u.tenant AND l.source_type = 'usage' "
    "AND l.source = u.source) AS posted, p.why FROM usage_events u "
    "LEFT JOIN usage_pending p ON p.tenant = u.tenant "
    "AND p.period = u.occurred_at - u.occurred_at % 3600000 AND p.usage_id = u.usage_id "
    "WHERE u.usage_id < ?1 AND (?2 = '' OR u.tenant = ?2) AND (?3 = '' OR u.model = ?3) "
    "AND (?4 = '' OR u.event_id = ?4) AND u.occurred_at >= ?5 AND u.occurred_at < ?6 "
    "AND CASE ?7 WHEN 'posted' THEN posted WHEN 'unposted' THEN NOT posted "
    "WHEN 'unpriced' THEN NOT posted AND coalesce(p.why, '') = 'unpriced' ELSE 1 END "
    "ORDER BY u.usage_id DESC LIMIT ?8";
constexpr const char* kListConflicts =
    "SELECT " AIQ_CONFLICT_COLUMNS
    " FROM usage_conflicts u WHERE u.conflict_id < ?1 AND (?2 = '' OR u.state = ?2) "
    "ORDER BY u.conflict_id DESC LIMIT ?3";
constexpr const char* kConflict =
    "SELECT " AIQ_CONFLICT_COLUMNS " FROM usage_conflicts u WHERE u.conflict_id = ?1";
constexpr const char* kConflictsOf =
    "SELECT " AIQ_CONFLICT_COLUMNS
    " FROM usage_conflicts u WHERE u.tenant = ?1 AND u.event_id = ?2 AND u.source = ?3 "
    "ORDER BY u.conflict_id";
constexpr const char* kReplacement =
    "SELECT " AIQ_CONFLICT_COLUMNS
    " FROM usage_conflicts u WHERE u.tenant = ?1 AND u.event_id = ?2 AND u.source = ?3 "
    "AND u.state = 'replaced' ORDER BY u.decided_at DESC, u.conflict_id DESC LIMIT 1";
constexpr const char* kDecide =
    "UPDATE usage_conflicts SET state = ?2, reason = ?3, actor = ?4, decided_at = ?5 "
    "WHERE conflict_id = ?1 AND state = 'open'";

UsageConflict read_conflict(const Query& query) {
  UsageConflict out;
  out.event = read_usage(query, 0);
  int column = kUsageColumnCount - 1;
  out.conflict_id = query.i64(++column);
  out.state = query.text(++column);
  out.reason = query.text(++column);
  out.actor = query.text(++column);
  out.decided_at = query.opt_i64(++column);
  return out;
}

// usage_events and usage_conflicts take the same values.
void insert(SqliteDb& db, const char* sql, const UsageEvent& event, const std::string& hash) {
  run(db, sql, event.source, event.tenant, event.event_id, event.vendor, event.model, event.meter,
      event.units, event.context_tokens, event.unit_pico, TextOrNull{event.currency},
      event.occurred_at, event.received_at, TextOrNull{event.job_ref},
      TextOrNull{event.correlation_id}, hash);
}

}  // namespace

UsageEvent read_usage(const Query& query, int first) {
  UsageEvent out;
  out.usage_id = query.i64(first);
  out.source = query.text(first + 1);
  out.tenant = query.text(first + 2);
  out.event_id = query.text(first + 3);
  out.vendor = query.text(first + 4);
  out.model = query.text(first + 5);
  out.meter = query.text(first + 6);
  out.units = query.i64(first + 7);
  out.context_tokens = query.opt_i64(first + 8);
  out.unit_pico = query.opt_i64(first + 9);
  out.currency = query.text(first + 10);
  out.occurred_at = query.i64(first + 11);
  out.received_at = query.i64(first + 12);
  out.job_id = query.opt_i64(first + 13);
  out.job_ref = query.text(first + 14);
  out.correlation_id = query.text(first + 15);
  return out;
}

AddUsage SqliteLedger::add_usage(const UsageEvent& event) {
  const std::string hash = payload_hash(event);
  insert(db_, kInsertUsage, event, hash);
  if (sqlite3_changes(db_.handle()) > 0) return AddUsage::accepted;
  std::string known;
  {
    Query query(db_, kKnownPayload, event.tenant, event.event_id, event.source);
    AIQ_CHECK(query.step());
    known = query.text(0);
  }
  if (known == hash) {
    run(db_, kInsertDuplicate, event.source, event.tenant, event.event_id, event.occurred_at,
        event.received_at);
    return AddUsage::duplicate;
  }
  insert(db_, kInsertConflict, event, hash);
  return AddUsage::conflict;
}

std::optional<UsageEvent> SqliteLedger::usage(std::int64_t usage_id) {
  Query query(db_, kUsageById, usage_id);
  return query.step() ? std::optional(read_usage(query, 0)) : std::nullopt;
}

std::optional<UsageEvent> SqliteLedger::find_usage(const std::string& tenant,
                                                   const std::string& event_id,
                                                   const std::string& source) {
  Query query(db_, kUsageByEvent, tenant, event_id, source);
  return query.step() ? std::optional(read_usage(query, 0)) : std::nullopt;
}

std::vector<UsageEvent> SqliteLedger::usage_of_job(JobId job_id) {
  Query query(db_, kUsageOfJob, job_id);
  std::vector<UsageEvent> out;
  while (query.step())
    out.push_back(read_usage(query, 0));
  return out;
}

std::vector<UsageRow> SqliteLedger::list_usage(const UsageFilter& filter, const Page& page) {
  constexpr UnixMs kEver = std::numeric_limits<UnixMs>::max();
  Query query(db_, kListUsage, first_id_below(page), filter.tenant, filter.model, filter.event_id,
              filter.since.value_or(0), filter.until.value_or(kEver), filter.state, page.limit);
  std::vector<UsageRow> out;
  while (query.step()) {
    UsageRow row;
    row.event = read_usage(query, 0);
    const std::string why = query.text(17);
    row.state = query.flag(16) ? "posted" : why == "unpriced" || why == "frozen" ? why : "unposted";
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<UsageConflict> SqliteLedger::list_conflicts(const std::string& state,
                                                        const Page& page) {
  Query query(db_, kListConflicts, first_id_below(page), state, page.limit);
  std::vector<UsageConflict> out;
  while (query.step())
    out.push_back(read_conflict(query));
  return out;
}

std::optional<UsageConflict> SqliteLedger::conflict(std::int64_t conflict_id) {
  Query query(db_, kConflict, conflict_id);
  return query.step() ? std::optional(read_conflict(query)) : std::nullopt;
}

std::vector<UsageConflict> SqliteLedger::conflicts_of(const std::string& tenant,
                                                      const std::string& event_id,
                                                      const std::string& source) {
  Query query(db_, kConflictsOf, tenant, event_id, source);
  std::vector<UsageConflict> out;
  while (query.step())
    out.push_back(read_conflict(query));
  return out;
}

std::optional<UsageConflict> SqliteLedger::replacement(const std::string& tenant,
                                                       const std::string& event_id,
                                                       const std::string& source) {
  Query query(db_, kReplacement, tenant, event_id, source);
  return query.step() ? std::optional(read_conflict(query)) : std::nullopt;
}

bool SqliteLedger::decide_conflict(std::int64_t conflict_id, const std::string& state,
                                   const std::string& reason, const std::string& actor,
                                   UnixMs now) {
  return run(db_, kDecide, conflict_id, state, TextOrNull{reason}, actor, now) > 0;
}

void SqliteLedger::quarantine(const UsageEvent& event) {
  insert(db_, kInsertConflict, event, payload_hash(event));
}

}  // namespace aiq
