#pragma once
// Finding what may be removed, for the removal itself and for counting it beforehand.

#include <optional>
#include <string>
#include <vector>

#include "core/model/job.h"
#include "core/store/prune.h"
#include "core/store/sqlite_db.h"

namespace aiq {

inline constexpr int kPruneRows = 1'000;         // looked at in one slice
inline constexpr DurationMs kPruneSliceMs = 25;  // after which a slice takes no further row

// Rows of one slice that may go. `last`: the id last looked at; `end`: no later row is old enough.
template <class Row>
struct Prunable {
  std::vector<Row> rows;
  std::int64_t last = 0;
  bool end = false;
};

struct PrunableJob {
  JobId job_id = 0;
  JobState state = JobState::completed;
  std::optional<std::int64_t> result_id;
  bool shares = false;  // the result is another job's
  KeyBlob cache_key;
};
struct PrunableAttempt {
  std::int64_t attempt_id = 0;
  std::optional<std::int64_t> late_result_id;
};
struct PrunableKey {
  std::string tenant, client_key;
};

[[nodiscard]] Prunable<PrunableJob> prunable_jobs(SqliteDb& db, const PruneRules& rules,
                                                  std::int64_t after);
// Not those of jobs that may go themselves.
[[nodiscard]] Prunable<PrunableAttempt> prunable_attempts(SqliteDb& db, const PruneRules& rules,
                                                          std::int64_t after);
// Without a line that is left.
[[nodiscard]] Prunable<std::int64_t> prunable_batches(SqliteDb& db, const PruneRules& rules,
                                                      std::int64_t after);
[[nodiscard]] Prunable<std::int64_t> prunable_events(SqliteDb& db, const PruneRules& rules,
                                                     std::int64_t after);
// `from` moves on to the last key looked at.
[[nodiscard]] Prunable<PrunableKey> prunable_keys(SqliteDb& db, const PruneRules& rules,
                                                  PruneCursor& from);

// The phase that follows, from its beginning.
[[nodiscard]] PruneCursor next_phase(const PruneCursor& from);

// What Reader::prunable() says.
[[nodiscard]] PruneSlice count_prunable(SqliteDb& db, const PruneRules& rules,
                                        const PruneCursor& from);

}  // namespace aiq
