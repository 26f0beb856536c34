// Copies while others write, and putting one back: nothing is lost, nothing is sent twice.

#include "core/store/keeping.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "core/store/sqlite_store.h"
#include "store/child_process.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

void submit_one(Store& store, const std::string& text) {
  store.begin();
  store.submit(request(text), kStart);
  store.commit();
}

std::unique_ptr<SqliteStore> open_sqlite(const std::string& path) {
  auto store = open_store(path, {}, kStart, false);
  return std::unique_ptr<SqliteStore>(static_cast<SqliteStore*>(store.release()));
}

bool there(const std::string& path) {
  return std::filesystem::exists(path);
}

PreparedRestore prepare(const std::string& path, const std::string& source) {
  return prepare_restore(path, source, {}, "uid:7", kStart + kHour);
}

template <class F>
StoreError::Kind kind_thrown(F f) {
  try {
    f();
  } catch (const StoreError& error) {
    return error.kind();
  }
  FAIL("no StoreError");
  return StoreError::Kind::io;
}

TEST_CASE("backup: one file with all that was committed, for its owner only") {
  const TempFolder folder;
  const auto store = open_store(folder.file(), {}, kStart, false);
  for (int i = 0; i < 20; ++i)
    submit_one(*store, "job " + std::to_string(i));
  const std::string copy = folder.file("copy.db");
  const auto report = back_up_database(folder.file(), copy, false, 0);
  REQUIRE(report.has_value());
  CHECK(report->jobs == 20);
  CHECK(report->schema_version == kSchemaVersion);
  CHECK(static_cast<std::uintmax_t>(report->bytes) == std::filesystem::file_size(copy));
  struct stat info {};
  REQUIRE(stat(copy.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  for (const char* suffix : {".part", "-wal", "-shm", ".part-wal", ".part-shm"})
    CHECK_FALSE(there(copy + suffix));

  const std::string alone = folder.file("moved.db");
  std::filesystem::rename(copy, alone);
  const auto reader = open_reader(alone);
  CHECK(reader->list_jobs({}, {}).size() == 20);
  CHECK(reader->check() == std::vector<std::string>{});
}

TEST_CASE("backup: a file that is there stays, unless it is to be replaced") {
  const TempFolder folder;
  const auto store = open_store(folder.file(), {}, kStart, false);
  const std::string copy = folder.file("copy.db");
  std::ofstream(copy) << "mine";
  CHECK_FALSE(back_up_database(folder.file(), copy, false, 0).has_value());
  CHECK(std::filesystem::file_size(copy) == 4);
  CHECK(back_up_database(folder.file(), copy, true, 0).has_value());
  CHECK(summarize_database(copy, 0)->jobs == 0);
  CHECK(kind_thrown([&] {
          (void)back_up_database(folder.file("none.db"), folder.file("x"), false, 0);
        }) == StoreError::Kind::missing);
  CHECK_FALSE(there(folder.file("x.part")));
}

TEST_CASE("backup: a limit of the file's size leaves nothing behind") {
  const TempFolder folder;
  {
    const auto store = open_store(folder.file(), {}, kStart, false);
    submit_one(*store, std::string(200'000, 'x'));
  }
  const std::string copy = folder.file("copy.db");
  const int code = in_child([&] {
    const rlimit limit{100'000, 100'000};
    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 3;
    try {
      (void)back_up_database(folder.file(), copy, false, 0);
    } catch (const StoreError& error) {
      return error.kind() == StoreError::Kind::full ? 0 : 2;
    }
    return 1;
  });
  CHECK(code == 0);
  CHECK_FALSE(there(copy));
  CHECK_FALSE(there(copy + ".part"));
}

TEST_CASE("backup: each copy beside a writer is whole and has what was committed before") {
  const TempFolder folder;
  const auto store = open_store(folder.file(), {}, kStart, false);
  std::atomic<int> committed{0};
  std::atomic<bool> stop{false};
  std::thread copies([&] {
    for (int i = 0; i < 10; ++i) {
      const int before = committed;
      const std::string copy = folder.file("copy" + std::to_string(i));
      const auto report = back_up_database(folder.file(), copy, false, 2'000);
      CHECK(report->jobs >= before);
      CHECK(open_reader(copy)->check() == std::vector<std::string>{});
    }
    stop = true;
  });
  for (int i = 0; !stop; ++i) {
    submit_one(*store, "job " + std::to_string(i));
    (void)store->checkpoint(50);
    ++committed;
  }
  copies.join();
}

TEST_CASE("restore: the queue is paused, ids move on, leases stay open, the old one is kept") {
  const TempFolder folder;
  const std::string path = folder.file();
  const std::string copy = folder.file("copy.db");
  {
    const auto store = open_sqlite(path);
    submit_one(*store, "leased");
    submit_one(*store, "waits");
    store->begin();
    REQUIRE(store->lease({1, "t1", kStart, kStart + kHour, "pid:1"}).job.has_value());
    Pause pause;
    pause.cause = "operator";
    pause.reason = "for the night";
    pause.actor = "uid:1";
    store->set_pause(pause);
    store->commit();
    REQUIRE(back_up_database(path, copy, false, 0).has_value());
    submit_one(*store, "after the copy");
  }
  PreparedRestore prepared = prepare(path, copy);
  CHECK(prepared.faults.empty());
  CHECK(prepared.open_attempts == 1);
  CHECK(prepared.content.jobs == 2);
  CHECK(open_reader(path)->list_jobs({}, {}).size() == 3);  // not touched yet

  const std::string aside = folder.file("aside");
  CHECK(complete_restore(path, std::move(prepared), aside, {}) == aside);
  CHECK_FALSE(there(path + "-wal"));
  CHECK_FALSE(there(path + ".restore.part"));
  CHECK(open_reader(aside)->list_jobs({}, {}).size() == 3);

  const auto store = open_sqlite(path);
  CHECK(store->check() == std::vector<std::string>{});
  CHECK(store->list_locks().empty());
  REQUIRE(store->list_pauses().size() == 1);
  const Pause pause = store->list_pauses()[0];
  CHECK(pause.cause == "restored");
  CHECK(pause.actor == "uid:7");
  CHECK_FALSE(pause.until.has_value());
  CHECK(pause.reason == "restored from " + copy + "; before that: for the night");
  store->begin();
  CHECK(store->open_leases(0, 10).size() == 1);
  CHECK(store->submit(request("new"), kStart).job_id == 2 + kRestoredIdSkip + 1);
  store->commit();
  // Every table that gives out ids, also one that had none.
  CHECK(store->db().pragma("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql LIKE "
                           "'%AUTOINCREMENT%' AND name NOT IN (SELECT name FROM sqlite_sequence "
                           "WHERE seq >= 1000000)") == "0");
}

TEST_CASE("restore: over nothing, over an empty file, over damage, each is kept or was none") {
  const TempFolder folder;
  const std::string path = folder.file();
  const std::string copy = folder.file("copy.db");
  const std::string aside = folder.file("aside");
  {
    const auto store = open_store(folder.file("other.db"), {}, kStart, false);
    submit_one(*store, "a");
    REQUIRE(back_up_database(folder.file("other.db"), copy, false, 0).has_value());
  }
  std::string previous;
  SUBCASE("nothing") {}
  SUBCASE("nothing but a log that lost its file") {
    std::ofstream(path + "-wal") << "old";
  }
  SUBCASE("an empty file") {
    std::ofstream{path};
  }
  SUBCASE("no database") {
    std::ofstream(path) << std::string(20'000, 'x');
    std::ofstream(path + "-wal") << "its log";
    previous = aside;
  }
  SUBCASE("a damaged one") {
    {
      const auto store = open_store(path, {}, kStart, false);
      submit_one(*store, "b");
      while (store->checkpoint(1) > 0) {
      }
    }
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file << std::string(30'000, '\x5a');
    previous = aside;
  }
  CHECK(complete_restore(path, prepare(path, copy), aside, {}) == previous);
  CHECK_FALSE(there(path + "-wal"));
  const auto store = open_sqlite(path);
  CHECK(store->job(1).has_value());
  CHECK(store->check() == std::vector<std::string>{});
  if (!previous.empty()) CHECK(std::filesystem::file_size(aside) >= 20'000);
}

TEST_CASE("restore: what can't be put in place changes nothing") {
  const TempFolder folder;
  const std::string path = folder.file();
  submit_one(*open_store(path, {}, kStart, false), "mine");
  const std::string source = folder.file("source");
  StoreError::Kind expected = StoreError::Kind::corrupt;
  SUBCASE("absent") {
    expected = StoreError::Kind::missing;
  }
  SUBCASE("a text") {
    std::ofstream(source) << "text";
  }
  SUBCASE("a newer one") {
    open_sqlite(source)->db().exec("PRAGMA user_version = 99");
    expected = StoreError::Kind::version;
  }
  SUBCASE("a damaged one") {
    {
      const auto store = open_store(source, {}, kStart, false);
      for (int i = 0; i < 50; ++i)
        submit_one(*store, "job " + std::to_string(i));
      while (store->checkpoint(1) > 0) {
      }
    }
    std::filesystem::remove(source + "-wal");
    std::fstream file(source, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 * 8192);
    file << std::string(300'000, '\x5a');
  }
  CHECK(kind_thrown([&] { (void)prepare(path, source); }) == expected);
  CHECK_FALSE(there(path + ".restore.part"));
  CHECK(open_reader(path)->job(1).has_value());
  CHECK(open_reader(path)->list_pauses().empty());
}

TEST_CASE("restore: the file belongs to whom the one before belonged") {
  if (geteuid() != 0) return;  // only root can tell
  const TempFolder folder;
  const std::string path = folder.file();
  const std::string copy = folder.file("copy.db");
  submit_one(*open_store(path, {}, kStart, false), "a");
  REQUIRE(back_up_database(path, copy, false, 0).has_value());
  uid_t wanted = 65534;
  SUBCASE("the file before") {
    REQUIRE(chown(path.c_str(), 65534, 65534) == 0);
  }
  SUBCASE("the folder, without one") {
    for (const char* suffix : {"", "-wal", "-shm"})
      std::filesystem::remove(path + suffix);
    REQUIRE(chown(folder.path().c_str(), 65533, 65534) == 0);
    wanted = 65533;
  }
  (void)complete_restore(path, prepare(path, copy), folder.file("aside"), {});
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK(info.st_uid == wanted);
  CHECK(info.st_gid == 65534);
  CHECK((info.st_mode & 07777) == 0600);
}

TEST_CASE("restore: waits for a reader of the present database, then is busy") {
  const TempFolder folder;
  const std::string path = folder.file();
  const std::string copy = folder.file("copy.db");
  submit_one(*open_store(path, {}, kStart, false), "a");
  REQUIRE(back_up_database(path, copy, false, 0).has_value());
  StoreOptions quick;
  quick.busy_ms = 50;
  {
    SqliteDb reader(path, SqliteMode::read, 0);
    reader.exec("BEGIN");
    REQUIRE(reader.pragma("SELECT count(*) FROM jobs") == "1");
    CHECK(kind_thrown([&] {
            (void)complete_restore(path, prepare(path, copy), folder.file("aside"), quick);
          }) == StoreError::Kind::busy);
    CHECK_FALSE(there(folder.file("aside")));
  }
  CHECK(complete_restore(path, prepare(path, copy), folder.file("aside"), quick) ==
        folder.file("aside"));
}

}  // namespace
}  // namespace aiq::test
