// What durability rests on: settings of the connections, files, versions, errors.

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/store/owner_lock.h"
#include "core/store/sqlite_migrate.h"
#include "core/store/sqlite_reader.h"
#include "core/store/sqlite_store.h"
#include "store/child_process.h"
#include "store/sqlite_bulk.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

std::unique_ptr<SqliteStore> open_file(const std::string& path, const StoreOptions& options = {}) {
  auto store = open_store(path, options, kStart, true);
  return std::unique_ptr<SqliteStore>(static_cast<SqliteStore*>(store.release()));
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

template <class F>
StoreError::Kind kind_thrown(F f) {
  try {
    f();
  } catch (const StoreError& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).find('/') != std::string::npos);  // names the file
    return error.kind();
  }
  FAIL("no StoreError");
  return StoreError::Kind::io;
}

void submit_one(Store& store, const std::string& text) {
  store.begin();
  store.submit(request(text), kStart);
  store.commit();
}

// A connection of another program.
class Foreign {
 public:
  explicit Foreign(const std::string& path) {
    REQUIRE(sqlite3_open(path.c_str(), &handle_) == SQLITE_OK);
  }
  ~Foreign() { sqlite3_close(handle_); }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
  void exec(const std::string& sql) {
    REQUIRE(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  }

 private:
  sqlite3* handle_ = nullptr;
};

TEST_CASE("connection: a commit is synced and nobody checkpoints by itself") {
  const TempFolder folder;
  const auto store = open_file(folder.file());
  CHECK(store->db().pragma("PRAGMA synchronous") == "2");
  CHECK(store->db().pragma("PRAGMA journal_mode") == "wal");
  CHECK(store->db().pragma("PRAGMA foreign_keys") == "1");
  CHECK(store->db().pragma("PRAGMA page_size") == "8192");
  CHECK(store->db().pragma("PRAGMA trusted_schema") == "0");
  CHECK(store->db().pragma("PRAGMA journal_size_limit") == "67108864");
  SqliteReader reader(folder.file());
  for (SqliteDb* db : {&store->db(), &reader.db()}) {
    CHECK(db->pragma("PRAGMA wal_autocheckpoint") == "0");
    int quiet_close = 0;
    sqlite3_db_config(db->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1, &quiet_close);
    CHECK(quiet_close == 1);
  }
}

TEST_CASE("connection: thousands of commits and a close leave the file as it was") {
  const TempFolder folder;
  auto store = open_file(folder.file());
  while (store->checkpoint(1) > 0) {
  }
  const std::string before = bytes_of(folder.file());
  store->db().exec("PRAGMA synchronous = OFF");  // for the speed of the test only
  for (int i = 0; i < 5'000; ++i) {
    store->begin();
    store->note_rate("openai", "{}", kStart + i);
    store->commit();
  }
  CHECK(bytes_of(folder.file()) == before);
  store.reset();
  CHECK(bytes_of(folder.file()) == before);
  {
    const auto reader = open_reader(folder.file());
    CHECK(reader->stats(kStart).vendors.at(0).last_seen == kStart + 4'999);
  }
  CHECK(bytes_of(folder.file()) == before);

  // The next owner finds the log, moves it, and nothing is lost.
  store = open_file(folder.file());
  CHECK(store->checkpoint(1'000) == 0);
  CHECK(bytes_of(folder.file()) != before);
  CHECK(store->stats(kStart).vendors.at(0).last_seen == kStart + 4'999);
}

TEST_CASE("connection: a checkpoint waits for its frames and for a reader") {
  const TempFolder folder;
  const auto store = open_file(folder.file());
  CHECK(store->checkpoint(1) == 0);
  submit_one(*store, "a");
  const std::int64_t frames = store->checkpoint(1'000'000);
  CHECK(frames > 0);
  CHECK(store->checkpoint(frames + 1) == frames);
  {
    Foreign pinned(folder.file());
    pinned.exec("BEGIN; SELECT count(*) FROM jobs");
    submit_one(*store, "b");
    CHECK(store->checkpoint(1) > 0);
  }
  CHECK(store->checkpoint(1) >= 0);
  submit_one(*store, "c");
  CHECK(store->checkpoint(1) == 0);
}

TEST_CASE("files: are for their owner only, or for the group that was named") {
  const TempFolder folder;
  const std::string path = folder.file("sub/aiq.db");
  StoreOptions options;
  mode_t file_mode = 0600;
  mode_t folder_mode = 0700;
  SUBCASE("owner") {}
  SUBCASE("group") {
    const struct group* entry = getgrgid(getgid());
    REQUIRE(entry != nullptr);
    options.group = entry->gr_name;
    file_mode = 0640;
    folder_mode = 0750;
  }
  const mode_t before = umask(0);
  const auto lock = OwnerLock::try_acquire(path, "aiqd");  // comes first, makes the folder
  REQUIRE(lock.has_value());
  const auto store = open_file(path, options);
  umask(before);
  submit_one(*store, "a");
  CHECK(mode_of(path) == file_mode);
  CHECK(mode_of(path + "-wal") == file_mode);
  CHECK(mode_of(path + "-shm") == file_mode);
  CHECK(mode_of(path + ".lock") == file_mode);
  CHECK(mode_of(folder.file("sub")) == folder_mode);
}

TEST_CASE("files: a folder with other things in it keeps its mode") {
  const TempFolder folder;
  put_bytes(folder.file("diary.txt"), "private");
  StoreOptions options;
  options.group = getgrgid(getgid())->gr_name;
  open_file(folder.file(), options);
  CHECK(mode_of(folder.path()) == 0700);
  CHECK(mode_of(folder.file()) == 0640);
}

TEST_CASE("files: what is not ours keeps its bytes, mode and group") {
  const TempFolder folder;
  const std::string path = folder.file("thing");
  StoreError::Kind expected = StoreError::Kind::corrupt;
  std::string before;
  StoreOptions options;
  SUBCASE("a text") {
    put_bytes(path, "127.0.0.1 localhost\n");
  }
  SUBCASE("a long one, for a group") {
    put_bytes(path, std::string(20'000, 'x'));
    options.group = getgrgid(getgid())->gr_name;
  }
  SUBCASE("a database of another program") {
    Foreign(path).exec("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
  }
  SUBCASE("a database of another program that names itself") {
    Foreign(path).exec("PRAGMA application_id = 7");
  }
  SUBCASE("a pipe") {
    REQUIRE(mkfifo(path.c_str(), 0644) == 0);
    expected = StoreError::Kind::io;
  }
  SUBCASE("a socket") {
    REQUIRE(mknod(path.c_str(), S_IFSOCK | 0644, 0) == 0);
    expected = StoreError::Kind::io;
  }
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  if (expected == StoreError::Kind::corrupt) before = bytes_of(path);
  CHECK(kind_thrown([&] { open_file(path, options); }) == expected);
  CHECK(mode_of(path) == 0644);
  CHECK(mode_of(folder.path()) == 0700);
  if (expected == StoreError::Kind::corrupt) CHECK(bytes_of(path) == before);
  CHECK_FALSE(std::filesystem::exists(path + "-wal"));
}

TEST_CASE("files: one whose tables all stand in its log is ours, and so is one just begun") {
  const TempFolder folder;
  submit_one(*open_file(folder.file()), "a");
  REQUIRE(std::filesystem::file_size(folder.file() + "-wal") > 0);
  CHECK(open_file(folder.file())->job(1).has_value());
  Foreign(folder.file("begun.db")).exec("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL;");
  submit_one(*open_file(folder.file("begun.db")), "b");
}

TEST_CASE("files: an unknown group is an error and makes nothing") {
  const TempFolder folder;
  StoreOptions options;
  options.group = "no-such-group-here";
  CHECK(kind_thrown([&] { open_file(folder.file(), options); }) == StoreError::Kind::io);
  CHECK_FALSE(std::filesystem::exists(folder.file()));
}

TEST_CASE("open: a missing database is made by a store and reported by a reader") {
  const TempFolder folder;
  CHECK(kind_thrown([&] { (void)open_reader(folder.file()); }) == StoreError::Kind::missing);
  CHECK_FALSE(std::filesystem::exists(folder.file()));
  put_bytes(folder.file(), "");  // as a crash in the creation leaves it
  CHECK(kind_thrown([&] { (void)open_reader(folder.file()); }) == StoreError::Kind::missing);
  submit_one(*open_file(folder.file()), "a");
  CHECK(open_reader(folder.file())->job(1).has_value());
}

TEST_CASE("open: a creation that a crash cut short is finished by the next") {
  const TempFolder folder;
  {
    Foreign half(folder.file());
    half.exec("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL;");
  }
  REQUIRE(std::filesystem::file_size(folder.file()) > 0);
  CHECK(kind_thrown([&] { (void)open_reader(folder.file()); }) == StoreError::Kind::missing);
  submit_one(*open_file(folder.file()), "a");
  CHECK(open_reader(folder.file())->info().schema_version == kSchemaVersion);
}

TEST_CASE("open: a newer schema is refused and not touched") {
  const TempFolder folder;
  open_file(folder.file());
  {
    Foreign other(folder.file());
    other.exec("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
  }
  const std::string before = bytes_of(folder.file());
  CHECK(kind_thrown([&] { open_file(folder.file()); }) == StoreError::Kind::version);
  CHECK(kind_thrown([&] { (void)open_reader(folder.file()); }) == StoreError::Kind::version);
  CHECK(bytes_of(folder.file()) == before);
}

TEST_CASE("open: what is not ours is called corrupt") {
  const TempFolder folder;
  SUBCASE("no database") {
    put_bytes(folder.file(), std::string(20'000, 'x'));
  }
  SUBCASE("another program's") {
    Foreign other(folder.file());
    other.exec("CREATE TABLE t (a)");
  }
  CHECK(kind_thrown([&] { open_file(folder.file()); }) == StoreError::Kind::corrupt);
  CHECK(kind_thrown([&] { (void)open_reader(folder.file()); }) == StoreError::Kind::corrupt);
}

TEST_CASE("open: damage inside is an error, or a fault that the check names") {
  const TempFolder folder;
  {
    auto store = open_file(folder.file());
    for (int i = 0; i < 50; ++i)
      submit_one(*store, "job " + std::to_string(i));
    while (store->checkpoint(1) > 0) {
    }
  }
  std::filesystem::remove(folder.file() + "-wal");
  std::filesystem::remove(folder.file() + "-shm");
  std::string bytes = bytes_of(folder.file());
  REQUIRE(bytes.size() > 20 * 8192);
  std::fill(bytes.begin() + 3 * 8192, bytes.end(), '\x5a');
  put_bytes(folder.file(), bytes);
  bool noticed = false;
  try {
    noticed = !open_file(folder.file())->check().empty();
  } catch (const StoreError& error) {
    noticed = error.kind() == StoreError::Kind::corrupt;
  }
  CHECK(noticed);
}

TEST_CASE("open: a migration keeps a copy and runs all its steps or none") {
  const TempFolder folder;
  submit_one(*open_file(folder.file()), "kept");
  const std::vector<MigrationStep> steps = {
      {kSchemaVersion + 1, "ALTER TABLE meta ADD COLUMN note TEXT"},
      {kSchemaVersion + 2,
       "CREATE TABLE extra (id INTEGER PRIMARY KEY) STRICT; INSERT INTO extra VALUES (7)"}};
  const std::int64_t last = steps.back().to;
  const std::string copy = migration_backup_path(folder.file(), last);
  CHECK(copy == folder.file() + ".before-v" + std::to_string(last));
  {
    SqliteDb db(folder.file(), SqliteMode::write, 100);
    CHECK(schema_state(db, last) == SchemaState::older);
    auto broken = steps;
    broken[1].sql = "INSERT INTO no_such_table VALUES (1)";
    CHECK_THROWS(migrate_schema(db, broken));
    CHECK(db.pragma("PRAGMA user_version") == std::to_string(kSchemaVersion));
    CHECK(db.pragma("SELECT count(*) FROM pragma_table_info('meta') WHERE name = 'note'") == "0");
    migrate_schema(db, steps);
    CHECK(db.pragma("PRAGMA user_version") == std::to_string(last));
    CHECK(db.pragma("SELECT id FROM extra") == "7");
    CHECK(schema_state(db, last) == SchemaState::current);
  }
  CHECK(mode_of(copy) == 0600);
  CHECK_FALSE(std::filesystem::exists(copy + ".part"));
  // The copy is the old version, whole.
  const auto old = open_reader(copy);
  CHECK(old->info().schema_version == kSchemaVersion);
  CHECK(old->job(1)->correlation_id == "c-kept");
}

TEST_CASE("open: a changed step of ageing orders anew what waits") {
  const TempFolder folder;
  NewSubmission urgent = request("urgent");
  urgent.priority = 10;
  urgent.run_at = kStart + 5 * kSecond;
  {
    const auto store = open_file(folder.file());
    store->begin();
    store->submit(request("old"), kStart);
    store->submit(urgent, kStart + 5 * kSecond);
    store->commit();
    CHECK(store->lane_head(1)->job_id == 2);
  }
  StoreOptions options;
  options.age_step_ms = 1;
  const auto store = open_file(folder.file(), options);
  CHECK(store->lane_head(1)->job_id == 1);
}

TEST_CASE("open: a foreign write lock is busy after the wait, and only until it ends") {
  const TempFolder folder;
  StoreOptions options;
  options.busy_ms = 50;
  const auto store = open_file(folder.file(), options);
  Foreign other(folder.file());
  other.exec("BEGIN IMMEDIATE");
  CHECK(kind_thrown([&] { store->begin(); }) == StoreError::Kind::busy);
  CHECK(open_reader(folder.file())->list_jobs({}, {}).empty());  // reading goes on
  other.exec("COMMIT");
  submit_one(*store, "a");
}

// Another user for whom the folder is not writable; for root that needs another user.
int as_stranger(const std::string& folder, int (*part)(const std::string&),
                const std::string& path) {
  REQUIRE(chmod(folder.c_str(), 0555) == 0);
  const int code = in_child([&] {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 98;
    return part(path);
  });
  REQUIRE(chmod(folder.c_str(), 0755) == 0);
  return code;
}

TEST_CASE("open: a folder that can't be written is readonly, with a hint for readers") {
  const TempFolder folder;
  {
    auto store = open_file(folder.file());
    submit_one(*store, "a");
    while (store->checkpoint(1) > 0) {
    }
  }
  std::filesystem::remove(folder.file() + "-wal");
  std::filesystem::remove(folder.file() + "-shm");
  REQUIRE(chmod(folder.file().c_str(), 0444) == 0);
  const auto write = [](const std::string& path) {
    try {
      (void)open_store(path, {}, kStart, true);
    } catch (const StoreError& error) {
      return error.kind() == StoreError::Kind::readonly ? 0 : 2;
    }
    return 1;
  };
  CHECK(as_stranger(folder.path(), write, folder.file()) == 0);
  CHECK(as_stranger(folder.path(), write, folder.file("new.db")) == 0);
  const auto read = [](const std::string& path) {
    try {
      (void)open_reader(path);
    } catch (const StoreError& error) {
      const bool helpful = std::string(error.what()).find("daemon") != std::string::npos;
      return error.kind() == StoreError::Kind::readonly && helpful ? 0 : 2;
    }
    return 1;
  };
  CHECK(as_stranger(folder.path(), read, folder.file()) == 0);
}

TEST_CASE("reader: an interrupted read is busy and the next one works") {
  const TempFolder folder;
  {
    const auto store = open_file(folder.file());
    store->begin();
    add_finished_jobs(store->db(), 20'000);
    store->commit();
  }
  SqliteReader slow(folder.file(), 0);
  JobFilter nothing;
  nothing.model = "none";  // walks all of them
  CHECK(kind_thrown([&] { slow.list_jobs(nothing, {}); }) == StoreError::Kind::busy);
  CHECK(slow.job(1).has_value());
  CHECK(slow.check().empty());  // exempt
  SqliteReader normal(folder.file());
  CHECK(normal.list_jobs(nothing, {}).empty());
}

TEST_CASE("reader: never writes") {
  const TempFolder folder;
  open_file(folder.file());
  SqliteReader reader(folder.file());
  CHECK_THROWS(reader.db().exec("INSERT INTO meta VALUES ('a', 'b')"));
}

TEST_CASE("check: names what does not fit together") {
  const TempFolder folder;
  const auto store = open_file(folder.file());
  submit_one(*store, "a");
  REQUIRE(store->check().empty());
  store->db().exec(
      "UPDATE job_counts SET n = 5 WHERE state = 'queued';"
      "DELETE FROM job_labels; DELETE FROM requests");
  const auto faults = store->check();
  REQUIRE(faults.size() == 2);
  CHECK(faults[0] == "the count of queued jobs says 5, there are 1");
  CHECK(faults[1] == "job 1 has no request");
}

TEST_CASE("check: names answers, labels and lines that nothing holds together") {
  const TempFolder folder;
  const auto store = open_file(folder.file());
  submit_one(*store, "a");
  store->db().exec(
      "INSERT INTO results (job_id, body) VALUES (1, x'7b7d');"
      "INSERT INTO result_shares VALUES (7, 1);"
      "INSERT INTO job_labels VALUES ('k', 'v', 9);"
      "INSERT INTO batches (tenant, fingerprint, state, created_at, loaded_at, lines, "
      "correlation_id, actor) VALUES ('t', zeroblob(32), 'loaded', 1, 1, 3, 'c', 'a');"
      "INSERT INTO batch_lines VALUES (1, 1, 'x', 9, 9)");
  const std::vector<std::string> expected = {"a label of job 9 is left, the job is not",
                                             "result 7 is shared by job 1, which has no part in it",
                                             "result 1 is needed by nothing",
                                             "line 1 of batch 1 points at job 9, which is missing",
                                             "line 1 of batch 1 has no submission",
                                             "batch 1 counts 3 lines, their outcomes are 0"};
  CHECK(store->check() == expected);
}

TEST_CASE("schema: usage is append-only and states are guarded") {
  const TempFolder folder;
  const auto store = open_file(folder.file());
  submit_one(*store, "a");
  store->db().exec(
      "INSERT INTO usage_events (tenant, event_id, vendor, model, meter, units, occurred_at, "
      "received_at) VALUES ('t', 'e', 'v', 'm', 'input', 1, 1, 1)");
  for (const char* sql :
       {"UPDATE usage_events SET units = 2", "DELETE FROM usage_events",
        "UPDATE jobs SET state = 'processing'", "UPDATE jobs SET wait = NULL",
        "UPDATE jobs SET live = 0",
        "INSERT INTO usage_events (tenant, event_id, vendor, model, "
        "meter, units, occurred_at, received_at) VALUES ('t', 'f', 'v', 'm', 'input', 0, 1, 1)"}) {
    CHECK_THROWS_AS(store->db().exec(sql), std::logic_error);
  }
}

TEST_CASE(
    "connection: at max_page_count a submit is refused as full, and nothing acknowledged goes") {
  const TempFolder folder;
  const auto store = open_file(folder.file());
  submit_one(*store, "before");
  const std::string pages = store->db().pragma("PRAGMA page_count");
  CHECK(store->db().pragma(("PRAGMA max_page_count = " + pages).c_str()) == pages);
  store->begin();
  CHECK(kind_thrown([&] {
          store->submit(request(std::string(200'000, 'x')), kStart);
          store->commit();
        }) == StoreError::Kind::full);
  store->rollback();
  CHECK(store->stats(kStart).jobs[static_cast<std::size_t>(JobState::queued)] == 1);
  CHECK(store->db().pragma("PRAGMA max_page_count = 1000000") == "1000000");
  submit_one(*store, "after");
  CHECK(store->stats(kStart).jobs[static_cast<std::size_t>(JobState::queued)] == 2);
}

}  // namespace
}  // namespace aiq::test
