// check(): faults of the file and of what the tables say about each other.

#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

constexpr const char* kIntegrity = "PRAGMA integrity_check(100)";
constexpr const char* kForeignKeys = "PRAGMA foreign_key_check";

// Each gives a row per fault: one sentence.
constexpr const char* kSentences[] = {
    // Counts that are kept.
    "SELECT 'the count of ' || c.state || ' jobs says ' || c.n || ', there are ' || "
    "coalesce(j.n, 0) FROM job_counts c LEFT JOIN (SELECT state, count(*) AS n FROM jobs "
    "GROUP BY state) j ON j.state = c.state WHERE c.n <> coalesce(j.n, 0)",
    "SELECT 'the cache counts ' || c.n || ' entries, there are ' || e.n FROM cache_counters c, "
    "(SELECT count(*) AS n FROM cache_entries) e WHERE c.name = 'entries' AND c.n <> e.n",
    "SELECT 'the cache counts ' || c.n || ' bytes, there are ' || e.n FROM cache_counters c, "
    "(SELECT coalesce(sum(bytes), 0) AS n FROM cache_entries) e "
    "WHERE c.name = 'bytes' AND c.n <> e.n",
    // Pointers that no foreign key holds.
    "SELECT 'job ' || job_id || ' is completed, its result is missing' FROM jobs j "
    "WHERE state = 'completed' AND NOT EXISTS "
    "(SELECT 1 FROM results r WHERE r.result_id = j.result_id) LIMIT 100",
    "SELECT 'job ' || job_id || ' has no request' FROM jobs j WHERE NOT EXISTS "
    "(SELECT 1 FROM requests r WHERE r.job_id = j.job_id) LIMIT 100",
    "SELECT 'cache entry ' || lower(hex(cache_key)) || ' has no result' FROM cache_entries e "
    "WHERE NOT EXISTS (SELECT 1 FROM results r WHERE r.result_id = e.result_id) LIMIT 100",
    "SELECT 'attempt ' || attempt_id || ' kept a late answer that is missing' FROM attempts a "
    "WHERE late_result_id IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM results r WHERE r.result_id = a.late_result_id) LIMIT 100",
    "SELECT 'job ' || job_id || ' is processing, its attempt is not open' FROM jobs j "
    "WHERE state = 'processing' AND NOT EXISTS (SELECT 1 FROM attempts a "
    "WHERE a.attempt_id = j.open_attempt_id AND a.job_id = j.job_id AND a.ended_at IS NULL) "
    "LIMIT 100",
    "SELECT 'attempt ' || attempt_id || ' is open, job ' || job_id || ' does not run it' "
    "FROM attempts a WHERE ended_at IS NULL AND NOT EXISTS (SELECT 1 FROM jobs j "
    "WHERE j.job_id = a.job_id AND j.open_attempt_id = a.attempt_id) LIMIT 100",
    "SELECT 'job ' || job_id || ' is dead_lettered, it has no open dead letter' FROM jobs j "
    "WHERE state = 'dead_lettered' AND NOT EXISTS (SELECT 1 FROM dead_letters d "
    "WHERE d.job_id = j.job_id AND d.generation = j.generation AND d.state = 'open') LIMIT 100",
    "SELECT 'a label of job ' || job_id || ' is left, the job is not' FROM job_labels b "
    "WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.job_id = b.job_id) "
    "AND NOT EXISTS (SELECT 1 FROM usage_events u WHERE u.job_id = b.job_id) LIMIT 100",
    // Answers and who needs them.
    "SELECT 'job ' || job_id || ' was answered from the cache, its share is missing' FROM jobs j "
    "WHERE result_source = 'cache' AND NOT EXISTS (SELECT 1 FROM result_shares s "
    "WHERE s.result_id = j.result_id AND s.job_id = j.job_id) LIMIT 100",
    "SELECT 'result ' || result_id || ' is shared by job ' || job_id || ', which has no part in "
    "it' "
    "FROM result_shares s WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.job_id = s.job_id "
    "AND j.result_id = s.result_id) LIMIT 100",
    "SELECT 'result ' || result_id || ' is needed by nothing' FROM results r WHERE NOT EXISTS "
    "(SELECT 1 FROM jobs j WHERE j.job_id = r.job_id AND j.result_id = r.result_id) AND NOT EXISTS "
    "(SELECT 1 FROM result_shares s WHERE s.result_id = r.result_id) AND NOT EXISTS "
    "(SELECT 1 FROM attempts a WHERE a.job_id = r.job_id AND a.late_result_id = r.result_id) "
    "AND result_id NOT IN (SELECT result_id FROM cache_entries) LIMIT 100",
    // Batches.
    "SELECT 'line ' || line || ' of batch ' || batch_id || ' points at job ' || job_id || "
    "', which is missing' FROM batch_lines l WHERE job_id IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM jobs j WHERE j.job_id = l.job_id) LIMIT 100",
    "SELECT 'line ' || line || ' of batch ' || batch_id || ' has no submission' "
    "FROM batch_lines l WHERE submission_id IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM submissions s WHERE s.submission_id = l.submission_id) LIMIT 100",
    "SELECT 'batch ' || batch_id || ' counts ' || lines || ' lines, their outcomes are ' || "
    "(created + existing + cached + rejected) FROM batches WHERE state = 'loaded' "
    "AND lines <> created + existing + cached + rejected LIMIT 100",
};

}  // namespace

std::vector<std::string> SqliteQueries::check() {
  std::vector<std::string> faults;
  {
    Query query(db_, kIntegrity);
    while (query.step()) {
      if (query.view(0) != "ok") faults.push_back("integrity: " + query.text(0));
    }
  }
  {
    Query query(db_, kForeignKeys);
    while (query.step() && faults.size() < 200) {
      faults.push_back("a row of " + query.text(0) + " points at a row of " + query.text(2) +
                       " that is missing");
    }
  }
  for (const char* sql : kSentences) {
    Query query(db_, sql);
    while (query.step())
      faults.push_back(query.text(0));
  }
  return faults;
}

}  // namespace aiq
