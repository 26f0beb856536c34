#include <doctest/doctest.h>

#include "cli/hints.h"

using namespace aiq::cli;

TEST_CASE("hint: the nearest name, when one is near") {
  const std::vector<std::string> commands = {"submit", "run", "list", "show", "result", "resume"};
  CHECK(nearest("sbumit", commands) == "submit");
  CHECK(nearest("submti", commands) == "submit");
  CHECK(nearest("lsit", commands) == "list");
  CHECK(nearest("resul", commands) == "result");
  CHECK(nearest("resumé", commands) == "resume");
  CHECK_FALSE(nearest("frobnicate", commands));
  CHECK_FALSE(nearest("", commands));
}

TEST_CASE("hint: the only name that begins with what was typed") {
  CHECK(nearest("inval", {"invalidate", "list", "show"}) == "invalidate");
  CHECK_FALSE(nearest("re", {"result-one", "result-two"}));
}

TEST_CASE("hint: options with their dashes") {
  const std::vector<std::string> options = {"--tenant", "--model", "--max-tokens", "--no-cache"};
  CHECK(nearest("--tennant", options) == "--tenant");
  CHECK(nearest("--max-token", options) == "--max-tokens");
  CHECK(nearest("--nocache", options) == "--no-cache");
  CHECK_FALSE(nearest("--zzzzzz", options));
}
