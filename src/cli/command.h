#pragma once
// The command tree: which commands exist, what options they take, what runs them. Hides CLI11, so
// that the files of the commands hold nothing but what they do. Help texts come from here.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/value_kind.h"
#include "core/base/errors.h"
#include "core/base/expected.h"

namespace aiq::cli {

using Text = std::optional<std::string>;
using Texts = std::vector<std::string>;

// One command or group of commands. A handle: copies name the same node.
class Command {
 public:
  // A command below this one. `summary`: one line, lower case, no full stop.
  Command add(const std::string& name, const std::string& summary);
  // The heading under which the commands added next stand in --help.
  void heading(const std::string& title);

  // Options stand under the last section() in --help. `value`: placeholder of the value. `kind`:
  // what completion offers for it; of a fixed set, parse() takes no other value.
  Command& section(const std::string& title);
  Command& option(const std::string& name, const std::string& value, Text& into,
                  const std::string& help, ValueKind kind = ValueKind::none);
  Command& repeated(const std::string& name, const std::string& value, Texts& into,
                    const std::string& help, ValueKind kind = ValueKind::none);
  Command& flag(const std::string& name, bool& into, const std::string& help);
  // Operands, in order; always required.
  Command& operand(const std::string& name, Text& into, const std::string& help,
                   ValueKind kind = ValueKind::none);
  Command& operands(const std::string& name, Texts& into, const std::string& help,
                    bool required = true, ValueKind kind = ValueKind::none);
  // Further words at the end of --help.
  Command& remark(const std::string& text);

  void run(std::function<Exit()> action);

  struct Node;
  explicit Command(Node* node) : node_(node) {}
  // For help and completion, which read the whole tree.
  [[nodiscard]] const Node& node() const { return *node_; }

 private:
  Node* node_;
};

class CommandTree {
 public:
  CommandTree(const std::string& program, const std::string& description);
  ~CommandTree();
  CommandTree(CommandTree&&) noexcept;
  [[nodiscard]] Command root();

  struct Parsed {
    std::function<Exit()> action;  // null: print `text` and be done
    std::string text;
  };
  // Failures: exit 2, with a hint when a command or option looks like a known one.
  [[nodiscard]] Expected<Parsed, Failure> parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<Command::Node> root_;
};

}  // namespace aiq::cli
