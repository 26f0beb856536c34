#pragma once
// The schema of a file: made, brought up to date, or refused. The version stands in user_version;
// a new file gets schema.sql, an older one reaches the same by numbered steps (migrations/N.sql).

#include <vector>

#include "core/store/sqlite_db.h"
#include "core/store/store.h"

namespace aiq {

struct MigrationStep {
  std::int64_t to = 0;        // version after the step
  const char* sql = nullptr;  // statements; run in one transaction with the other steps
};

// Steps of this program, without gaps, the last one to kSchemaVersion.
[[nodiscard]] const std::vector<MigrationStep>& migration_steps();

// What a file says it is.
enum class SchemaState {
  absent,  // empty, or its creation did not finish
  current,
  older,  // `migrate` would bring it up to date
};
// Throws StoreError: version for a newer one, corrupt for a database of another program.
[[nodiscard]] SchemaState schema_state(SqliteDb& db, std::int64_t current = kSchemaVersion);

// Makes the tables in an empty database, in one transaction.
void create_schema(SqliteDb& db, UnixMs now, DurationMs age_step_ms);

// Runs the steps that are due, all or none. Before them, with `keep_copy`, copies the file to
// PATH.before-vN (N: the last step's version); an older copy of that name is replaced, so that a
// migration that fails at every start fills no disk.
void migrate_schema(SqliteDb& db, const std::vector<MigrationStep>& steps, bool keep_copy = true);

// Where migrate_schema() puts the copy.
[[nodiscard]] std::string migration_backup_path(const std::string& db_path, std::int64_t to);

}  // namespace aiq
