#include "cli/complete.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace aiq;
using namespace aiq::cli;

namespace {

using Words = std::vector<std::string>;

struct World {
  Text db, status, prompt, file, shell;
  Texts labels, ids, topics;
  bool force = false, json = false;
  ValueKind asked = ValueKind::none;
  GivenOptions given;
  CommandTree tree{"aiq", "A test."};

  World() {
    Command root = tree.root();
    root.option("db", "FILE", db, "Database", ValueKind::file).flag("json", json, "JSON");
    Command list = root.add("list", "list jobs");
    list.option("status", "S", status, "State", ValueKind::job_state)
        .repeated("label", "K=V", labels, "Label", ValueKind::label);
    Command submit = root.add("submit", "submit");
    submit.option("prompt", "TEXT", prompt, "Prompt");
    root.add("cancel", "cancel")
        .operands("ID", ids, "Job ids", false, ValueKind::live_job)
        .flag("force", force, "Force");
    Command db_command = root.add("db", "the database");
    db_command.add("backup", "copy").operand("FILE", file, "Copy", ValueKind::file);
    db_command.add("check", "check");
    root.add("completion", "scripts").operand("SHELL", shell, "Shell", ValueKind::shell);
    root.add("help", "explain").operands("TOPIC", topics, "Topic", false, ValueKind::topic);
  }

  Completion all(const Words& words) {
    return complete(tree.root().node(), words, [this](ValueKind kind, const GivenOptions& options) {
      asked = kind;
      given = options;
      return std::vector<Candidate>{{"17", "queued"}, {"18", "queued"}, {"team=", ""}};
    });
  }

  Words words(const Words& typed) {
    Words out;
    for (const Candidate& candidate : all(typed).candidates)
      out.push_back(candidate.word);
    return out;
  }
};

}  // namespace

TEST_CASE("completion: commands and those below them") {
  World world;
  CHECK(world.words({""}) == Words{"list", "submit", "cancel", "db", "completion", "help"});
  CHECK(world.words({"c"}) == Words{"cancel", "completion"});
  CHECK(world.words({"db", ""}) == Words{"backup", "check"});
  CHECK(world.words({"--json", "--db", "x", "db", "ch"}) == Words{"check"});
  CHECK(world.all({"su"}).candidates.at(0).about == "submit");
  CHECK(world.words({"nothing", ""}).size() == 6);  // an unknown word is passed over
  CHECK(world.words({}).empty());
}

TEST_CASE("completion: options, the global ones too, but none that is given already") {
  World world;
  CHECK(world.words({"list", "--"}) == Words{"--status", "--label", "--db", "--json", "--help"});
  CHECK(world.words({"list", "--json", "--status=queued", "--label", "a=b", "-"}) ==
        Words{"--label", "--db", "--help"});
  CHECK(world.words({"--v"}) == Words{"--version"});
  CHECK(world.words({"cancel", "--", "--f"}).empty());
}

TEST_CASE("completion: values of fixed sets, as a word and after the equals sign") {
  World world;
  CHECK(world.words({"list", "--status", "c"}) == Words{"completed", "cancelled"});
  CHECK(world.words({"list", "--status=comp"}) == Words{"--status=completed"});
  CHECK(world.words({"list", "--status", ""}).size() == 7);
  CHECK(world.words({"completion", ""}) == Words{"bash", "zsh", "fish"});
  CHECK(world.words({"completion", "bash", ""}).empty());
}

TEST_CASE("completion: values that the database knows, in the one that --db names") {
  World world;
  CHECK(world.words({"--db", "other.db", "cancel", "1"}) == Words{"17", "18"});
  CHECK(world.asked == ValueKind::live_job);
  CHECK(world.given.at("db") == "other.db");
  CHECK(world.words({"cancel", "17", "--force", "1"}) == Words{"18"});
  CHECK(world.words({"--db=third.db", "cancel", ""}).size() == 3);
  CHECK(world.given.at("db") == "third.db");
}

TEST_CASE("completion: a label goes on after its key") {
  World world;
  CHECK(world.all({"list", "--label", "te"}).no_space);
  CHECK(world.words({"list", "--label", "te"}) == Words{"team="});
  CHECK_FALSE(world.all({"list", "--label", "team=x"}).no_space);
}

TEST_CASE("completion: files, and nothing for free text") {
  World world;
  CHECK(world.all({"--db", ""}).files);
  CHECK(world.all({"--db="}).files);
  CHECK(world.all({"db", "backup", "x"}).files);
  CHECK_FALSE(world.all({"db", "backup", "x", ""}).files);
  const Completion text = world.all({"submit", "--prompt", ""});
  CHECK(text.candidates.empty());
  CHECK_FALSE(text.files);
  CHECK(world.asked == ValueKind::none);
}

TEST_CASE("completion: help goes down the tree, and knows its topics") {
  World world;
  CHECK(world.words({"help", "db", ""}) == Words{"backup", "check"});
  CHECK(world.words({"help", "exit"}) == Words{"exit-codes"});
  CHECK(world.words({"help", "l"}) == Words{"list", "limits"});
  CHECK(world.words({"help", "exit-codes", ""}).empty());
}
