#include "core/base/log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/base/json_canonical.h"
#include "core/base/redact.h"

using namespace aiq;

namespace {

// A log in a file of its own; standard error again afterwards.
class TestLog {
 public:
  explicit TestLog(bool json = true, LogLevel level = LogLevel::debug) {
    std::string pattern = (std::filesystem::temp_directory_path() / "aiq-log-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    log_init({.level = level, .json = json, .file = path()});
  }
  ~TestLog() {
    log_init({});
    std::filesystem::remove_all(folder_);
  }
  TestLog(const TestLog&) = delete;
  TestLog& operator=(const TestLog&) = delete;

  [[nodiscard]] std::string path(const std::string& name = "log") const {
    return folder_ + "/" + name;
  }
  [[nodiscard]] std::string text(const std::string& name = "log") const {
    std::ostringstream out;
    out << std::ifstream(path(name)).rdbuf();
    return out.str();
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> out;
    std::istringstream in(text());
    for (std::string line; std::getline(in, line);)
      out.push_back(line);
    return out;
  }

 private:
  std::string folder_;
};

// The line without its time, after a check of it.
std::string after_time(const std::string& line, const std::string& before, UnixMs since) {
  REQUIRE(line.starts_with(before));
  const std::string time = line.substr(before.size(), 24);
  const auto at = parse_rfc3339(time);
  REQUIRE_MESSAGE(at.has_value(), time);
  CHECK(format_rfc3339(*at) == time);
  CHECK(*at >= since);
  CHECK(*at <= system_clock().wall_ms());
  return line.substr(before.size() + 24);
}

}  // namespace

TEST_CASE("log: one JSON object per line, with all kinds of values") {
  const TestLog log;
  const UnixMs since = system_clock().wall_ms();
  log_warn("it \"broke\"\nhere", {{"job_id", "17"},
                                  {"attempt", 3},
                                  {"upstream_ms", 1.5},
                                  {"ratio", std::numeric_limits<double>::infinity()},
                                  {"posted", true},
                                  {"model", "caf\xC3\xA9 \xFF"}});
  REQUIRE(log.lines().size() == 1);
  const std::string line = log.lines().front();
  CHECK(
      after_time(line, R"({"ts":")", since) ==
      R"(","level":"warn","msg":"it \"broke\"\nhere","job_id":"17","attempt":3,)"
      "\"upstream_ms\":1.5,\"ratio\":null,\"posted\":true,\"model\":\"caf\xC3\xA9 \xEF\xBF\xBD\"}");
  CHECK(canonicalize_json(line).has_value());
}

TEST_CASE("log: text for people, one line whatever the message") {
  const TestLog log(false);
  const UnixMs since = system_clock().wall_ms();
  log_info("started\n\x1B[2Jforged", {{"model", "m-1"}, {"note", "two words"}, {"empty", ""}});
  REQUIRE(log.lines().size() == 1);
  CHECK(after_time(log.lines().front(), "", since) ==
        R"( info  started\n\u001b[2Jforged model=m-1 note="two words" empty="")");
}

TEST_CASE("log: levels below the limit are not written") {
  const TestLog log(true, LogLevel::warn);
  struct Row {
    LogLevel limit;
    std::size_t lines;
  };
  const Row rows[] = {
      {LogLevel::error, 1}, {LogLevel::warn, 2}, {LogLevel::info, 3}, {LogLevel::debug, 4}};
  CHECK_FALSE(log_enabled(LogLevel::info));
  CHECK(log_enabled(LogLevel::warn));
  for (const Row& row : rows) {
    const std::size_t before = log.lines().size();
    log_set_level(row.limit);
    log_debug("d");
    log_info("i");
    log_warn("w");
    log_error("e");
    CHECK(log.lines().size() - before == row.lines);
  }
}

TEST_CASE("log: no secret at any level, in any value") {
  register_secret("log\"secret\"77");
  for (const bool json : {true, false}) {
    const TestLog log(json);
    log_debug("got log\"secret\"77", {{"model", "x log\"secret\"77"}});
    log_error("header Authorization: Bearer qqqqqq", {{"model", "sk-qqqqqqqqqq"}});
    const std::string text = log.text();
    CHECK(text.find("secret") == std::string::npos);
    CHECK(text.find("qqqq") == std::string::npos);
    CHECK(text.find("[redacted]") != std::string::npos);
    for (const std::string& line : log.lines()) {
      if (json) CHECK(canonicalize_json(line).has_value());
    }
  }
}

TEST_CASE("log: the file is for its owner only") {
  const TestLog log;
  struct stat info {};
  REQUIRE(stat(log.path().c_str(), &info) == 0);
  CHECK((info.st_mode & 07777U) == 0600);
}

TEST_CASE("log: after rotation new lines go to the new file") {
  const TestLog log;
  log_info("one");
  std::filesystem::rename(log.path(), log.path("log.1"));
  log_info("two");
  log_reopen();
  log_info("three");
  CHECK(log.text("log.1").find("one") != std::string::npos);
  CHECK(log.text("log.1").find("two") != std::string::npos);
  CHECK(log.text("log.1").find("three") == std::string::npos);
  CHECK(log.text().find("three") != std::string::npos);
  CHECK(log.lines().size() == 1);
}

TEST_CASE("log: keeps the old file when the new one can't be opened") {
  const TestLog log;
  std::filesystem::rename(log.path(), log.path("log.1"));
  std::filesystem::create_directory(log.path());
  log_reopen();
  log_info("still here");
  CHECK(log.text("log.1").find("still here") != std::string::npos);
}

TEST_CASE("log: what can't be opened is an error at the start and leaves the log as it was") {
  const TestLog log;
  CHECK_THROWS_AS(log_init({.file = log.path("none/log")}), std::runtime_error);
  log_info("as before");
  CHECK(log.lines().size() == 1);
}

TEST_CASE("log: on a full disk lines go to standard error") {
  const TestLog log;
  const int saved = dup(STDERR_FILENO);
  const int file = open(log.path("stderr").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(dup2(file, STDERR_FILENO) == STDERR_FILENO);
  log_init({.file = "/dev/full"});
  log_info("no space");
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(file);
  CHECK(log.text("stderr").find(R"("msg":"no space")") != std::string::npos);
}

TEST_CASE("log: lines of many threads don't mix") {
  const TestLog log;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 250; ++i) {
          log_info("line", {{"t", std::int64_t{t}}, {"pad", std::string(200, 'p')}});
          if (i == 100) log_reopen();
        }
      });
    }
  }
  const std::vector<std::string> lines = log.lines();
  CHECK(lines.size() == 1'000);
  for (const std::string& line : lines)
    REQUIRE(canonicalize_json(line).has_value());
}
