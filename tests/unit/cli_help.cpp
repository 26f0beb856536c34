#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "cli/help_topics.h"
#include "cli/value_kind.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/model/attempt.h"

using namespace aiq;
using namespace aiq::cli;

namespace {

std::string topic(const std::string& name) {
  for (const HelpTopic& page : help_topics()) {
    if (page.name == name) return page.text;
  }
  FAIL("no topic " << name);
  return "";
}

// The line of a table that begins with `word`; "" when there is none.
std::string row(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  " + word + " ")) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("help topics: short, and within 80 columns") {
  std::set<std::string> names;
  for (const HelpTopic& page : help_topics()) {
    CAPTURE(page.name);
    CHECK(names.insert(page.name).second);
    CHECK(page.text.ends_with("\n"));
    CHECK(std::count(page.text.begin(), page.text.end(), '\n') <= 40);
    std::istringstream lines(page.text);
    for (std::string line; std::getline(lines, line);)
      CHECK(line.size() <= 80);
  }
}

TEST_CASE("help topics: every exit code is named") {
  const std::string text = topic("exit-codes");
  for (const Exit exit :
       {Exit::ok, Exit::no, Exit::usage, Exit::not_found, Exit::conflict, Exit::refused,
        Exit::timeout, Exit::busy, Exit::storage, Exit::interrupted, Exit::terminated}) {
    CAPTURE(static_cast<int>(exit));
    CHECK_FALSE(row(text, std::to_string(static_cast<int>(exit))).empty());
  }
  CHECK(row(text, "9").empty());
}

TEST_CASE("help topics: every state, reason and outcome is named") {
  for (const std::string& state : fixed_values(ValueKind::job_state))
    CHECK_FALSE(row(topic("states"), state).empty());
  for (const std::string& reason : fixed_values(ValueKind::letter_reason))
    CHECK_FALSE(row(topic("states"), reason).empty());
  for (const std::string& name : fixed_values(ValueKind::outcome)) {
    CAPTURE(name);
    const std::string line = row(topic("outcomes"), name);
    REQUIRE_FALSE(line.empty());
    CHECK((line.find(" * ") == std::string::npos) == counts(*parse_outcome(name)));
  }
}

TEST_CASE("help topics: every variable that the programs read is named, and no other") {
  const std::string text = topic("environment");
  const std::regex read(R"re((?:env|getenv|xdg_folder)\((?:env, )?"([A-Z_]+)")re");
  std::set<std::string> variables;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(AIQ_SOURCE_DIR "/src")) {
    if (entry.path().extension() != ".cpp") continue;
    const auto file = read_file(entry.path().string(), std::size_t{1} << 20U);
    REQUIRE(file);
    const std::string& source = *file;
    for (std::sregex_iterator at(source.begin(), source.end(), read), end; at != end; ++at)
      variables.insert((*at)[1]);
  }
  CHECK(variables.contains("AIQ_DB"));
  CHECK(variables.contains("XDG_STATE_HOME"));
  for (const std::string& variable : variables) {
    CAPTURE(variable);
    CHECK_FALSE(row(text, variable).empty());
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 3 || line[2] == ' ') continue;
    if (line.starts_with("  ")) CHECK(variables.contains(line.substr(2, line.find(' ', 2) - 2)));
  }
}
