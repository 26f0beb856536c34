// What was acknowledged outlives the death of its process and a full disk.

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "store/child_process.h"
#include "store/writer_fixture.h"

namespace aiq::test {
namespace {

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
