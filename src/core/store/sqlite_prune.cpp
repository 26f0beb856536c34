// prune(): removes what is over.

#include "core/store/sqlite_prune.h"

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/store/sqlite_labels.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

// What a job used is grouped by its labels for as long as there is a ledger.
constexpr const char* kLabels =
    "SELECT labels FROM requests WHERE job_id = ?1 "
    "AND NOT EXISTS (SELECT 1 FROM usage_events WHERE job_id = ?1)";
constexpr const char* kDropLabel =
    "DELETE FROM job_labels WHERE key = ?1 AND value = ?2 AND job_id = ?3";
constexpr const char* kLateResults =
    "SELECT late_result_id FROM attempts WHERE job_id = ?1 AND late_result_id IS NOT NULL";
constexpr const char* kDropResult = "DELETE FROM results WHERE result_id = ?1";
constexpr const char* kBatchesOf =
    "SELECT DISTINCT batch_id FROM submissions WHERE job_id = ?1 AND batch_id IS NOT NULL";
constexpr const char* kDropLines = "DELETE FROM batch_lines WHERE batch_id = ?1 AND job_id = ?2";
constexpr const char* kDropShare = "DELETE FROM result_shares WHERE result_id = ?1 AND job_id = ?2";
constexpr const char* kDropAttempts = "DELETE FROM attempts WHERE job_id = ?1";
constexpr const char* kDropOfJob[] = {
    "DELETE FROM submissions WHERE job_id = ?1",
    "DELETE FROM request_edits WHERE job_id = ?1",
    "DELETE FROM dead_letters WHERE job_id = ?1",
    "DELETE FROM requests WHERE job_id = ?1",
};
constexpr const char* kDropJob = "DELETE FROM jobs WHERE job_id = ?1 AND live = 0";
constexpr const char* kDropUnneeded =
    "DELETE FROM results WHERE result_id = ?1 "
    "AND NOT EXISTS (SELECT 1 FROM result_shares s WHERE s.result_id = ?1) "
    "AND NOT EXISTS (SELECT 1 FROM cache_entries e WHERE e.cache_key = ?2 AND e.result_id = ?1) "
    "AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.job_id = results.job_id AND j.result_id = ?1)";
constexpr const char* kDropAttempt = "DELETE FROM attempts WHERE attempt_id = ?1";
constexpr const char* kDropErrors =
    "DELETE FROM batch_errors WHERE batch_id = ?1 AND line IN "
    "(SELECT line FROM batch_errors WHERE batch_id = ?1 LIMIT ?2)";
constexpr const char* kDropBatch = "DELETE FROM batches WHERE batch_id = ?1";
constexpr const char* kDropKey = "DELETE FROM client_keys WHERE tenant = ?1 AND client_key = ?2";
constexpr const char* kDropEvent = "DELETE FROM outbox WHERE event_id = ?1";

// Takes the rows of a slice one by one until its time is over. `take` gives false when the row is
// not done: the next slice begins with it.
template <class Row, class Id, class F>
PruneCursor take_rows(const Prunable<Row>& found, const PruneCursor& from, Id id_of, F take) {
  const MonoMs until = system_clock().mono_ms() + kPruneSliceMs;
  PruneCursor next = from;
  for (const Row& row : found.rows) {
    if (!take(row)) return next;
    next.after = id_of(row);
    if (system_clock().mono_ms() >= until) return next;
  }
  if (found.end) return next_phase(from);
  next.after = found.last;
  return next;
}

constexpr auto kItself = [](std::int64_t id) { return id; };

}  // namespace

bool SqliteStore::drop_unneeded_result(std::int64_t result_id, const KeyBlob& cache_key) {
  return run(db_, kDropUnneeded, result_id, cache_key) == 1;
}

void SqliteStore::drop_job(const PrunableJob& job, PruneCounts& counts) {
  Labels labels;
  if (Query query(db_, kLabels, job.job_id); query.step()) labels = parse_labels(query.view(0));
  for (const auto& [key, value] : labels)
    run(db_, kDropLabel, key, value, job.job_id);
  {
    Query query(db_, kLateResults, job.job_id);
    while (query.step())
      counts.results += run(db_, kDropResult, query.i64(0));
  }
  {
    Query query(db_, kBatchesOf, job.job_id);
    while (query.step())
      run(db_, kDropLines, query.i64(0), job.job_id);
  }
  counts.attempts += run(db_, kDropAttempts, job.job_id);
  for (const char* sql : kDropOfJob)
    run(db_, sql, job.job_id);
  if (job.shares && job.result_id) run(db_, kDropShare, *job.result_id, job.job_id);
  AIQ_CHECK(run(db_, kDropJob, job.job_id) == 1);
  if (job.result_id && drop_unneeded_result(*job.result_id, job.cache_key)) ++counts.results;
  count(job.state, -1);
  ++counts.jobs;
}

bool SqliteStore::drop_batch(std::int64_t batch_id, PruneCounts& counts) {
  if (run(db_, kDropErrors, batch_id, kPruneRows) == kPruneRows) return false;
  run(db_, kDropBatch, batch_id);
  ++counts.batches;
  return true;
}

PruneSlice SqliteStore::prune(const PruneRules& rules, const PruneCursor& from) {
  using Phase = PruneCursor::Phase;
  PruneSlice slice;
  PruneCounts& counts = slice.counts;
  slice.next = from;
  switch (from.phase) {
    case Phase::jobs:
      slice.next = take_rows(
          prunable_jobs(db_, rules, from.after), from,
          [](const PrunableJob& job) { return job.job_id; },
          [&](const PrunableJob& job) {
            drop_job(job, counts);
            return true;
          });
      break;
    case Phase::attempts:
      slice.next = take_rows(
          prunable_attempts(db_, rules, from.after), from,
          [](const PrunableAttempt& attempt) { return attempt.attempt_id; },
          [&](const PrunableAttempt& attempt) {
            counts.attempts += run(db_, kDropAttempt, attempt.attempt_id);
            if (attempt.late_result_id)
              counts.results += run(db_, kDropResult, *attempt.late_result_id);
            return true;
          });
      break;
    case Phase::batches:
      slice.next = take_rows(prunable_batches(db_, rules, from.after), from, kItself,
                             [&](std::int64_t id) { return drop_batch(id, counts); });
      break;
    case Phase::client_keys: {
      const auto found = prunable_keys(db_, rules, slice.next);
      for (const PrunableKey& key : found.rows)
        counts.client_keys += run(db_, kDropKey, key.tenant, key.client_key);
      if (found.end) slice.next = next_phase(from);
      break;
    }
    case Phase::outbox:
      slice.next =
          take_rows(prunable_events(db_, rules, from.after), from, kItself, [&](std::int64_t id) {
            counts.events += run(db_, kDropEvent, id);
            return true;
          });
      break;
    case Phase::done:
      break;
  }
  return slice;
}

}  // namespace aiq
