// The writer thread: groups, failures, the order of work, and no answer before its commit.

#include "core/store/writer.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "store/child_process.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

using Priority = WritePriority;

// Lets a test wait for something to have happened, with a deadline.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [this] { return open_; })) {
      throw std::runtime_error("nobody opened the gate");
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class Answers {
 public:
  Writer::Done expect() {
    const std::lock_guard lock(mutex_);
    const std::size_t index = answers_.size();
    answers_.emplace_back();
    ++open_;
    return [this, index](std::exception_ptr error) {
      const std::lock_guard inner(mutex_);
      answers_[index] = error;
      --open_;
      changed_.notify_all();
    };
  }
  // All that were expected, in their order.
  std::vector<std::exception_ptr> wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [this] { return open_ == 0; })) {
      throw std::runtime_error("an operation was not answered");
    }
    return answers_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::exception_ptr> answers_;
  int open_ = 0;
};

std::string words_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::optional<StoreError::Kind> kind_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const StoreError& e) {
    return e.kind();
  } catch (...) {
  }
  return std::nullopt;
}

Writer::Operation submitting(const std::string& text) {
  return [s = request(text)](Store& store) { store.submit(s, kStart); };
}

struct OnDisk {
  explicit OnDisk(const WriterConfig& config = {}, const StoreOptions& options = {})
      : writer(open_store(folder.file(), options, kStart, true), config, system_clock()) {}

  // Occupies the writer thread inside an open group until `gate` opens: what is posted meanwhile
  // joins that group.
  void hold(Gate& gate, Answers& answers) {
    Gate entered;
    writer.post(
        Priority::renewal,
        [&gate, entered_gate = &entered, first = std::make_shared<bool>(true)](Store&) {
          if (*first) {
            *first = false;
            entered_gate->open();
          }
          gate.pass();
        },
        answers.expect());
    entered.pass();
  }
  std::set<std::string> jobs() {
    std::set<std::string> names;
    for (const JobRow& row : open_reader(folder.file())->list_jobs({}, {0, 1000})) {
      names.insert(row.correlation_id);
    }
    return names;
  }

  TempFolder folder;
  Writer writer;
};

// No operation of a test may miss its group because the machine was slow.
WriterConfig patient() {
  WriterConfig config;
  config.max_hold_ms = 60'000;
  return config;
}

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

struct TailLog {
  std::atomic<int> ran{0}, committed{0}, failed{0};
};

TEST_CASE("tail: shares the commit of a group and follows it") {
  OnDisk disk(patient());
  TailLog log;
  Gate committed;
  disk.writer.set_tail({[&](Store& store) {
                          ++log.ran;
                          if (!store.job(1).has_value()) throw std::logic_error("ran too early");
                          store.mark_proven("openai");
                        },
                        [&] {
                          ++log.committed;
                          committed.open();
                        },
                        [&](std::exception_ptr) { ++log.failed; }});
  Answers answers;
  Gate gate;
  disk.hold(gate, answers);
  disk.writer.post(
      Priority::submit,
      [&](Store& store) {
        store.submit(request("a"), kStart);
        disk.writer.wake_tail();
      },
      answers.expect());
  gate.open();
  answers.wait();
  committed.pass();
  CHECK(disk.writer.stats().commits == 1);
  CHECK(log.ran == 1);
  CHECK(log.committed == 1);
  CHECK(log.failed == 0);
}

TEST_CASE("tail: runs alone when it is woken and nothing else is there") {
  OnDisk disk;
  Gate committed;
  disk.writer.set_tail({[](Store& store) { store.mark_proven("openai"); },
                        [&] { committed.open(); }, [](std::exception_ptr) {}});
  disk.writer.wake_tail();
  committed.pass();
  CHECK(open_reader(disk.folder.file())->stats(kStart).vendors.at(0).proven);
}

TEST_CASE("tail: its failure takes no operation along, theirs makes it run again") {
  OnDisk disk(patient());
  TailLog log;
  std::atomic<bool> broken{true};
  Gate failed;
  Gate committed;
  disk.writer.set_tail({[&](Store& store) {
                          ++log.ran;
                          store.mark_proven("openai");
                          if (broken) throw std::runtime_error("tail");
                        },
                        [&] {
                          ++log.committed;
                          committed.open();
                        },
                        [&](std::exception_ptr error) {
                          CHECK(words_of(error) == "tail");
                          ++log.failed;
                          failed.open();
                        }});
  Answers answers;
  disk.writer.post(
      Priority::submit,
      [&](Store& store) {
        store.submit(request("a"), kStart);
        disk.writer.wake_tail();
      },
      answers.expect());
  CHECK_FALSE(answers.wait().at(0));
  failed.pass();
  CHECK(disk.jobs().size() == 1);
  CHECK(open_reader(disk.folder.file())->stats(kStart).vendors.empty());

  broken = false;
  Answers more;
  Gate gate;
  disk.hold(gate, more);
  disk.writer.wake_tail();
  disk.writer.post(
      Priority::submit, [](Store&) { throw std::runtime_error("op"); }, more.expect());
  gate.open();
  CHECK(words_of(more.wait().at(1)) == "op");
  disk.writer.wake_tail();
  committed.pass();
  CHECK(log.failed == 1);
  CHECK(log.committed >= 1);
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

TEST_CASE("writer: a killed process loses nothing that it acknowledged") {
  const TempFolder folder;
  int acknowledged[2];
  REQUIRE(pipe(acknowledged) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    WriterConfig config;
    config.checkpoint_frames = 30;  // so that some kills meet a checkpoint
    Writer writer(open_store(folder.file(), {}, kStart, true), config, system_clock());
    for (int i = 0;; ++i) {
      writer.run(Priority::submit, submitting(std::to_string(i)));
      if (write(acknowledged[1], "y", 1) != 1) _exit(1);
    }
  }
  close(acknowledged[1]);
  std::size_t seen = 0;
  char byte = 0;
  while (seen < 60 && read(acknowledged[0], &byte, 1) == 1)
    ++seen;
  REQUIRE(kill(child, SIGKILL) == 0);
  while (read(acknowledged[0], &byte, 1) == 1)
    ++seen;
  close(acknowledged[0]);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(seen >= 60);
  const auto store = open_store(folder.file(), {}, kStart, true);
  const std::size_t stored = store->list_jobs({}, {0, 1000}).size();
  CHECK(stored >= std::min<std::size_t>(seen, 1000));
  CHECK(stored <= seen + 1);
  CHECK(store->check().empty());
}

rlim_t file_limit(rlim_t bytes) {
  struct rlimit limit {};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
  return before;
}

// Submits requests of 40 KB, each acknowledged by one byte: how many were stored before the disk
// was full. In a process of its own, whose files can't grow beyond `bytes`.
int fill_disk(const std::string& path, rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  Writer writer(open_store(path, {}, kStart, true), patient(), system_clock());
  const rlim_t before = file_limit(bytes);
  int stored = 0;
  int refused = 0;
  for (int round = 0; refused == 0 && round < 200; ++round) {
    Answers answers;
    for (int i = 0; i < 5; ++i) {
      NewSubmission s = request(std::to_string(round) + "." + std::to_string(i));
      s.body = std::string(40'000, 'x');
      writer.post(
          Priority::submit, [s](Store& store) { store.submit(s, kStart); }, answers.expect());
    }
    for (const auto& error : answers.wait()) {
      if (!error) {
        ++stored;
      } else if (kind_of(error) == StoreError::Kind::full) {
        ++refused;
      } else {
        std::cerr << words_of(error) << '\n';
        return 90;
      }
    }
  }
  if (refused == 0) return 91;
  // Room again: the same writer goes on.
  file_limit(before);
  writer.run(Priority::submit, submitting("after"));
  return stored < 80 ? stored : 92;
}

TEST_CASE("writer: a full disk takes nobody's acknowledged work along") {
  const TempFolder folder;
  const int stored = in_child([&] { return fill_disk(folder.file(), 1'500'000); });
  CHECK(stored > 3);
  REQUIRE(stored < 80);
  const auto store = open_store(folder.file(), {}, kStart, true);
  CHECK(store->list_jobs({}, {0, 1000}).size() == static_cast<std::size_t>(stored) + 1);
  CHECK(store->check().empty());
}

}  // namespace
}  // namespace aiq::test
