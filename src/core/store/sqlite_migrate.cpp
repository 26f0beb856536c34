#include "core/store/sqlite_migrate.h"

#include "core/base/check.h"
#include "core/model/request.h"
#include "core/store/sqlite_copy.h"
#include "core/store/sqlite_files.h"

namespace aiq {

extern const char* const kSchemaSql;
extern const char* const kMigration2Sql;
extern const char* const kMigration3Sql;

namespace {

constexpr const char* kSetMeta = "INSERT INTO meta (key, value) VALUES (?1, ?2)";

std::int64_t number(SqliteDb& db, const char* sql) {
  Query query(db, sql);
  return query.step() ? query.i64(0) : 0;
}

void set_user_version(SqliteDb& db, std::int64_t version) {
  // A pragma takes no bound value.
  db.exec(("PRAGMA user_version = " + std::to_string(version)).c_str());
}

// Runs `body` in a transaction of its own.
template <class Body>
void in_transaction(SqliteDb& db, Body body) {
  db.exec("BEGIN IMMEDIATE");
  try {
    body();
    db.exec("COMMIT");
  } catch (...) {
    if (db.in_transaction()) sqlite3_exec(db.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

}  // namespace

const std::vector<MigrationStep>& migration_steps() {
  static const std::vector<MigrationStep> steps = {{2, kMigration2Sql}, {3, kMigration3Sql}};
  AIQ_CHECK(steps.back().to == kSchemaVersion);
  return steps;
}

SchemaState schema_state(SqliteDb& db, std::int64_t current) {
  const std::int64_t version = number(db, "PRAGMA user_version");
  if (version == 0 && number(db, "SELECT count(*) FROM sqlite_schema") == 0) {
    return SchemaState::absent;
  }
  if (number(db, "PRAGMA application_id") != std::int64_t{kApplicationId}) {
    throw StoreError(StoreError::Kind::corrupt,
                     db.path() + ": this is a database of another program");
  }
  if (version > current) {
    throw StoreError(StoreError::Kind::version,
                     db.path() + ": its schema has version " + std::to_string(version) +
                         ", this program knows " + std::to_string(current) +
                         "; use the newer program that wrote it");
  }
  return version < current ? SchemaState::older : SchemaState::current;
}

void create_schema(SqliteDb& db, UnixMs now, DurationMs age_step_ms) {
  // Before the first table: it can't change later without rewriting the file.
  db.exec("PRAGMA page_size = 8192");
  // Before the log, so that the file itself says from its first page on whose it is.
  db.exec(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str());
  use_wal(db);
  in_transaction(db, [&] {
    db.exec(kSchemaSql);
    run(db, kSetMeta, "created_at", std::to_string(now));
    run(db, kSetMeta, "key_version", kKeyVersion);
    run(db, kSetMeta, "age_step_ms", std::to_string(age_step_ms));
    set_user_version(db, kSchemaVersion);
  });
}

void migrate_schema(SqliteDb& db, const std::vector<MigrationStep>& steps, bool keep_copy) {
  AIQ_CHECK(!steps.empty());
  const std::int64_t version = number(db, "PRAGMA user_version");
  if (keep_copy && !db.in_memory()) {
    const std::string copy = migration_backup_path(db.path(), steps.back().to);
    const Fd held = copy_database(db, copy + ".part");
    (void)put_in_place(copy + ".part", copy, /*replace=*/true);
  }
  in_transaction(db, [&] {
    std::int64_t at = version;
    for (const MigrationStep& step : steps) {
      if (step.to <= at) continue;
      AIQ_CHECK(step.to == at + 1);
      db.exec(step.sql);
      at = step.to;
    }
    set_user_version(db, at);
  });
}

std::string migration_backup_path(const std::string& db_path, std::int64_t to) {
  return db_path + ".before-v" + std::to_string(to);
}

}  // namespace aiq
