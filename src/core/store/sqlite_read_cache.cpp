// Reading the cache's entries.

#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

#define AIQ_ENTRY_COLUMNS                                                                      \
  "SELECT e.cache_key, e.cache_owner, l.vendor, l.model, e.job_id, e.result_id, e.truncated, " \
  "e.created_at, e.soft_until, e.hard_until, e.last_used_at, e.hits, e.bytes, e.tokens "       \
  "FROM cache_entries e CROSS JOIN lanes l ON l.lane_id = e.lane_id "

constexpr const char* kEntry = AIQ_ENTRY_COLUMNS "WHERE e.cache_key = ?1";
constexpr const char* kList =
    AIQ_ENTRY_COLUMNS "ORDER BY e.last_used_at DESC, e.cache_key LIMIT ?2 OFFSET ?1";
constexpr const char* kQuestion =
    "SELECT j.cache_key, j.cache_owner, r.scope, r.locale, r.safety FROM jobs j "
    "JOIN requests r ON r.job_id = j.job_id WHERE j.job_id = ?1";

CacheEntry entry_row(const Query& query) {
  CacheEntry entry;
  entry.cache_key = query.hex(0);
  entry.owner = query.text(1);
  entry.vendor = query.text(2);
  entry.model = query.text(3);
  entry.job_id = query.i64(4);
  entry.result_id = query.i64(5);
  entry.truncated = query.flag(6);
  entry.created_at = query.i64(7);
  entry.soft_until = query.i64(8);
  entry.hard_until = query.i64(9);
  entry.last_used_at = query.i64(10);
  entry.hits = query.i64(11);
  entry.bytes = query.i64(12);
  entry.tokens = query.i64(13);
  return entry;
}

}  // namespace

std::optional<CacheEntry> SqliteQueries::cache_entry(const std::string& cache_key) {
  const auto key = parse_key(cache_key);
  if (!key) return std::nullopt;
  Query query(db_, kEntry, *key);
  if (!query.step()) return std::nullopt;
  return entry_row(query);
}

std::optional<CacheQuestion> SqliteQueries::cache_question(JobId id) {
  Query query(db_, kQuestion, id);
  if (!query.step()) return std::nullopt;
  return CacheQuestion{query.hex(0), query.text(1), query.text(2), query.text(3), query.text(4)};
}

std::vector<CacheEntry> SqliteQueries::list_cache(const Page& page) {
  std::vector<CacheEntry> entries;
  Query query(db_, kList, page.after, page.limit);
  while (query.step())
    entries.push_back(entry_row(query));
  return entries;
}

}  // namespace aiq
