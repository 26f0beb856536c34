// From version 1: the same schema as a new file, all rows kept, ids not used again.

#include <SQLiteCpp/Database.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/store/keeping.h"
#include "core/store/sqlite_migrate.h"
#include "core/store/sqlite_store.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A file as version 1 left it: a job that was paid for, one answered from the cache, one waiting,
// pauses, and ids that are gone already.
void make_v1(const std::string& path) {
  SQLite::Database db(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  db.exec("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL");
  db.exec(text_of(AIQ_SOURCE_DIR "/tests/store/schema_v1.sql"));
  db.exec(R"sql(
    PRAGMA application_id = 0x61697100; PRAGMA user_version = 1;
    INSERT INTO meta VALUES ('created_at', '1700000000000'), ('key_version', '1'),
      ('age_step_ms', '60000');
    INSERT INTO lanes (tenant, vendor, model) VALUES ('t', 'openai', 'gpt-4o');
    INSERT INTO jobs (lane_id, kind, endpoint, state, live, priority, rank, created_at, run_at,
      finished_at, attempt, max_attempts, idempotency_key, cache_key, cache_owner, cache_read,
      cache_store, coalesce, soft_ttl, hard_ttl, correlation_id, result_id, result_source)
      VALUES (1, 'request', 'chat', 'completed', 0, 0, 1, 1, 1, 2, 1, 5, zeroblob(32),
        zeroblob(32), 'tenant:t', 1, 1, 1, 1, 1, 'c1', 1, 'vendor'),
       (1, 'request', 'chat', 'completed', 0, 0, 1, 1, 1, 2, 0, 5, zeroblob(32),
        zeroblob(32), 'tenant:t', 1, 1, 1, 1, 1, 'c2', 1, 'cache');
    INSERT INTO jobs (lane_id, kind, endpoint, state, wait, live, priority, rank, created_at,
      run_at, max_attempts, idempotency_key, cache_key, cache_owner, cache_read, cache_store,
      coalesce, soft_ttl, hard_ttl, correlation_id)
      VALUES (1, 'request', 'chat', 'queued', 'ready', 1, 0, 1, 1, 1, 5, zeroblob(32),
        zeroblob(32), 'tenant:t', 1, 1, 1, 1, 1, 'c3');
    UPDATE job_counts SET n = 2 WHERE state = 'completed';
    UPDATE job_counts SET n = 1 WHERE state = 'queued';
    INSERT INTO requests (job_id, body, labels) VALUES (1, x'7b7d', '{"k":"v"}'), (2, x'7b7d', '{}'),
      (3, x'7b7d', '{}');
    INSERT INTO job_labels VALUES ('k', 'v', 1);
    INSERT INTO submissions (job_id, tenant, outcome, priority, run_at, created_at, correlation_id,
      actor) VALUES (1, 't', 'created', 0, 1, 1, 'c1', 'uid:0');
    INSERT INTO attempts (job_id, generation, attempt, lane_id, started_at, ended_at, outcome,
      billed, counts, usage_state, worker)
      VALUES (1, 1, 1, 1, 1, 2, 'completed', 'yes', 1, 'ok', 'pid:1');
    INSERT INTO results (job_id, body) VALUES (1, x'7b7d');
    INSERT INTO usage_events (tenant, event_id, vendor, model, meter, units, occurred_at,
      received_at, attempt_id, job_id) VALUES ('t', 'job:1:1.1:input', 'openai', 'gpt-4o', 'input',
      7, 1, 2, 1, 1), ('t', 'job:1:1.1:output', 'openai', 'gpt-4o', 'output', 3, 1, 2, 1, 1);
    INSERT INTO pauses (vendor, cause, reason, actor, created_at)
      VALUES ('openai', 'auth', 'HTTP 401', 'aiqd', 5), ('x', 'operator', 'r', 'uid:0', 6);
    DELETE FROM pauses WHERE vendor = 'x';
    UPDATE sqlite_sequence SET seq = 900 WHERE name = 'usage_events';
  )sql");
}

// What an object of the schema says, whatever its comments, spaces and quotes.
std::string normal(const std::string& sql) {
  std::string out;
  bool gap = false;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    if (sql.compare(i, 2, "--") == 0) i = std::min(sql.find('\n', i), sql.size() - 1);
    const char c = sql[i];
    if (c == ' ' || c == '\n' || c == '"') {
      gap = true;
      continue;
    }
    const bool sign = c == '(' || c == ')' || c == ',';
    const bool after_sign = out.empty() || std::string("(),").find(out.back()) != std::string::npos;
    if (gap && !sign && !after_sign) out.push_back(' ');
    out.push_back(c);
    gap = false;
  }
  return out;
}

std::vector<std::string> schema_of(SqliteDb& db) {
  std::vector<std::string> out;
  Query query(db,
              "SELECT type, name, tbl_name, sql FROM sqlite_schema "
              "WHERE name NOT LIKE 'sqlite_%'");
  while (query.step()) {
    out.push_back(query.text(0) + " " + query.text(1) + " " + query.text(2) + ": " +
                  normal(query.text(3)));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> columns_of(SqliteDb& db) {
  std::vector<std::string> out;
  Query query(
      db,
      "SELECT t.name || '.' || c.cid || ' ' || c.name || ' ' || c.type || ' ' || "
      "c.\"notnull\" || ' ' || coalesce(c.dflt_value, '-') || ' ' || c.pk || ' ' || t.strict "
      "|| t.wr FROM pragma_table_list AS t JOIN pragma_table_xinfo(t.name) AS c "
      "WHERE t.schema = 'main' ORDER BY 1");
  while (query.step())
    out.push_back(query.text(0));
  return out;
}

TEST_CASE("migration: a file of version 1 becomes what a new one is, and keeps its rows") {
  const TempFolder folder;
  const std::string path = folder.file();
  make_v1(path);
  CHECK_THROWS_AS((void)open_reader(path), StoreError);
  CHECK_THROWS_AS((void)open_store(path, {}, kStart, false), StoreError);

  const MigrationReport report = migrate_database(path, {}, kStart);
  CHECK(report.from == 1);
  CHECK(report.to == kSchemaVersion);
  CHECK(report.copy == path + ".before-v" + std::to_string(kSchemaVersion));
  CHECK(summarize_database(report.copy, 0)->schema_version == 1);
  CHECK(summarize_database(report.copy, 0)->jobs == 3);

  SqliteStore migrated(path, {}, kStart, false);
  SqliteStore fresh(":memory:", {}, kStart, false);
  CHECK(schema_of(migrated.db()) == schema_of(fresh.db()));
  CHECK(columns_of(migrated.db()) == columns_of(fresh.db()));
  CHECK(migrated.check() == std::vector<std::string>{});

  CHECK((*migrated.job(1)->usage)[Meter::input] == 7);
  CHECK((*migrated.job(1)->usage)[Meter::output] == 3);
  CHECK(migrated.job(1)->labels.at("k") == "v");
  CHECK(migrated.job(3)->status == JobState::queued);
  JobFilter labelled;
  labelled.label_key = "k";
  labelled.label_value = "v";
  CHECK(migrated.list_jobs(labelled, {}).size() == 1);
  CHECK(migrated.db().pragma(
            "SELECT group_concat(result_id || '-' || job_id) FROM result_shares") == "1-2");
  REQUIRE(migrated.list_pauses().size() == 1);
  CHECK(migrated.list_pauses()[0].reason == "HTTP 401");

  // No id again, also of rows that are gone; and still nothing changes what was used.
  CHECK(migrated.db().pragma("SELECT seq FROM sqlite_sequence WHERE name = 'pauses'") == "2");
  CHECK(migrated.db().pragma("SELECT seq FROM sqlite_sequence WHERE name = 'usage_events'") ==
        "900");
  CHECK(migrated.db().pragma("SELECT count(*) FROM sqlite_sequence WHERE name LIKE '%\\_2' "
                             "ESCAPE '\\'") == "0");
  CHECK_THROWS(migrated.db().exec("DELETE FROM usage_events"));
  CHECK_THROWS(migrated.db().exec("UPDATE usage_events SET units = 1"));
}

TEST_CASE("migration: jobs of version 2 that wait are taken by their bytes") {
  const TempFolder folder;
  {
    SQLite::Database db(folder.file(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec(text_of(AIQ_SOURCE_DIR "/tests/store/schema_v2.sql"));
    db.exec(R"sql(
      PRAGMA application_id = 0x61697100; PRAGMA user_version = 2;
      INSERT INTO lanes (tenant, vendor, model) VALUES ('t', 'openai', 'gpt-4o');
      INSERT INTO jobs (lane_id, kind, endpoint, state, wait, live, priority, rank, created_at,
        run_at, max_attempts, idempotency_key, cache_key, cache_owner, cache_read, cache_store,
        coalesce, soft_ttl, hard_ttl, correlation_id)
        VALUES (1, 'request', 'chat', 'queued', 'ready', 1, 0, 1, 1, 1, 5, zeroblob(32),
          zeroblob(32), 'tenant:t', 1, 1, 1, 1, 1, 'c3');
      UPDATE job_counts SET n = 1 WHERE state = 'queued';
      INSERT INTO requests (job_id, body) VALUES (1, zeroblob(41));
      INSERT INTO vendors (vendor, proven) VALUES ('openai', 1);
      INSERT INTO rate_holds VALUES ('openai', 'gpt-4o', 5, 4);
    )sql");
  }
  const MigrationReport report = migrate_database(folder.file(), {}, kStart);
  CHECK(report.from == 2);
  SqliteStore migrated(folder.file(), {}, kStart, false);
  SqliteStore fresh(":memory:", {}, kStart, false);
  CHECK(schema_of(migrated.db()) == schema_of(fresh.db()));
  CHECK(columns_of(migrated.db()) == columns_of(fresh.db()));
  CHECK(migrated.check() == std::vector<std::string>{});
  CHECK(migrated.job(1)->prompt_tokens == 11);
  CHECK_FALSE(migrated.job(1)->output_tokens.has_value());
}

TEST_CASE("migration: of what is up to date is nothing") {
  const TempFolder folder;
  (void)open_store(folder.file(), {}, kStart, false);
  const MigrationReport report = migrate_database(folder.file(), {}, kStart);
  CHECK(report.from == kSchemaVersion);
  CHECK(report.copy.empty());
  CHECK_FALSE(std::filesystem::exists(migration_backup_path(folder.file(), kSchemaVersion)));
  CHECK_THROWS_AS((void)migrate_database(folder.file("none.db"), {}, kStart), StoreError);
  CHECK_FALSE(std::filesystem::exists(folder.file("none.db")));
}

TEST_CASE("migration: an empty file of version 1 is brought up to date too") {
  const TempFolder folder;
  {
    SQLite::Database db(folder.file(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec(text_of(AIQ_SOURCE_DIR "/tests/store/schema_v1.sql"));
    db.exec("PRAGMA application_id = 0x61697100; PRAGMA user_version = 1");
  }
  (void)migrate_database(folder.file(), {}, kStart);
  SqliteStore migrated(folder.file(), {}, kStart, false);
  SqliteStore fresh(":memory:", {}, kStart, false);
  CHECK(schema_of(migrated.db()) == schema_of(fresh.db()));
  CHECK(migrated.check() == std::vector<std::string>{});
}

}  // namespace
}  // namespace aiq::test
