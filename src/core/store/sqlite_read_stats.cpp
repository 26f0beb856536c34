// Counts and distributions: what `aiq stats` and the metrics show.

#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

constexpr const char* kJobCounts = "SELECT state, n FROM job_counts";
constexpr const char* kCacheCounters = "SELECT name, n FROM cache_counters";
constexpr const char* kAvoided = "SELECT currency, whole, pico FROM cache_avoided";
constexpr const char* kRunAt = "SELECT run_at FROM jobs WHERE job_id = ?1";
constexpr const char* kOpenDeadLetters =
    "SELECT count(*) FROM dead_letters INDEXED BY dead_letters_open WHERE state = 'open'";
constexpr const char* kLockCount = "SELECT count(*) FROM locks";
constexpr const char* kCreatedAt = "SELECT value FROM meta WHERE key = 'created_at'";

// Attempts are numbered in the order of their start, so a time is found by halving the ids; an
// index on the time would be paid for at every attempt.
constexpr const char* kLastAttempt = "SELECT max(attempt_id) FROM attempts";
constexpr const char* kFirstAttemptFrom =
    "SELECT attempt_id, started_at FROM attempts WHERE attempt_id >= ?1 ORDER BY attempt_id LIMIT "
    "1";
constexpr const char* kEndedSince =
    "SELECT lane_id, outcome = 'completed', total_ms, job_id, started_at, "
    "generation = 1 AND attempt = 1 FROM attempts WHERE attempt_id >= ?1 AND ended_at >= ?2";
// The retry's time replaces the job's own run_at, the submissions keep what was asked for.
constexpr const char* kWantedAt =
    "SELECT coalesce((SELECT min(run_at) FROM submissions WHERE job_id = ?1), created_at) "
    "FROM jobs WHERE job_id = ?1";

// No attempt lasts longer.
constexpr DurationMs kLongestAttemptMs = 24LL * 3600 * 1000;

std::int64_t single(SqliteDb& db, const char* sql) {
  Query query(db, sql);
  return query.step() ? query.i64(0) : 0;
}

struct Samples {
  std::int64_t attempts = 0, errors = 0;
  std::vector<DurationMs> latencies, waits;
};

// Nearest rank; `sorted` ascending.
std::optional<DurationMs> percentile(const std::vector<DurationMs>& sorted, int percent) {
  if (sorted.empty()) return std::nullopt;
  const std::size_t rank = (sorted.size() * static_cast<std::size_t>(percent) + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

StatsGroup summarize(const std::string& name, Samples& samples) {
  std::sort(samples.latencies.begin(), samples.latencies.end());
  std::sort(samples.waits.begin(), samples.waits.end());
  StatsGroup group;
  group.name = name;
  group.attempts = samples.attempts;
  group.errors = samples.errors;
  group.latency_p50_ms = percentile(samples.latencies, 50);
  group.latency_p95_ms = percentile(samples.latencies, 95);
  group.latency_p99_ms = percentile(samples.latencies, 99);
  group.wait_p50_ms = percentile(samples.waits, 50);
  group.wait_p95_ms = percentile(samples.waits, 95);
  group.wait_p99_ms = percentile(samples.waits, 99);
  return group;
}

// The first attempt that started at or after `at`; by id.
AttemptId first_started_since(SqliteDb& db, UnixMs at) {
  AttemptId low = 1;
  AttemptId high = single(db, kLastAttempt) + 1;
  while (low < high) {
    const AttemptId middle = low + (high - low) / 2;
    Query query(db, kFirstAttemptFrom, middle);
    if (!query.step() || query.i64(1) >= at) {
      high = middle;
    } else {
      low = query.i64(0) + 1;
    }
  }
  return low;
}

const std::string& name_of(const Lane& lane, std::string_view by) {
  if (by == "tenant") return lane.tenant;
  if (by == "vendor") return lane.vendor;
  AIQ_CHECK(by == "model");
  return lane.model;
}

}  // namespace

CacheStats SqliteQueries::cache_stats() {
  CacheStats stats;
  Query query(db_, kCacheCounters);
  while (query.step()) {
    const std::string_view name = query.view(0);
    const std::int64_t n = query.i64(1);
    if (name == "entries") stats.entries = n;
    if (name == "bytes") stats.bytes = n;
    if (name == "hits") stats.hits = n;
    if (name == "stale_hits") stats.stale_hits = n;
    if (name == "misses") stats.misses = n;
    if (name == "avoided_tokens") stats.avoided_tokens = n;
  }
  Query avoided(db_, kAvoided);
  while (avoided.step())
    stats.avoided_cost[avoided.text(0)] = from_columns({avoided.i64(1), avoided.i64(2)});
  return stats;
}

StoreStats SqliteQueries::stats(UnixMs now) {
  StoreStats stats;
  {
    Query query(db_, kJobCounts);
    while (query.step()) {
      const auto state = parse_job_state(query.view(0)).value();
      stats.jobs[static_cast<std::size_t>(state)] = query.i64(1);
    }
  }
  for (const LaneHead& head : ready_heads()) {
    Query query(db_, kRunAt, head.job_id);
    if (!query.step()) continue;
    const UnixMs run_at = query.i64(0);
    if (!stats.oldest_due || run_at < *stats.oldest_due) stats.oldest_due = run_at;
  }
  stats.running = running();
  stats.pauses = pauses_in_force(now);
  stats.holds = holds_in_force(now);
  stats.vendors = vendors();
  stats.rates = rates();
  stats.paces = paces();
  stats.breakers = breakers();
  stats.cache = cache_stats();
  stats.dlq_open = single(db_, kOpenDeadLetters);
  stats.locks = single(db_, kLockCount);
  return stats;
}

std::vector<StatsGroup> SqliteQueries::stats_by(std::string_view by, UnixMs since) {
  std::map<std::string, Samples> groups;
  Query query(db_, kEndedSince, first_started_since(db_, since - kLongestAttemptMs), since);
  while (query.step()) {
    Samples& samples = groups[name_of(lane(query.i64(0)), by)];
    ++samples.attempts;
    if (!query.flag(1)) ++samples.errors;
    if (query.flag(1) && !query.null(2)) samples.latencies.push_back(query.i64(2));
    if (!query.flag(5)) continue;
    Query wanted(db_, kWantedAt, query.i64(3));
    if (wanted.step()) {
      samples.waits.push_back(std::max<DurationMs>(query.i64(4) - wanted.i64(0), 0));
    }
  }
  std::vector<StatsGroup> result;
  for (auto& [name, samples] : groups)
    result.push_back(summarize(name, samples));
  return result;
}

DbInfo SqliteQueries::info() {
  DbInfo info;
  info.path = db_.path();
  info.sqlite_version = sqlite3_libversion();
  info.schema_version = single(db_, "PRAGMA user_version");
  info.page_size = single(db_, "PRAGMA page_size");
  info.page_count = single(db_, "PRAGMA page_count");
  info.free_pages = single(db_, "PRAGMA freelist_count");
  struct stat wal {};
  if (stat((db_.path() + "-wal").c_str(), &wal) == 0) info.wal_bytes = wal.st_size;
  Query query(db_, kCreatedAt);
  if (query.step()) info.created_at = query.i64(0);
  return info;
}

}  // namespace aiq
