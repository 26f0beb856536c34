#pragma once
// Runs a part of a test in a process of its own: limits, users and deaths are for a whole process.

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <iostream>

namespace aiq::test {

// The exit status of `part`, an int function; 99 when it throws. No thread may run beside.
template <class Part>
int in_child(Part part) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    int code = 99;
    try {
      code = part();
    } catch (const std::exception& error) {
      std::cerr << "in the child: " << error.what() << '\n';
    }
    _exit(code);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

}  // namespace aiq::test
