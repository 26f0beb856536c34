// Reading what decides who may start: lanes, leases, pauses, holds, vendors, locks.

#include <algorithm>

#include "core/base/check.h"
#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

constexpr const char* kLane = "SELECT tenant, vendor, model FROM lanes WHERE lane_id = ?1";
constexpr const char* kLaneExists =
    "SELECT 1 FROM lanes WHERE (?1 IS NULL OR vendor = ?1) AND (?2 IS NULL OR model = ?2) "
    "AND (?3 IS NULL OR tenant = ?3) LIMIT 1";
// The head of the next lane that has one: run once per such lane, it costs by these alone.
constexpr const char* kNextHead =
    "SELECT lane_id, rank, job_id, priority, run_at, prompt_tokens, output_tokens "
    "FROM jobs INDEXED BY jobs_ready "
    "WHERE wait = 'ready' AND lane_id > ?1 ORDER BY lane_id, rank, job_id LIMIT 1";
constexpr const char* kRunning =
    "SELECT lane_id, count(*) FROM jobs INDEXED BY jobs_leased "
    "WHERE state = 'processing' GROUP BY lane_id";
constexpr const char* kOldestStart =
    "SELECT min(leased_at) FROM jobs INDEXED BY jobs_leased "
    "WHERE state = 'processing' AND lane_id = ?1 AND open_attempt_id > ?2";
constexpr const char* kPauses =
    "SELECT vendor, model, tenant, cause, reason, until, actor, created_at FROM pauses "
    "WHERE ?1 IS NULL OR until IS NULL OR until > ?1 ORDER BY pause_id";
constexpr const char* kHolds =
    "SELECT vendor, model, until, set_at FROM rate_holds WHERE until > ?1 ORDER BY vendor, model";
constexpr const char* kVendors =
    "SELECT vendor, proven, section, last_seen, rate, unproven_after FROM vendors "
    "ORDER BY vendor";
constexpr const char* kLocks =
    "SELECT name, owner, job_id, acquired_at, expires_at FROM locks ORDER BY name";

std::vector<Pause> read_pauses(SqliteDb& db, std::optional<UnixMs> at) {
  std::vector<Pause> pauses;
  Query query(db, kPauses, at);
  while (query.step()) {
    Pause& pause = pauses.emplace_back();
    pause.vendor = query.text(0);
    pause.model = query.text(1);
    pause.tenant = query.text(2);
    pause.cause = query.text(3);
    pause.reason = query.text(4);
    pause.until = query.opt_i64(5);
    pause.actor = query.text(6);
    pause.created_at = query.i64(7);
  }
  return pauses;
}

}  // namespace

const Lane& SqliteQueries::lane(LaneId id) {
  if (const auto found = lanes_.find(id); found != lanes_.end()) return found->second;
  Query query(db_, kLane, id);
  AIQ_CHECK(query.step());
  return lanes_.emplace(id, Lane{id, query.text(0), query.text(1), query.text(2)}).first->second;
}

bool SqliteQueries::lane_exists(const std::string& vendor, const std::string& model,
                                const std::string& tenant) {
  Query query(db_, kLaneExists, TextOrNull{vendor}, TextOrNull{model}, TextOrNull{tenant});
  return query.step();
}

std::vector<LaneHead> SqliteQueries::ready_heads() {
  std::vector<LaneHead> heads;
  LaneId after = 0;
  for (;;) {
    LaneHead head;
    {
      Query query(db_, kNextHead, after);
      if (!query.step()) return heads;
      after = query.i64(0);
      head.rank = query.i64(1);
      head.job_id = query.i64(2);
      head.priority = query.i32(3);
      head.run_at = query.i64(4);
      head.prompt_tokens = query.i64(5);
      head.output_tokens = query.opt_i64(6);
    }
    head.lane = lane(after);
    heads.push_back(std::move(head));
  }
}

std::vector<LaneHead> SqliteQueries::running() {
  std::vector<LaneHead> lanes;
  Query query(db_, kRunning);
  while (query.step()) {
    LaneHead& head = lanes.emplace_back();
    head.lane = lane(query.i64(0));
    head.in_flight = query.i32(1);
  }
  return lanes;
}

std::map<std::string, UnixMs> SqliteQueries::oldest_start(const std::vector<VendorRow>& vendors,
                                                          const std::vector<LaneHead>& running) {
  std::map<std::string, UnixMs> oldest;
  for (const VendorRow& vendor : vendors) {
    if (vendor.proven) continue;
    for (const LaneHead& head : running) {
      if (head.lane.vendor != vendor.vendor) continue;
      Query query(db_, kOldestStart, head.lane.lane_id, vendor.unproven_after);
      AIQ_CHECK(query.step());
      const auto start = query.opt_i64(0);
      if (!start) continue;
      const auto [at, added] = oldest.emplace(vendor.vendor, *start);
      if (!added) at->second = std::min(at->second, *start);
    }
  }
  return oldest;
}

std::vector<Pause> SqliteQueries::pauses_in_force(UnixMs now) {
  return read_pauses(db_, now);
}

std::vector<Pause> SqliteQueries::list_pauses() {
  return read_pauses(db_, std::nullopt);
}

std::vector<RateHold> SqliteQueries::holds_in_force(UnixMs now) {
  std::vector<RateHold> holds;
  Query query(db_, kHolds, now);
  while (query.step())
    holds.push_back({query.text(0), query.text(1), query.i64(2), query.i64(3), {}, {}});
  return holds;
}

std::vector<VendorRow> SqliteQueries::vendors() {
  std::vector<VendorRow> rows;
  Query query(db_, kVendors);
  while (query.step()) {
    rows.push_back({query.text(0), query.flag(1), query.text(2), query.opt_i64(3), query.text(4),
                    query.i64(5)});
  }
  return rows;
}

std::vector<LockRow> SqliteQueries::list_locks() {
  std::vector<LockRow> locks;
  Query query(db_, kLocks);
  while (query.step()) {
    locks.push_back({query.text(0), query.text(1), query.opt_i64(2), query.i64(3), query.i64(4)});
  }
  return locks;
}

}  // namespace aiq
