// The work at the end of a group: in its commit, and apart from its failures.

#include <atomic>

#include "store/writer_fixture.h"

namespace aiq::test {
namespace {

struct TailLog {
  std::atomic<int> ran{0}, committed{0}, failed{0};
};

TEST_CASE("tail: shares the commit of a group and follows it") {
  TailLog log;  // what the tail touches outlives the writer
  Gate committed;
  OnDisk disk(patient());
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
  Gate committed;
  OnDisk disk;
  disk.writer.set_tail({[](Store& store) { store.mark_proven("openai"); },
                        [&] { committed.open(); }, [](std::exception_ptr) {}});
  disk.writer.wake_tail();
  committed.pass();
  CHECK(open_reader(disk.folder.file())->stats(kStart).vendors.at(0).proven);
}

TEST_CASE("tail: its failure takes no operation along, theirs makes it run again") {
  TailLog log;
  std::atomic<bool> broken{true};
  Gate failed;
  Gate committed;
  OnDisk disk(patient());
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

}  // namespace
}  // namespace aiq::test
