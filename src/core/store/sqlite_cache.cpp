// cache_entries: what is stored, served, removed; and who waits for an entry.

#include <algorithm>

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kTouchEntry =
    "UPDATE cache_entries SET hits = hits + 1, last_used_at = ?2 WHERE cache_key = ?1";
constexpr const char* kCompleteFromCache =
    "UPDATE jobs SET state = 'completed', wait = NULL, live = 0, finished_at = ?2, "
    "result_id = ?3, result_source = 'cache', stale = ?4, truncated = ?5, error_class = NULL, "
    "error_code = NULL, error_message = NULL, error_status = NULL "
    "WHERE job_id = ?1 AND state IN ('queued', 'retrying')";
constexpr const char* kEntryBytes =
    "SELECT bytes, result_id FROM cache_entries WHERE cache_key = ?1";
constexpr const char* kJobOfEntry =
    "SELECT cache_key, cache_owner, lane_id, soft_ttl, hard_ttl FROM jobs "
    "WHERE job_id = ?1 AND cache_store = 1 AND hard_ttl > 0";
constexpr const char* kPutEntry =
    "INSERT INTO cache_entries (cache_key, cache_owner, lane_id, job_id, result_id, truncated, "
    "created_at, soft_until, hard_until, last_used_at, bytes, tokens, input, cache_read, "
    "cache_write_5m, cache_write_1h, output, price_vendor) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?7, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) "
    "ON CONFLICT (cache_key) DO UPDATE SET cache_owner = excluded.cache_owner, "
    "lane_id = excluded.lane_id, job_id = excluded.job_id, result_id = excluded.result_id, "
    "truncated = excluded.truncated, created_at = excluded.created_at, "
    "soft_until = excluded.soft_until, hard_until = excluded.hard_until, "
    "last_used_at = excluded.last_used_at, hits = 0, bytes = excluded.bytes, "
    "tokens = excluded.tokens, input = excluded.input, cache_read = excluded.cache_read, "
    "cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h, "
    "output = excluded.output, price_vendor = excluded.price_vendor";
constexpr const char* kEntryUse =
    "SELECT lane_id, price_vendor, input, cache_read, cache_write_5m, cache_write_1h, output "
    "FROM cache_entries WHERE cache_key = ?1";
constexpr const char* kAvoid =
    "INSERT INTO cache_avoided (currency, whole, pico) VALUES (?1, ?2, ?3) "
    "ON CONFLICT (currency) DO UPDATE SET "
    "whole = whole + excluded.whole + (pico + excluded.pico) / 1000000000000, "
    "pico = (pico + excluded.pico) % 1000000000000";
constexpr const char* kRemoveEntry =
    "DELETE FROM cache_entries WHERE cache_key = ?1 RETURNING result_id";
constexpr const char* kShareResult =
    "INSERT INTO result_shares (result_id, job_id) VALUES (?1, ?2)";

constexpr const char* kServable =
    "SELECT job_id FROM jobs INDEXED BY jobs_serve WHERE wait = 'serve' ORDER BY job_id LIMIT ?1";
constexpr const char* kFollower =
    "SELECT state, cache_key, cache_read, cache_max_age, created_at, kind FROM jobs "
    "WHERE job_id = ?1";
constexpr const char* kFollowerReady =
    "UPDATE jobs SET wait = 'ready' WHERE job_id = ?1 AND wait = 'serve'";

// A tenant is also who paid for its group. Whether an entry matches is a column and no condition:
// a slice is so many entries, and not so many that match.
#define AIQ_MATCHING(range)                                                                   \
  "SELECT e.cache_key, e.bytes, (?1 IS NULL OR l.model = ?1) "                                \
  "AND (?2 IS NULL OR l.tenant = ?2 OR e.cache_owner = 'tenant:' || ?2) "                     \
  "AND (?3 IS NULL OR EXISTS (SELECT 1 FROM job_labels b WHERE b.key = ?3 AND b.value = ?4 "  \
  "AND b.job_id = e.job_id)) AND (?5 IS NULL OR e.created_at < ?5) "                          \
  "FROM cache_entries e CROSS JOIN lanes l ON l.lane_id = e.lane_id WHERE e.cache_key " range \
  " ORDER BY e.cache_key LIMIT ?7"
constexpr const char* kMatching = AIQ_MATCHING("> ?6");
constexpr const char* kMatchingKey = AIQ_MATCHING("= ?6");
constexpr const char* kExpired =
    "SELECT cache_key, bytes FROM cache_entries WHERE hard_until <= ?1 ORDER BY hard_until "
    "LIMIT ?2";
constexpr const char* kLeastUsed =
    "SELECT cache_key, bytes FROM cache_entries ORDER BY last_used_at LIMIT ?1";
constexpr const char* kTotalBytes = "SELECT n FROM cache_counters WHERE name = 'bytes'";

struct Removable {
  KeyBlob key;
  std::int64_t bytes = 0;
};

std::vector<Removable> collect(Query& query) {
  std::vector<Removable> found;
  while (query.step())
    found.push_back({query.key(0), query.i64(1)});
  return found;
}

}  // namespace

void SqliteStore::count_hit(const KeyBlob& cache_key, const CacheHit& hit, bool stale, UnixMs now) {
  ++(stale ? pending_.stale_hits : pending_.hits);
  pending_.avoided_tokens += hit.tokens;
  run(db_, kTouchEntry, cache_key, now);
  if (hit.tokens > 0) count_avoided(cache_key, now);
}

// The whole of it has a price in one currency, or it is not counted.
void SqliteStore::count_avoided(const KeyBlob& cache_key, UnixMs now) {
  LaneId lane_id = 0;
  std::string vendor;
  Usage usage;
  {
    Query query(db_, kEntryUse, cache_key);
    AIQ_CHECK(query.step());
    lane_id = query.i64(0);
    vendor = query.text(1);
    for (int i = 0; i < kMeterCount; ++i)
      usage[static_cast<Meter>(i)] = query.i64(2 + i);
  }
  if (vendor.empty()) return;
  Int128 sum = 0;
  std::string currency;
  for (int i = 0; i < kMeterCount; ++i) {
    const auto meter = static_cast<Meter>(i);
    if (usage[meter] == 0) continue;
    const auto price = prices().price_at(vendor, queries_.lane(lane_id).model,
                                         std::string(to_string(meter)), now, usage.prompt());
    if (!price || (!currency.empty() && currency != price->currency)) return;
    currency = price->currency;
    sum += static_cast<Int128>(usage[meter]) * price->unit_pico;
  }
  if (currency.empty()) return;
  const MoneyColumns columns = to_columns(sum);
  run(db_, kAvoid, currency, columns.whole, columns.pico);
}

void SqliteStore::complete_from_cache(JobId job_id, JobState from, const KeyBlob& cache_key,
                                      const CacheHit& hit, bool stale, UnixMs now) {
  AIQ_CHECK(run(db_, kCompleteFromCache, job_id, now, hit.result_id, stale, hit.truncated) == 1);
  share_result(hit.result_id, job_id);
  count_hit(cache_key, hit, stale, now);
  note_change(job_id, from, JobState::completed, now, "cache");
}

void SqliteStore::share_result(std::int64_t result_id, JobId job_id) {
  run(db_, kShareResult, result_id, job_id);
}

bool SqliteStore::store_entry(const AttemptClose& close, std::int64_t result_id) {
  KeyBlob key;
  std::string owner;
  LaneId lane_id = 0;
  UnixMs soft_until = 0;
  UnixMs hard_until = 0;
  {
    Query query(db_, kJobOfEntry, close.job_id);
    if (!query.step()) return false;
    key = query.key(0);
    owner = query.text(1);
    lane_id = query.i64(2);
    hard_until = close.now + query.i64(4);
    soft_until = std::min(close.now + query.i64(3), hard_until);
  }
  const auto bytes = static_cast<std::int64_t>(close.result.body.size());
  Usage usage;
  if (close.result.usage_state == UsageState::ok) usage = close.result.usage;
  const std::int64_t tokens = usage.prompt() + usage[Meter::output];
  std::optional<std::int64_t> replaced;
  if (Query query(db_, kEntryBytes, key); query.step()) {
    pending_.bytes -= query.i64(0);
    --pending_.entries;
    replaced = query.i64(1);
  }
  run(db_, kPutEntry, key, owner, lane_id, close.job_id, result_id, close.result.truncated,
      close.now, soft_until, hard_until, bytes, tokens, usage[Meter::input],
      usage[Meter::cache_read], usage[Meter::cache_write_5m], usage[Meter::cache_write_1h],
      usage[Meter::output], close.price_vendor);
  pending_.bytes += bytes;
  ++pending_.entries;
  if (replaced) drop_unneeded_result(*replaced, key);
  return true;
}

void SqliteStore::remove_entry(const KeyBlob& cache_key, std::int64_t bytes) {
  std::int64_t result_id = 0;
  {
    Query query(db_, kRemoveEntry, cache_key);
    AIQ_CHECK(query.step());
    result_id = query.i64(0);
    AIQ_CHECK(!query.step());
  }
  drop_unneeded_result(result_id, cache_key);
  pending_.bytes -= bytes;
  --pending_.entries;
}

int SqliteStore::serve_followers(UnixMs now, int limit) {
  std::vector<JobId> ids;
  {
    Query query(db_, kServable, limit);
    while (query.step())
      ids.push_back(query.i64(0));
  }
  for (const JobId id : ids) {
    if (!serve_follower(id, now)) run(db_, kFollowerReady, id);
  }
  return static_cast<int>(ids.size());
}

bool SqliteStore::serve_follower(JobId job_id, UnixMs now) {
  JobState state = JobState::queued;
  KeyBlob key;
  std::optional<DurationMs> max_age;
  UnixMs created_at = 0;
  bool refresh = false;
  {
    Query query(db_, kFollower, job_id);
    AIQ_CHECK(query.step());
    refresh = parse_job_kind(query.view(5)) == JobKind::refresh;
    // Without reading it wants an answer of its own, only not at the same time.
    if (!refresh && !query.flag(2)) return false;
    state = parse_job_state(query.view(0)).value();
    key = query.key(1);
    max_age = query.opt_i64(3);
    created_at = query.i64(4);
  }
  const auto hit = queries_.find_entry(key);
  if (!hit || hit->hard_until <= now) return false;
  const bool soft_expired = hit->soft_until <= now;
  // An answer that came after the question is as new as one can be, whatever its soft TTL and the
  // asked-for age. A refresh is there for the next question: it wants one that is still fresh.
  const bool asked_before = hit->created_at >= created_at;
  if (refresh && (soft_expired || !asked_before)) return false;
  if (!asked_before && (soft_expired || (max_age && now - hit->created_at > *max_age)))
    return false;
  complete_from_cache(job_id, state, key, *hit, soft_expired, now);
  return true;
}

CacheRemoval SqliteStore::invalidate_cache(const CacheFilter& filter, const std::string& after,
                                           int limit) {
  const bool any = !filter.cache_key.empty() || !filter.model.empty() || !filter.tenant.empty() ||
                   !filter.label_key.empty() || filter.created_before;
  if (!any && !filter.all) return {};
  const bool one = !filter.cache_key.empty();
  KeyBlob from{};
  if (one || !after.empty()) {
    const auto key = parse_key(one ? filter.cache_key : after);
    if (!key) return {};
    from = *key;
  }
  std::vector<Removable> found;
  CacheRemoval out;
  int seen = 0;
  {
    Query query(db_, one ? kMatchingKey : kMatching, TextOrNull{filter.model},
                TextOrNull{filter.tenant}, TextOrNull{filter.label_key}, filter.label_value,
                filter.created_before, from, limit);
    for (; query.step(); ++seen) {
      out.next = query.hex(0);
      if (query.flag(2)) found.push_back({query.key(0), query.i64(1)});
    }
  }
  for (const Removable& entry : found)
    remove_entry(entry.key, entry.bytes);
  out.removed = static_cast<int>(found.size());
  if (one || seen < limit) out.next.clear();
  return out;
}

int SqliteStore::evict_cache(UnixMs now, std::int64_t max_bytes, int limit) {
  std::vector<Removable> found;
  {
    Query query(db_, kExpired, now, limit);
    found = collect(query);
  }
  for (const Removable& entry : found)
    remove_entry(entry.key, entry.bytes);
  int removed = static_cast<int>(found.size());
  if (removed >= limit || max_bytes == 0) return removed;

  std::int64_t total = pending_.bytes;
  {
    Query query(db_, kTotalBytes);
    AIQ_CHECK(query.step());
    total += query.i64(0);
  }
  if (total <= max_bytes) return removed;
  {
    Query query(db_, kLeastUsed, limit - removed);
    found = collect(query);
  }
  for (const Removable& entry : found) {
    if (total <= max_bytes) break;
    remove_entry(entry.key, entry.bytes);
    total -= entry.bytes;
    ++removed;
  }
  return removed;
}

}  // namespace aiq
