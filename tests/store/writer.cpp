// The writer thread: groups, failures, the order of work, and no answer before its commit.

#include "core/store/writer.h"

#include <sqlite3.h>

#include <atomic>
#include <thread>

#include "store/writer_fixture.h"

namespace aiq::test {
namespace {

TEST_CASE("writer: gives the value of an operation, or what it threw") {
  OnDisk disk;
  const JobId id = disk.writer.run(
      Priority::submit, [](Store& st) { return st.submit(request("a"), kStart).job_id; });
  CHECK(id == 1);
  disk.writer.run(Priority::control, [](Store& st) { st.mark_proven("openai"); });
  CHECK_THROWS_WITH(
      disk.writer.run(Priority::submit, [](Store&) -> int { throw std::runtime_error("no"); }),
      "no");
  CHECK(disk.jobs() == std::set<std::string>{"c-a"});
}

TEST_CASE("writer: what waits together is committed together") {
  OnDisk disk(patient());
  Answers answers;
  Gate gate;
  disk.hold(gate, answers);
  for (int i = 0; i < 50; ++i) {
    disk.writer.post(Priority::submit, submitting("g" + std::to_string(i)), answers.expect());
  }
  CHECK(disk.writer.queued() == 50);
  gate.open();
  for (const auto& error : answers.wait())
    CHECK_FALSE(error);
  const WriterStats stats = disk.writer.stats();
  CHECK(stats.operations == 51);
  CHECK(stats.commits == 1);
  CHECK(stats.rollbacks == 0);
  CHECK(disk.jobs().size() == 50);
}

TEST_CASE("writer: a group has an end") {
  WriterConfig config = patient();
  config.max_group = 10;
  OnDisk disk(config);
  Answers answers;
  Gate gate;
  disk.hold(gate, answers);
  for (int i = 0; i < 29; ++i) {
    disk.writer.post(Priority::submit, submitting("g" + std::to_string(i)), answers.expect());
  }
  gate.open();
  answers.wait();
  CHECK(disk.writer.stats().commits == 3);
}

TEST_CASE("writer: nobody is told before the commit") {
  OnDisk disk(patient());
  const auto reader = open_reader(disk.folder.file());
  Answers answers;
  Gate gate;
  disk.hold(gate, answers);
  Gate written;
  Gate finish;
  std::atomic<bool> told{false};
  std::atomic<bool> seen_when_told{false};
  disk.writer.post(Priority::submit, submitting("a"), [&](std::exception_ptr) {
    // On the writer thread; this reader is its own for the moment.
    seen_when_told = open_reader(disk.folder.file())->job(1).has_value();
    told = true;
  });
  disk.writer.post(
      Priority::maintenance,
      [&](Store& store) {
        if (!store.job(1).has_value()) throw std::logic_error("not written yet");
        written.open();
        finish.pass();
      },
      answers.expect());
  gate.open();
  written.pass();
  // Written, in the same transaction, but not committed: nobody sees it, nobody is told.
  CHECK_FALSE(reader->job(1).has_value());
  CHECK_FALSE(told);
  finish.open();
  for (const auto& error : answers.wait())
    CHECK(words_of(error).empty());
  CHECK(told);
  CHECK(seen_when_told);
  CHECK(reader->job(1).has_value());
}

TEST_CASE("writer: a failed operation takes only itself along") {
  OnDisk disk(patient());
  Answers answers;
  Gate gate;
  disk.hold(gate, answers);
  disk.writer.post(Priority::submit, submitting("a"), answers.expect());
  disk.writer.post(
      Priority::submit,
      [](Store& store) {
        store.submit(request("half"), kStart);
        throw std::runtime_error("half way");
      },
      answers.expect());
  disk.writer.post(Priority::submit, submitting("b"), answers.expect());
  gate.open();
  const auto errors = answers.wait();
  CHECK_FALSE(errors[0]);
  CHECK_FALSE(errors[1]);
  CHECK(words_of(errors[2]) == "half way");
  CHECK_FALSE(errors[3]);
  CHECK(disk.jobs() == std::set<std::string>{"c-a", "c-b"});
  CHECK(open_reader(disk.folder.file())->check().empty());
}

TEST_CASE("writer: the urgent goes before the bulk, equals in their order") {
  OnDisk disk(patient());
  Answers answers;
  Gate gate;
  disk.hold(gate, answers);
  std::string order;  // touched by the writer thread alone until all is answered
  const auto note = [&order](char c) { return [&order, c](Store&) { order.push_back(c); }; };
  disk.writer.post(Priority::maintenance, note('m'), answers.expect());
  disk.writer.post(Priority::submit, note('s'), answers.expect());
  disk.writer.post(Priority::submit, note('S'), answers.expect());
  disk.writer.post(Priority::control, note('k'), answers.expect());
  disk.writer.post(Priority::completion, note('c'), answers.expect());
  disk.writer.post(Priority::renewal, note('r'), answers.expect());
  gate.open();
  answers.wait();
  CHECK(order == "rcksSm");
}

TEST_CASE("writer: a foreign lock makes all that wait busy, and work goes on after it") {
  StoreOptions options;
  options.busy_ms = 200;
  OnDisk disk(patient(), options);
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(disk.folder.file().c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  Answers answers;
  for (int i = 0; i < 3; ++i) {
    disk.writer.post(Priority::submit, submitting(std::to_string(i)), answers.expect());
  }
  for (const auto& error : answers.wait())
    CHECK(kind_of(error) == StoreError::Kind::busy);
  REQUIRE(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(other);
  CHECK(disk.jobs().empty());
  disk.writer.run(Priority::submit, [](Store& st) { st.submit(request("a"), kStart); });
  CHECK(disk.jobs().size() == 1);
}

TEST_CASE("writer: stop finishes what was posted, later work is told so") {
  TempFolder folder;
  Answers answers;
  Writer writer(open_store(folder.file(), {}, kStart, true), {}, system_clock());
  for (int i = 0; i < 500; ++i) {
    writer.post(Priority::submit, submitting(std::to_string(i)), answers.expect());
  }
  writer.stop();
  for (const auto& error : answers.wait())
    CHECK_FALSE(error);
  CHECK(open_reader(folder.file())->list_jobs({}, {0, 1000}).size() == 500);
  Answers late;
  writer.post(Priority::submit, submitting("late"), late.expect());
  CHECK(kind_of(late.wait().at(0)) == StoreError::Kind::busy);
  writer.stop();
}

TEST_CASE("writer: checkpoints between groups and loses nothing by it") {
  WriterConfig config;
  config.checkpoint_frames = 40;
  OnDisk disk(config);
  for (int i = 0; i < 60; ++i) {
    disk.writer.run(Priority::submit, submitting(std::to_string(i)));
  }
  const WriterStats stats = disk.writer.stats();
  CHECK(stats.checkpoints > 3);
  CHECK(stats.wal_frames < 40 + 100);
  CHECK(std::filesystem::file_size(disk.folder.file() + "-wal") < 2'000'000);
  CHECK(disk.jobs().size() == 60);
}

TEST_CASE("writer: many threads post at once") {
  OnDisk disk;
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        disk.writer.run(Priority::submit, submitting(std::to_string(t) + "-" + std::to_string(i)));
        ++done;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(done == 100);
  CHECK(disk.jobs().size() == 100);
}

}  // namespace
}  // namespace aiq::test
