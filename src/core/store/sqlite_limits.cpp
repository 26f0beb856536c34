// pauses, rate_holds, vendors: what keeps work from starting.

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kSetPause =
    "INSERT INTO pauses (vendor, model, tenant, cause, reason, until, actor, created_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) "
    "ON CONFLICT (vendor, model, tenant) DO UPDATE SET cause = excluded.cause, "
    "reason = excluded.reason || CASE WHEN excluded.until IS NOT NULL AND "
    "excluded.cause = 'operator' AND pauses.cause <> 'operator' THEN '; ' || pauses.reason "
    "ELSE '' END, "
    "until = CASE WHEN excluded.cause <> 'operator' OR pauses.cause = 'operator' "
    "THEN excluded.until END, actor = excluded.actor, created_at = excluded.created_at";
// One that would have ended by itself does not: the vendor's trouble waits for a person.
constexpr const char* kKeepPaused =
    "UPDATE pauses SET until = NULL, reason = reason || '; ' || ?3 WHERE vendor = ?1 "
    "AND model = ?2 AND tenant = '' AND cause = 'operator' AND until > ?4";
// A pause that a person made stands: it must not end with the vendor's.
constexpr const char* kPauseByVendor =
    "INSERT INTO pauses (vendor, model, tenant, cause, reason, until, actor, created_at) "
    "VALUES (?1, ?2, '', ?3, ?4, NULL, 'aiqd', ?5) "
    "ON CONFLICT (vendor, model, tenant) DO UPDATE SET cause = excluded.cause, "
    "reason = excluded.reason, until = excluded.until, actor = excluded.actor, "
    "created_at = excluded.created_at WHERE pauses.cause <> 'operator' "
    "OR (pauses.until IS NOT NULL AND pauses.until <= excluded.created_at)";
constexpr const char* kClearPause =
    "DELETE FROM pauses WHERE vendor = ?1 AND model = ?2 AND tenant = ?3";
constexpr const char* kClearVendorPauses = "DELETE FROM pauses WHERE vendor = ?1 AND tenant = ''";
constexpr const char* kClearAuthPauses = "DELETE FROM pauses WHERE vendor = ?1 AND cause = 'auth'";
constexpr const char* kClearExpired = "DELETE FROM pauses WHERE until <= ?1";

constexpr const char* kInsertVendor =
    "INSERT INTO vendors (vendor, proven) VALUES (?1, 0) ON CONFLICT (vendor) DO NOTHING";
constexpr const char* kSectionOf = "SELECT section FROM vendors WHERE vendor = ?1";
constexpr const char* kSetSection = "UPDATE vendors SET section = ?2 WHERE vendor = ?1";
constexpr const char* kSetProven = "UPDATE vendors SET proven = 1 WHERE vendor = ?1 AND proven = 0";
// What was sent before says nothing about what became of it since.
constexpr const char* kSetUnproven =
    "UPDATE vendors SET proven = 0, "
    "unproven_after = (SELECT coalesce(max(attempt_id), 0) FROM attempts) WHERE vendor = ?1";
constexpr const char* kProve =
    "UPDATE vendors SET proven = 1 WHERE vendor = ?1 AND proven = 0 AND unproven_after < ?2";
constexpr const char* kSetBackHolds =
    "UPDATE rate_holds SET until = until - ?1, set_at = set_at - ?1, next_start = next_start - ?1";
constexpr const char* kSetBackPaces = "UPDATE vendor_pace SET at = at - ?1";
constexpr const char* kSetBackBreakers = "UPDATE breakers SET open_until = open_until - ?1";
constexpr const char* kSetBackShares = "UPDATE tenant_shares SET served_at = served_at - ?1";
constexpr const char* kSetBackRetries =
    "UPDATE jobs SET run_at = run_at - ?1, rank = rank - ?1 WHERE job_id IN "
    "(SELECT job_id FROM jobs INDEXED BY jobs_due WHERE wait = 'time' AND run_at > ?2 "
    "AND state = 'retrying')";
constexpr const char* kNoteRate =
    "INSERT INTO vendors (vendor, proven, last_seen, rate) VALUES (?1, 0, ?2, ?3) "
    "ON CONFLICT (vendor) DO UPDATE SET last_seen = excluded.last_seen, rate = excluded.rate";
// Once a second is enough to see by, and spares the row with every answer.
constexpr const char* kSeen =
    "UPDATE vendors SET last_seen = ?2 "
    "WHERE vendor = ?1 AND (last_seen IS NULL OR last_seen <= ?2 - 1000)";
// The newest wait that a vendor asked for wins, also when it is shorter. Our own default (?5 = 0)
// only extends: it knows less than what was asked for before.
constexpr const char* kSetHold =
    "INSERT INTO rate_holds (vendor, model, until, set_at) VALUES (?1, ?2, ?3, ?4) "
    "ON CONFLICT (vendor, model) DO UPDATE SET "
    "until = CASE WHEN ?5 THEN excluded.until ELSE max(until, excluded.until) END, "
    "set_at = excluded.set_at, waiting = NULL, next_start = NULL "
    "WHERE excluded.set_at >= set_at";

}  // namespace

void SqliteStore::set_pause(const Pause& p) {
  run(db_, kSetPause, p.vendor, p.model, p.tenant, p.cause, p.reason, p.until, p.actor,
      p.created_at);
}

int SqliteStore::clear_pause(const std::string& vendor, const std::string& model,
                             const std::string& tenant) {
  const bool whole_vendor = !vendor.empty() && model.empty() && tenant.empty();
  const int removed = whole_vendor ? run(db_, kClearVendorPauses, vendor)
                                   : run(db_, kClearPause, vendor, model, tenant);
  if (removed > 0 && !vendor.empty()) run(db_, kSetUnproven, vendor);
  return removed;
}

int SqliteStore::clear_expired_pauses(UnixMs now) {
  return run(db_, kClearExpired, now);
}

void SqliteStore::register_vendor(const std::string& vendor, const std::string& section,
                                  bool restart) {
  run(db_, kInsertVendor, vendor);
  std::string stored;
  {
    Query query(db_, kSectionOf, vendor);
    AIQ_CHECK(query.step());
    stored = query.text(0);
  }
  const bool changed = stored != section;
  if (changed) {
    run(db_, kClearAuthPauses, vendor);
    run(db_, kSetSection, vendor, section);
  }
  if (changed || restart) run(db_, kSetUnproven, vendor);
}

void SqliteStore::mark_proven(const std::string& vendor) {
  run(db_, kInsertVendor, vendor);
  run(db_, kSetProven, vendor);
}

void SqliteStore::note_rate(const std::string& vendor, const std::string& rate_json, UnixMs now) {
  run(db_, kNoteRate, vendor, now, rate_json);
}

void SqliteStore::set_back_waits(DurationMs by, UnixMs now) {
  run(db_, kSetBackHolds, by);
  run(db_, kSetBackPaces, by);
  run(db_, kSetBackBreakers, by);
  run(db_, kSetBackShares, by);
  run(db_, kSetBackRetries, by, now);
}

void SqliteStore::apply_to_vendor(const AttemptClose& close, const Lane& lane) {
  if (close.next.hold_until) {
    run(db_, kSetHold, lane.vendor, lane.model, *close.next.hold_until, close.now,
        close.result.retry_after_ms.has_value());
  }
  const bool quota = close.result.outcome == Outcome::vendor_quota;
  if (close.result.spent_vendor || close.result.spent_model) {
    const std::string_view model =
        close.result.spent_vendor ? std::string_view() : std::string_view(lane.model);
    run(db_, kKeepPaused, lane.vendor, model, close.pause_reason, close.now);
    run(db_, kPauseByVendor, lane.vendor, model, quota ? "vendor_quota" : "auth",
        close.pause_reason, close.now);
  }
  if (close.proves_vendor) {
    run(db_, kInsertVendor, lane.vendor);
    run(db_, kProve, lane.vendor, close.attempt_id);
  }
  if (close.result.http_status) run(db_, kSeen, lane.vendor, close.now);
}

}  // namespace aiq
