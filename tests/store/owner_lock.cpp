// One process owns a database, and death frees it.

#include "core/store/owner_lock.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/store/store_error.h"
#include "store/child_process.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

TEST_CASE("owner lock: one holder, also within a process") {
  const TempFolder folder;
  CHECK_FALSE(OwnerLock::holder(folder.file()).has_value());
  auto first = OwnerLock::try_acquire(folder.file(), "aiqd");
  REQUIRE(first.has_value());
  CHECK_FALSE(OwnerLock::try_acquire(folder.file(), "aiq").has_value());
  const auto holder = OwnerLock::holder(folder.file());
  REQUIRE(holder.has_value());
  CHECK(holder->pid == getpid());
  CHECK(holder->program == "aiqd");
  CHECK(OwnerLock::try_acquire(folder.file("other.db"), "aiq").has_value());
  first.reset();
  CHECK(OwnerLock::try_acquire(folder.file(), "aiq").has_value());
}

TEST_CASE("owner lock: passes to the next when its process is killed") {
  const TempFolder folder;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t owner = fork();
  REQUIRE(owner >= 0);
  if (owner == 0) {
    const auto lock = OwnerLock::try_acquire(folder.file(), "aiqd");
    const char word = lock ? 'y' : 'n';
    if (write(ready[1], &word, 1) != 1) _exit(1);
    for (;;)
      pause();
  }
  char word = 0;
  REQUIRE(read(ready[0], &word, 1) == 1);
  CHECK(word == 'y');
  CHECK_FALSE(OwnerLock::try_acquire(folder.file(), "aiq").has_value());
  CHECK(OwnerLock::holder(folder.file())->pid == owner);

  REQUIRE(kill(owner, SIGKILL) == 0);
  REQUIRE(waitpid(owner, nullptr, 0) == owner);
  CHECK_FALSE(OwnerLock::holder(folder.file()).has_value());
  CHECK(OwnerLock::try_acquire(folder.file(), "aiq").has_value());
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("owner lock: is not inherited by a program that is started") {
  const TempFolder folder;
  auto lock = OwnerLock::try_acquire(folder.file(), "aiqd");
  REQUIRE(lock.has_value());
  const pid_t program = fork();
  REQUIRE(program >= 0);
  if (program == 0) {
    execl("/bin/sleep", "sleep", "600", static_cast<char*>(nullptr));
    _exit(127);
  }
  lock.reset();
  // Free as soon as the child has replaced itself.
  bool acquired = false;
  for (int i = 0; i < 2'000 && !acquired; ++i) {
    acquired = OwnerLock::try_acquire(folder.file(), "aiq").has_value();
    if (!acquired) usleep(5'000);
  }
  CHECK(acquired);
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
}

TEST_CASE("owner lock: says why its file can't be made") {
  const TempFolder folder;
  REQUIRE(mkdir((folder.file() + ".lock").c_str(), 0700) == 0);
  try {
    (void)OwnerLock::try_acquire(folder.file(), "aiq");
    FAIL("no StoreError");
  } catch (const StoreError& error) {
    CHECK(error.kind() == StoreError::Kind::readonly);
    CHECK(std::string(error.what()).find(folder.file()) != std::string::npos);
  }
}

}  // namespace
}  // namespace aiq::test
