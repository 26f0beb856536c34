// usage_pending and cost_state: events that are not posted yet

#include <limits>

#include "core/base/check.h"
#include "core/store/sqlite_ledger.h"

namespace aiq {
namespace {

constexpr UnixMs kEver = std::numeric_limits<UnixMs>::max();

constexpr const char* kSeen = "SELECT n FROM cost_state WHERE name = ?1";
constexpr const char* kSetSeen =
    "INSERT INTO cost_state (name, n) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET n = ?2";
constexpr const char* kLastOfSlice =
    "SELECT max(usage_id) FROM (SELECT usage_id FROM usage_events WHERE usage_id > ?1 "
    "ORDER BY usage_id LIMIT ?2)";
constexpr const char* kCollect =
    "INSERT INTO usage_pending (tenant, period, usage_id, why) "
    "SELECT tenant, occurred_at - occurred_at % 3600000, usage_id, 'new' FROM usage_events "
    "WHERE usage_id > ?1 AND usage_id <= ?2 "
    "ON CONFLICT (tenant, period, usage_id) DO NOTHING";
constexpr const char* kUncollected = "SELECT count(*) FROM usage_events WHERE usage_id > ?1";

constexpr const char* kWakeFrozen =
    "UPDATE usage_pending SET why = 'new' WHERE why = 'frozen' AND NOT EXISTS ("
    "SELECT 1 FROM freezes f WHERE f.tenant = usage_pending.tenant AND f.lifted_at IS NULL "
    "AND (f.until IS NULL OR f.until > ?1) AND usage_pending.period >= f.period_from "
    "AND usage_pending.period < f.period_to)";
constexpr const char* kWakeUnpriced = "UPDATE usage_pending SET why = 'new' WHERE why = 'unpriced'";
constexpr const char* kLastPrice = "SELECT coalesce(max(price_id), 0) FROM prices";

// In order of tenant and period; ?1, ?2: the unit before.
constexpr const char* kNextUnit =
    "SELECT tenant, period FROM usage_pending WHERE (tenant, period) > (?1, ?2) "
    "AND period >= ?3 AND period < ?4 AND (?5 = 0 OR why = 'new') "
    "ORDER BY tenant, period LIMIT 1";
constexpr const char* kNextUnitOfTenant =
    "SELECT tenant, period FROM usage_pending WHERE tenant = ?1 AND period > ?2 "
    "AND period >= ?3 AND period < ?4 AND (?5 = 0 OR why = 'new') ORDER BY period LIMIT 1";
constexpr const char* kEvents =
    "SELECT u.usage_id, u.source, u.tenant, u.event_id, u.vendor, u.model, u.meter, u.units, "
    "u.context_tokens, u.unit_pico, u.currency, u.occurred_at, u.received_at, u.job_id, u.job_ref, "
    "u.correlation_id FROM usage_pending p JOIN usage_events u ON u.usage_id = p.usage_id "
    "WHERE p.tenant = ?1 AND p.period = ?2 AND p.usage_id > ?3 ORDER BY p.usage_id LIMIT ?4";
constexpr const char* kDrop =
    "DELETE FROM usage_pending WHERE tenant = ?1 AND period = ?2 AND usage_id = ?3";
constexpr const char* kMark =
    "UPDATE usage_pending SET why = ?4 WHERE tenant = ?1 AND period = ?2 AND usage_id = ?3";
constexpr const char* kCount =
    "SELECT why, count(*) FROM usage_pending WHERE (?1 = '' OR tenant = ?1) AND period >= ?2 "
    "AND period < ?3 GROUP BY why";
constexpr const char* kCountUncollected =
    "SELECT count(*) FROM usage_events WHERE usage_id > ?1 AND (?2 = '' OR tenant = ?2) "
    "AND occurred_at >= ?3 AND occurred_at < ?4";
constexpr const char* kUnits =
    "SELECT DISTINCT tenant, period FROM usage_pending WHERE (?1 = '' OR tenant = ?1) "
    "AND period >= ?2 AND period < ?3 "
    "UNION SELECT tenant, occurred_at - occurred_at % 3600000 FROM usage_events "
    "WHERE usage_id > ?4 AND (?1 = '' OR tenant = ?1) AND occurred_at >= ?2 AND occurred_at < ?3 "
    "ORDER BY 1, 2";

std::int64_t state(SqliteDb& db, std::string_view name) {
  Query query(db, kSeen, name);
  return query.step() ? query.i64(0) : 0;
}

std::string_view to_text(Pending why) {
  switch (why) {
    case Pending::fresh:
      return "new";
    case Pending::unpriced:
      return "unpriced";
    case Pending::frozen:
      return "frozen";
  }
  AIQ_CHECK(false);
}

Pending from_text(std::string_view why) {
  return why == "unpriced" ? Pending::unpriced : why == "frozen" ? Pending::frozen : Pending::fresh;
}

}  // namespace

bool SqliteLedger::collect_usage(int limit) {
  const std::int64_t seen = state(db_, "usage_seen");
  std::int64_t last = 0;
  {
    Query query(db_, kLastOfSlice, seen, limit);
    if (!query.step() || query.null(0)) return false;
    last = query.i64(0);
  }
  run(db_, kCollect, seen, last);
  run(db_, kSetSeen, "usage_seen", last);
  return true;
}

std::int64_t SqliteLedger::uncollected_usage() {
  Query query(db_, kUncollected, state(db_, "usage_seen"));
  return query.step() ? query.i64(0) : 0;
}

void SqliteLedger::wake_pending(UnixMs now) {
  run(db_, kWakeFrozen, now);
  std::int64_t last_price = 0;
  {
    Query query(db_, kLastPrice);
    if (query.step()) last_price = query.i64(0);
  }
  if (last_price == state(db_, "prices_seen")) return;
  run(db_, kWakeUnpriced);
  run(db_, kSetSeen, "prices_seen", last_price);
}

std::optional<TenantPeriod> SqliteLedger::next_pending_unit(
    const std::optional<TenantPeriod>& after, const PeriodScope& scope, bool fresh_only) {
  const bool one = !scope.tenant.empty();
  const std::string tenant = one ? scope.tenant : after ? after->tenant : std::string();
  Query query(db_, one ? kNextUnitOfTenant : kNextUnit, tenant, after ? after->period : -1,
              scope.from.value_or(0), scope.to.value_or(kEver), fresh_only ? 1 : 0);
  if (!query.step()) return std::nullopt;
  return TenantPeriod{query.text(0), query.i64(1)};
}

std::vector<UsageEvent> SqliteLedger::pending_events(const TenantPeriod& unit, std::int64_t after,
                                                     int limit) {
  Query query(db_, kEvents, unit.tenant, unit.period, after, limit);
  std::vector<UsageEvent> out;
  while (query.step())
    out.push_back(read_usage(query, 0));
  return out;
}

void SqliteLedger::drop_pending(const TenantPeriod& unit, std::int64_t usage_id) {
  run(db_, kDrop, unit.tenant, unit.period, usage_id);
}

void SqliteLedger::mark_pending(const TenantPeriod& unit, std::int64_t usage_id, Pending why) {
  run(db_, kMark, unit.tenant, unit.period, usage_id, to_text(why));
}

std::map<Pending, std::int64_t> SqliteLedger::count_pending(const PeriodScope& scope) {
  const UnixMs from = scope.from.value_or(0), to = scope.to.value_or(kEver);
  std::map<Pending, std::int64_t> out;
  {
    Query query(db_, kCount, scope.tenant, from, to);
    while (query.step())
      out[from_text(query.view(0))] = query.i64(1);
  }
  Query query(db_, kCountUncollected, state(db_, "usage_seen"), scope.tenant, from, to);
  if (query.step() && query.i64(0) > 0) out[Pending::fresh] += query.i64(0);
  return out;
}

std::vector<TenantPeriod> SqliteLedger::pending_units(const PeriodScope& scope) {
  Query query(db_, kUnits, scope.tenant, scope.from.value_or(0), scope.to.value_or(kEver),
              state(db_, "usage_seen"));
  std::vector<TenantPeriod> out;
  while (query.step())
    out.push_back({query.text(0), query.i64(1)});
  return out;
}

}  // namespace aiq
