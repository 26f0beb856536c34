// Which rows may go: walks in the order of ids, so that no index has to be kept for it.

#include <algorithm>
#include <limits>

#include "core/store/sqlite_prune.h"

namespace aiq {
namespace {

// ?3, ?4, ?5: completed, failed, cancelled. A comparison with NULL is not true.
#define AIQ_PRUNABLE                                                                       \
  "(((j.state = 'completed' AND j.finished_at < ?3) OR (j.state = 'failed' AND "           \
  "j.finished_at < ?4) OR (j.state = 'cancelled' AND j.finished_at < ?5)) AND NOT EXISTS " \
  "(SELECT 1 FROM dead_letters d WHERE d.job_id = j.job_id AND d.state = 'open'))"

constexpr const char* kJobs =
    "SELECT j.job_id, j.created_at, coalesce(" AIQ_PRUNABLE
    ", 0), j.state, j.result_id, j.result_source, j.cache_key FROM jobs j "
    "WHERE j.job_id > ?1 ORDER BY j.job_id LIMIT ?2";
constexpr const char* kAttempts =
    "SELECT a.attempt_id, a.started_at, coalesce(a.ended_at IS NOT NULL AND j.live = 0 "
    "AND j.state <> 'dead_lettered' AND j.finished_at < ?6 AND NOT EXISTS (SELECT 1 FROM "
    "dead_letters d WHERE d.job_id = j.job_id AND d.state = 'open') "
    "AND NOT coalesce(" AIQ_PRUNABLE
    ", 0), 0), a.late_result_id FROM attempts a CROSS JOIN jobs j ON j.job_id = a.job_id "
    "WHERE a.attempt_id > ?1 ORDER BY a.attempt_id LIMIT ?2";
// One whose lines were all refused has none to go with.
constexpr const char* kBatches =
    "SELECT b.batch_id, coalesce(b.state = 'loaded' AND (b.created + b.existing + b.cached > 0 "
    "OR b.loaded_at < ?3) AND NOT EXISTS (SELECT 1 FROM batch_lines l WHERE "
    "l.batch_id = b.batch_id), 0) FROM batches b WHERE b.batch_id > ?1 "
    "ORDER BY b.batch_id LIMIT ?2";
constexpr const char* kEvents =
    "SELECT event_id, at, at < ?3 FROM outbox WHERE event_id > ?1 ORDER BY event_id LIMIT ?2";
// As long as its job may still run, a key keeps the same request from becoming a second one.
constexpr const char* kKeys =
    "SELECT k.tenant, k.client_key, k.created_at < ?4 AND (j.job_id IS NULL OR (j.live = 0 "
    "AND j.state <> 'dead_lettered' AND j.finished_at < ?4)) FROM client_keys k "
    "LEFT JOIN jobs j ON j.job_id = k.job_id WHERE (k.tenant, k.client_key) > (?1, ?2) "
    "ORDER BY k.tenant, k.client_key LIMIT ?3";

constexpr const char* kCountAttempts =
    "SELECT count(*), count(late_result_id) FROM attempts WHERE job_id = ?1";
// Whether this job is the last of those that need a result, when all that may go have gone.
constexpr const char* kIsLastNeed =
    "SELECT EXISTS (SELECT 1 FROM results WHERE result_id = ?6) "
    "AND NOT EXISTS (SELECT 1 FROM cache_entries WHERE cache_key = ?2 AND result_id = ?6) "
    "AND NOT EXISTS (SELECT 1 FROM result_shares WHERE result_id = ?6 AND job_id > ?1) "
    "AND NOT EXISTS (SELECT 1 FROM (SELECT job_id FROM result_shares WHERE result_id = ?6 "
    "UNION ALL SELECT job_id FROM results WHERE result_id = ?6) n CROSS JOIN jobs j "
    "ON j.job_id = n.job_id WHERE j.result_id = ?6 AND (j.job_id > ?1 "
    "OR NOT coalesce(" AIQ_PRUNABLE ", 0)))";

constexpr UnixMs kNever = std::numeric_limits<UnixMs>::min();

// Nothing that began at this time or later can have ended long enough ago.
UnixMs latest(const PruneRules& rules) {
  return std::max({rules.completed.value_or(kNever), rules.failed.value_or(kNever),
                   rules.cancelled.value_or(kNever)});
}

// Walks one slice: `row` adds what may go and tells when the row began. Times may go back with the
// clock, so one new row ends nothing, a whole slice of them does.
template <class Row, class F>
Prunable<Row> walk(Query& query, std::int64_t after, UnixMs newest, F row) {
  Prunable<Row> found;
  found.last = after;
  int seen = 0;
  bool old = false;
  while (query.step()) {
    ++seen;
    found.last = query.i64(0);
    old = row(found.rows) < newest || old;
  }
  found.end = seen < kPruneRows || !old;
  return found;
}

void count_job(SqliteDb& db, const PruneRules& rules, const PrunableJob& job, PruneCounts& counts) {
  ++counts.jobs;
  {
    Query query(db, kCountAttempts, job.job_id);
    if (query.step()) {
      counts.attempts += query.i64(0);
      counts.results += query.i64(1);
    }
  }
  if (!job.result_id) return;
  Query query(db, kIsLastNeed, job.job_id, job.cache_key, rules.completed, rules.failed,
              rules.cancelled, *job.result_id);
  if (query.step() && query.flag(0)) ++counts.results;
}

template <class Row>
PruneCursor cursor_after(const PruneCursor& from, const Prunable<Row>& found) {
  if (found.end) return next_phase(from);
  PruneCursor next = from;
  next.after = found.last;
  return next;
}

}  // namespace

PruneCounts& PruneCounts::operator+=(const PruneCounts& other) {
  jobs += other.jobs;
  attempts += other.attempts;
  results += other.results;
  batches += other.batches;
  client_keys += other.client_keys;
  events += other.events;
  return *this;
}

Prunable<PrunableJob> prunable_jobs(SqliteDb& db, const PruneRules& rules, std::int64_t after) {
  if (latest(rules) == kNever) return {{}, after, true};
  Query query(db, kJobs, after, kPruneRows, rules.completed, rules.failed, rules.cancelled);
  return walk<PrunableJob>(query, after, latest(rules), [&](std::vector<PrunableJob>& rows) {
    if (query.flag(2)) {
      rows.push_back({query.i64(0), parse_job_state(query.view(3)).value(), query.opt_i64(4),
                      query.view(5) == "cache", query.key(6)});
    }
    return query.i64(1);
  });
}

Prunable<PrunableAttempt> prunable_attempts(SqliteDb& db, const PruneRules& rules,
                                            std::int64_t after) {
  if (!rules.attempts) return {{}, after, true};
  Query query(db, kAttempts, after, kPruneRows, rules.completed, rules.failed, rules.cancelled,
              rules.attempts);
  return walk<PrunableAttempt>(query, after, *rules.attempts,
                               [&](std::vector<PrunableAttempt>& rows) {
                                 if (query.flag(2))
                                   rows.push_back({query.i64(0), query.opt_i64(3)});
                                 return query.i64(1);
                               });
}

Prunable<std::int64_t> prunable_batches(SqliteDb& db, const PruneRules& rules, std::int64_t after) {
  Query query(db, kBatches, after, kPruneRows, rules.failed);
  return walk<std::int64_t>(query, after, 1, [&](std::vector<std::int64_t>& rows) {
    if (query.flag(1)) rows.push_back(query.i64(0));
    return UnixMs{0};
  });
}

Prunable<std::int64_t> prunable_events(SqliteDb& db, const PruneRules& rules, std::int64_t after) {
  if (!rules.outbox) return {{}, after, true};
  Query query(db, kEvents, after, kPruneRows, rules.outbox);
  return walk<std::int64_t>(query, after, *rules.outbox, [&](std::vector<std::int64_t>& rows) {
    if (query.flag(2)) rows.push_back(query.i64(0));
    return query.i64(1);
  });
}

Prunable<PrunableKey> prunable_keys(SqliteDb& db, const PruneRules& rules, PruneCursor& from) {
  Prunable<PrunableKey> found;
  found.end = true;
  if (!rules.client_keys) return found;
  int seen = 0;
  {
    const std::string tenant = from.tenant;
    const std::string client_key = from.client_key;
    Query query(db, kKeys, tenant, client_key, kPruneRows, rules.client_keys);
    while (query.step()) {
      ++seen;
      from.tenant = query.text(0);
      from.client_key = query.text(1);
      if (query.flag(2)) found.rows.push_back({from.tenant, from.client_key});
    }
  }
  found.end = seen < kPruneRows;
  return found;
}

PruneCursor next_phase(const PruneCursor& from) {
  PruneCursor next;
  next.phase = static_cast<PruneCursor::Phase>(static_cast<int>(from.phase) + 1);
  return next;
}

PruneSlice count_prunable(SqliteDb& db, const PruneRules& rules, const PruneCursor& from) {
  using Phase = PruneCursor::Phase;
  PruneSlice slice;
  slice.next = from;
  switch (from.phase) {
    case Phase::jobs: {
      const auto found = prunable_jobs(db, rules, from.after);
      for (const PrunableJob& job : found.rows)
        count_job(db, rules, job, slice.counts);
      slice.next = cursor_after(from, found);
      break;
    }
    case Phase::attempts: {
      const auto found = prunable_attempts(db, rules, from.after);
      for (const PrunableAttempt& attempt : found.rows) {
        ++slice.counts.attempts;
        if (attempt.late_result_id) ++slice.counts.results;
      }
      slice.next = cursor_after(from, found);
      break;
    }
    case Phase::batches: {
      const auto found = prunable_batches(db, rules, from.after);
      slice.counts.batches = static_cast<std::int64_t>(found.rows.size());
      slice.next = cursor_after(from, found);
      break;
    }
    case Phase::client_keys: {
      const auto found = prunable_keys(db, rules, slice.next);
      slice.counts.client_keys = static_cast<std::int64_t>(found.rows.size());
      if (found.end) slice.next = next_phase(from);
      break;
    }
    case Phase::outbox: {
      const auto found = prunable_events(db, rules, from.after);
      slice.counts.events = static_cast<std::int64_t>(found.rows.size());
      slice.next = cursor_after(from, found);
      break;
    }
    case Phase::done:
      break;
  }
  return slice;
}

}  // namespace aiq
