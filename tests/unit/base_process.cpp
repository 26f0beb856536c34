#include "core/base/process.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace aiq;

TEST_CASE("process: its name lives as long as it does") {
  const std::string own = process_name();
  CHECK(process_lives(own));
  CHECK(process_lives(own + ":a1b2"));
  CHECK_FALSE(process_lives(own + "1"));  // another start
  CHECK_FALSE(process_lives(""));
  CHECK_FALSE(process_lives("1"));
  CHECK_FALSE(process_lives("../self:1"));

  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string name = process_name();
    (void)!::write(pipe[1], name.data(), name.size());
    ::close(pipe[1]);
    ::pause();
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string name(64, '\0');
  const ssize_t got = ::read(pipe[0], name.data(), name.size());
  ::close(pipe[0]);
  REQUIRE(got > 0);
  name.resize(static_cast<std::size_t>(got));
  CHECK(process_lives(name));
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_FALSE(process_lives(name));
}
