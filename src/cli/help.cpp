#include <algorithm>

#include "cli/command_node.h"
#include "cli/text.h"

namespace aiq::cli {
namespace {

using Node = Command::Node;

constexpr std::size_t kWidth = 79;
constexpr std::size_t kLeftMost = 26;  // left column; longer entries get a line of their own

void append_entry(std::string& out, const std::string& left, const std::string& right) {
  const std::size_t indent = 2 + kLeftMost + 1;
  std::string line = "  " + left;
  if (line.size() >= indent) {
    out += line + '\n';
    line.clear();
  }
  for (const std::string& part : wrap(right, kWidth - indent)) {
    line.append(indent - line.size(), ' ');
    out += line + part + '\n';
    line.clear();
  }
}

std::string left_of(const OptionText& option) {
  const std::string dash = option.name == "quiet"    ? "-q, --"
                           : option.name == "output" ? "-o, --"
                                                     : "--";
  return dash + option.name + (option.value.empty() ? "" : " " + option.value);
}

void append_options(std::string& out, const Node& node, const std::string& default_title) {
  std::vector<std::string> sections;
  for (const OptionText& option : node.options) {
    if (std::find(sections.begin(), sections.end(), option.section) == sections.end()) {
      sections.push_back(option.section);
    }
  }
  for (const std::string& section : sections) {
    out += '\n' + (section.empty() ? default_title : section) + ":\n";
    for (const OptionText& option : node.options) {
      if (option.section == section) append_entry(out, left_of(option), option.help);
    }
  }
}

void append_children(std::string& out, const Node& node) {
  std::string heading = "\n";
  for (const auto& child : node.children) {
    if (child->heading != heading) {
      heading = child->heading;
      out += '\n' + (heading.empty() ? "Commands" : heading) + ":\n";
    }
    append_entry(out, child->name, child->summary);
  }
}

}  // namespace

std::string usage_line(const Node& node) {
  std::string line = node.path();
  if (!node.options.empty()) line += " [options]";
  if (!node.children.empty()) line += " COMMAND";
  for (const OperandText& operand : node.operands) {
    const std::string name = operand.name + (operand.many ? "..." : "");
    line += operand.required ? " " + name : " [" + name + "]";
  }
  return line;
}

std::string help_text(const Node& node) {
  std::string out = "usage: " + usage_line(node) + "\n\n";
  for (const std::string& line : wrap(node.summary, kWidth))
    out += line + '\n';
  if (!node.operands.empty()) {
    out += '\n';
    for (const OperandText& operand : node.operands)
      append_entry(out, operand.name, operand.help);
  }
  append_children(out, node);
  append_options(out, node, node.parent == nullptr ? "Options of every command" : "Options");
  if (node.parent == nullptr) {
    append_entry(out, "-h, --help", "Print this help, or that of a command");
    append_entry(out, "--version", "Print the version");
  }
  for (const std::string& remark : node.remarks) {
    out += '\n';
    for (const std::string& line : wrap(remark, kWidth))
      out += line + '\n';
  }
  if (node.parent == nullptr) {
    out += "\nMore: aiq help TOPIC, and the manual pages aiq(1), aiqd(8), aiq.toml(5).\n";
  } else {
    out += "\nOptions of every command: see aiq --help.\n";
  }
  return out;
}

}  // namespace aiq::cli
