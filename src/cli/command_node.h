#pragma once
// The inside of the command tree; for command.cpp and help.cpp.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace aiq::cli {

struct OptionText {
  std::string name;   // without dashes
  std::string value;  // placeholder, "" = a flag
  std::string help;
  std::string section;
  ValueKind kind = ValueKind::none;
  bool repeated = false;
  CLI::Option* parsed = nullptr;
};

struct OperandText {
  std::string name;
  std::string help;
  bool required = true;
  bool many = false;
  CLI::Option* option = nullptr;
  ValueKind kind = ValueKind::none;
};

struct Command::Node {
  std::string name, summary, heading, next_heading, next_section;
  Node* parent = nullptr;
  std::shared_ptr<CLI::App> owned;  // of the root; the others belong to their parent's
  CLI::App* app = nullptr;
  std::vector<OptionText> options;
  std::vector<OperandText> operands;
  std::vector<std::string> remarks;
  std::vector<std::unique_ptr<Node>> children;
  std::function<Exit()> action;

  // "aiq cache list"
  [[nodiscard]] std::string path() const;
  // The command below this one of that name; nullptr when there is none.
  [[nodiscard]] const Node* child(const std::string& child_name) const;
  [[nodiscard]] std::vector<std::string> child_names() const;
};

// "aiq wait [options] ID..."
[[nodiscard]] std::string usage_line(const Command::Node& node);
// At most 80 columns wide.
[[nodiscard]] std::string help_text(const Command::Node& node);

}  // namespace aiq::cli
