// rate_windows, vendor_pace, breakers, tenant_shares, and what comes after a hold.

#include <set>

#include "core/model/retry.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

#define AIQ_RATE_COLUMNS "SELECT scope, name, unit, level, at, recent, reported, reported_at "
constexpr const char* kRate =
    AIQ_RATE_COLUMNS "FROM rate_windows WHERE scope = ?1 AND name = ?2 AND unit = ?3";
constexpr const char* kRates = AIQ_RATE_COLUMNS "FROM rate_windows ORDER BY scope, name, unit";
constexpr const char* kSaveRate =
    "INSERT INTO rate_windows (scope, name, unit, level, at, recent, reported, reported_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (scope, name, unit) DO UPDATE SET "
    "level = excluded.level, at = excluded.at, recent = excluded.recent, "
    "reported = excluded.reported, reported_at = excluded.reported_at";
constexpr const char* kPace =
    "SELECT vendor, model, share, at FROM vendor_pace WHERE vendor = ?1 AND model = ?2";
constexpr const char* kPaces = "SELECT vendor, model, share, at FROM vendor_pace";
constexpr const char* kSavePace =
    "INSERT INTO vendor_pace (vendor, model, share, at) VALUES (?1, ?2, ?3, ?4) "
    "ON CONFLICT (vendor, model) DO UPDATE SET share = excluded.share, at = excluded.at";
#define AIQ_BREAKER_COLUMNS "SELECT vendor, model, open_until, streak, probes_ok, recent "
constexpr const char* kBreaker =
    AIQ_BREAKER_COLUMNS "FROM breakers WHERE vendor = ?1 AND model = ?2";
constexpr const char* kBreakers = AIQ_BREAKER_COLUMNS "FROM breakers";
constexpr const char* kSaveBreaker =
    "INSERT INTO breakers (vendor, model, open_until, streak, probes_ok, recent) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (vendor, model) DO UPDATE SET "
    "open_until = excluded.open_until, streak = excluded.streak, probes_ok = excluded.probes_ok, "
    "recent = excluded.recent";
constexpr const char* kDropBreaker = "DELETE FROM breakers WHERE vendor = ?1 AND model = ?2";
constexpr const char* kShare =
    "SELECT tenant, served_at, finish FROM tenant_shares WHERE tenant = ?1";
constexpr const char* kShares = "SELECT tenant, served_at, finish FROM tenant_shares";
constexpr const char* kForgetRates =
    "DELETE FROM rate_windows WHERE at < ?1 AND coalesce(reported_at, 0) < ?1";
constexpr DurationMs kIdleRateMs = 3'600'000;
constexpr DurationMs kIdleShareMs = 24 * kIdleRateMs;
constexpr const char* kForgetShares =
    "DELETE FROM tenant_shares WHERE tenant <> '' AND served_at < ?1 AND finish <= "
    "(SELECT finish FROM tenant_shares WHERE tenant = '')";
// From so many on, all rows are read rather than each by itself.
constexpr std::size_t kSharesByName = 50;
constexpr const char* kSaveShare =
    "INSERT INTO tenant_shares (tenant, served_at, finish) VALUES (?1, ?2, ?3) "
    "ON CONFLICT (tenant) DO UPDATE SET served_at = excluded.served_at, finish = excluded.finish";
constexpr const char* kHolds =
    "SELECT vendor, model, until, set_at, waiting, next_start FROM rate_holds "
    "WHERE until + max(?2, (until - set_at) / ?3) > ?1 ORDER BY vendor, model";
constexpr const char* kSaveSpread =
    "UPDATE rate_holds SET waiting = ?3, next_start = ?4 WHERE vendor = ?1 AND model = ?2";
// Those whose own wait ends while the others start, too.
constexpr const char* kWaiting =
    "SELECT (SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_ready "
    "WHERE wait = 'ready' AND lane_id = ?1 LIMIT ?3)) + "
    "(SELECT count(*) FROM (SELECT lane_id FROM jobs INDEXED BY jobs_due "
    "WHERE wait = 'time' AND run_at <= ?2 ORDER BY run_at LIMIT ?3) WHERE lane_id = ?1)";

RateRow rate_of(const Query& query) {
  RateRow row;
  row.scope = query.text(0);
  row.name = query.text(1);
  row.unit = query.text(2);
  row.level = query.real(3);
  row.at = query.i64(4);
  row.recent = query.text(5);
  row.reported = query.opt_i64(6);
  row.reported_at = query.opt_i64(7);
  return row;
}

BreakerRow breaker_of(const Query& query) {
  return {query.text(0), query.text(1), query.opt_i64(2),
          query.i32(3),  query.i32(4),  query.text(5)};
}

}  // namespace

std::vector<RateHold> SqliteQueries::holds_and_spreads(UnixMs now) {
  std::vector<RateHold> holds;
  Query query(db_, kHolds, now, kSpreadMinMs, kSpreadPart);
  while (query.step()) {
    RateHold& hold = holds.emplace_back();
    hold.vendor = query.text(0);
    hold.model = query.text(1);
    hold.until = query.i64(2);
    hold.set_at = query.i64(3);
    if (!query.null(4)) hold.waiting = query.i32(4);
    if (!query.null(5)) hold.next_start = query.real(5);
  }
  return holds;
}

int SqliteQueries::waiting_in(LaneId lane, UnixMs until, int limit) {
  Query query(db_, kWaiting, lane, until, limit);
  return query.step() ? query.i32(0) : 0;
}

std::vector<RateRow> SqliteQueries::rates() {
  std::vector<RateRow> rows;
  Query query(db_, kRates);
  while (query.step())
    rows.push_back(rate_of(query));
  return rows;
}

std::vector<PaceRow> SqliteQueries::paces() {
  std::vector<PaceRow> rows;
  Query query(db_, kPaces);
  while (query.step())
    rows.push_back({query.text(0), query.text(1), query.real(2), query.i64(3)});
  return rows;
}

std::vector<BreakerRow> SqliteQueries::breakers() {
  std::vector<BreakerRow> rows;
  Query query(db_, kBreakers);
  while (query.step())
    rows.push_back(breaker_of(query));
  return rows;
}

std::vector<ShareRow> SqliteQueries::shares(const std::vector<LaneHead>& lanes) {
  std::set<std::string_view> tenants = {""};
  for (const LaneHead& head : lanes)
    tenants.insert(head.lane.tenant);
  std::vector<ShareRow> rows;
  if (tenants.size() > kSharesByName) {
    Query query(db_, kShares);
    while (query.step())
      if (tenants.contains(query.view(0)))
        rows.push_back({query.text(0), query.i64(1), query.real(2)});
    return rows;
  }
  for (const std::string_view tenant : tenants) {
    Query query(db_, kShare, tenant);
    if (query.step()) rows.push_back({query.text(0), query.i64(1), query.real(2)});
  }
  return rows;
}

std::optional<RateRow> SqliteStore::rate(const std::string& scope, const std::string& name,
                                         const std::string& unit) {
  Query query(db_, kRate, scope, name, unit);
  if (!query.step()) return std::nullopt;
  return rate_of(query);
}

void SqliteStore::save_rate(const RateRow& row) {
  run(db_, kSaveRate, row.scope, row.name, row.unit, row.level, row.at, row.recent, row.reported,
      row.reported_at);
}

std::optional<PaceRow> SqliteStore::pace(const std::string& vendor, const std::string& model) {
  Query query(db_, kPace, vendor, model);
  if (!query.step()) return std::nullopt;
  return PaceRow{query.text(0), query.text(1), query.real(2), query.i64(3)};
}

void SqliteStore::save_pace(const PaceRow& row) {
  run(db_, kSavePace, row.vendor, row.model, row.share, row.at);
}

std::optional<BreakerRow> SqliteStore::breaker(const std::string& vendor,
                                               const std::string& model) {
  Query query(db_, kBreaker, vendor, model);
  if (!query.step()) return std::nullopt;
  return breaker_of(query);
}

void SqliteStore::save_breaker(const BreakerRow& row) {
  run(db_, kSaveBreaker, row.vendor, row.model, row.open_until, row.streak, row.probes_ok,
      row.recent);
}

void SqliteStore::drop_breaker(const std::string& vendor, const std::string& model) {
  run(db_, kDropBreaker, vendor, model);
}

void SqliteStore::save_share(const ShareRow& row) {
  run(db_, kSaveShare, row.tenant, row.served_at, row.finish);
}

void SqliteStore::forget_idle(UnixMs now) {
  run(db_, kForgetRates, now - kIdleRateMs);
  run(db_, kForgetShares, now - kIdleShareMs);
}

void SqliteStore::save_spread(const RateHold& hold) {
  run(db_, kSaveSpread, hold.vendor, hold.model, hold.waiting, hold.next_start);
}

void SqliteStore::count_waiting(AdmissionView& view, UnixMs now) {
  constexpr int kCountMost = 2'000;
  for (RateHold& hold : view.holds) {
    if (hold.until > now || hold.waiting) continue;
    int waiting = 0;
    for (const LaneHead& head : view.lanes) {
      if (head.lane.vendor != hold.vendor || head.lane.model != hold.model) continue;
      waiting += queries_.waiting_in(head.lane.lane_id, hold.until + hold.spread(), kCountMost);
      if (waiting >= kCountMost) break;
    }
    hold.waiting = waiting;
  }
}

}  // namespace aiq
