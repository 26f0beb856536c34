#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "cli/command.h"

using namespace aiq;
using namespace aiq::cli;

namespace {

// A small tree of the same shape as aiq's.
struct World {
  Text db, tenant, id, prompt, state;
  Texts labels, ids;
  bool json = false;
  std::string ran;
  CommandTree tree{"aiq", "A test."};

  World() {
    Command root = tree.root();
    root.option("db", "FILE", db, "Database").flag("json", json, "JSON");
    Command list = root.add("list", "list jobs");
    list.option("tenant", "T", tenant, "Tenant").repeated("label", "K=V", labels, "Label");
    list.run(action("list"));
    root.add("show", "show one").operand("ID", id, "Job id").run(action("show"));
    root.add("wait", "wait").operands("ID", ids, "Job ids").run(action("wait"));
    root.add("submit", "submit").option("prompt", "TEXT", prompt, "Prompt").run(action("submit"));
    Command cache = root.add("cache", "the cache");
    cache.add("list", "list entries")
        .option("job-state", "S", state, "State", ValueKind::job_state)
        .run(action("cache list"));
    cache.add("invalidate", "remove entries").run(action("cache invalidate"));
  }

  std::function<Exit()> action(const std::string& name) {
    return [this, name] {
      ran = name;
      return Exit::ok;
    };
  }

  Expected<CommandTree::Parsed, Failure> parse(const std::vector<const char*>& given) {
    std::vector<const char*> words(given.size() + 1, "aiq");
    std::copy(given.begin(), given.end(), words.begin() + 1);
    auto parsed = tree.parse(static_cast<int>(words.size()), words.data());
    if (parsed && parsed->action) static_cast<void>(parsed->action());
    return parsed;
  }

  Failure failure(const std::vector<const char*>& words) {
    auto parsed = parse(words);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().exit == Exit::usage);
    return parsed.error();
  }
};

}  // namespace

TEST_CASE("commands: global options may stand anywhere") {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"--json", "--db", "x", "cache", "list"},
        {"cache", "--json", "list", "--db", "x"},
        {"cache", "list", "--db=x", "--json"}}) {
    World world;
    REQUIRE(world.parse(words));
    CHECK(world.ran == "cache list");
    CHECK(world.json);
    CHECK(world.db == "x");
  }
}

TEST_CASE("commands: option values are taken as they are") {
  for (const char* value : {"", "-5", "--wait", "[a,b]", "{}", "%%", "a=b", "list", "\"q\"", "-"}) {
    CAPTURE(value);
    World world;
    REQUIRE(world.parse({"submit", "--prompt", value}));
    CHECK(world.prompt == value);
    World labelled;
    REQUIRE(labelled.parse({"list", "--label", value}));
    CHECK(labelled.labels == Texts{value});
  }
}

TEST_CASE("commands: an empty value after the equals sign does not swallow the next word") {
  World world;
  REQUIRE(world.parse({"list", "--tenant=", "--json"}));
  CHECK(world.tenant == "");
  CHECK(world.json);
}

TEST_CASE("commands: repeated options keep their order, operands may be named like commands") {
  World world;
  REQUIRE(world.parse({"list", "--label", "a=1", "--label", "b=2"}));
  CHECK(world.labels == Texts{"a=1", "b=2"});
  World shown;
  REQUIRE(shown.parse({"show", "list"}));
  CHECK(shown.ran == "show");
  CHECK(shown.id == "list");
  World waited;
  REQUIRE(waited.parse({"wait", "1", "2", "--json", "3"}));
  CHECK(waited.ids == Texts{"1", "2", "3"});
}

TEST_CASE("commands: what is unknown gets a hint") {
  CHECK(World().failure({"lsit"}).code == "unknown_command");
  CHECK(World().failure({"lsit"}).hint == "did you mean 'aiq list'?");
  CHECK(World().failure({"cache", "invaldate"}).hint == "did you mean 'aiq cache invalidate'?");
  // The unknown word is what is wrong, not the known command behind it.
  CHECK(World().failure({"lsit", "list"}).code == "unknown_command");
  CHECK(World().failure({"lsit", "list"}).message == "there is no command 'aiq lsit'");
  CHECK(World().failure({"cache", "foo", "invalidate"}).message ==
        "there is no command 'aiq cache foo'");
  CHECK(World().failure({"list", "17"}).message == "aiq list does not know what to do with '17'");
  CHECK(World().failure({"list", "--tennant", "x"}).code == "unknown_option");
  CHECK(World().failure({"list", "--tennant", "x"}).hint == "did you mean '--tenant'?");
  CHECK(World().failure({"list", "--jsno"}).hint == "did you mean '--json'?");
  CHECK(World().failure({"list", "17"}).code == "unexpected_argument");
}

TEST_CASE("commands: a value that is none of its fixed set gets a hint") {
  CHECK(World().failure({"cache", "list", "--job-state", "quued"}).code == "invalid_job_state");
  CHECK(World().failure({"cache", "list", "--job-state", "quued"}).message ==
        "--job-state cannot be 'quued'");
  CHECK(World().failure({"cache", "list", "--job-state=quued"}).hint == "did you mean 'queued'?");
  CHECK(World().failure({"cache", "list", "--job-state", "x"}).hint ==
        "one of queued, processing, retrying, completed, failed, dead_lettered, cancelled");
  CHECK(World().failure({"cache", "list", "--job-state", ""}).code == "invalid_job_state");
  World world;
  REQUIRE(world.parse({"cache", "list", "--job-state", "queued"}));
  CHECK(world.state == "queued");
}

TEST_CASE("commands: nested ones get a hint for their options, too") {
  CHECK(World().failure({"cache", "list", "--job-sate", "x"}).hint ==
        "did you mean '--job-state'?");
  CHECK(World().failure({"cache", "lsit"}).hint == "did you mean 'aiq cache list'?");
}

TEST_CASE("commands: what is missing or too much is named") {
  CHECK(World().failure({}).code == "missing_command");
  CHECK(World().failure({"cache"}).hint == "one of list, invalidate");
  CHECK(World().failure({"show"}).message == "aiq show needs ID");
  CHECK(World().failure({"wait"}).code == "missing_argument");
  CHECK(World().failure({"list", "--tenant"}).code == "missing_value");
  CHECK(World().failure({"list", "--tenant", "a", "--tenant", "b"}).code == "repeated_option");
  CHECK(World().failure({"show", "1", "2"}).code == "unexpected_argument");
}

TEST_CASE("help: of the command named, within 80 columns, without running anything") {
  World world;
  const auto help = world.parse({"cache", "--help"});
  REQUIRE(help);
  CHECK(world.ran.empty());
  CHECK(help->text.find("usage: aiq cache COMMAND") == 0);
  CHECK(help->text.find("invalidate") != std::string::npos);
  std::istringstream lines(help->text);
  for (std::string line; std::getline(lines, line);)
    CHECK(line.size() <= 80);
  CHECK(World().parse({"--version"})->text.find("aiq ") == 0);
  CHECK(World().parse({"show", "-h"})->text.find("usage: aiq show ID") == 0);
}
