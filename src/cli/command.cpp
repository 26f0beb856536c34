#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command_node.h"
#include "cli/hints.h"

namespace aiq::cli {
namespace {

using Node = Command::Node;

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words)
    out += (out.empty() ? "" : between) + word;
  return out;
}

// The long options that `node` takes, the global ones included.
std::vector<std::string> flags_of(const Node& node) {
  std::vector<std::string> names;
  for (const Node* at = &node; at != nullptr; at = at->parent) {
    for (const OptionText& option : at->options)
      names.push_back("--" + option.name);
  }
  names.emplace_back("--help");
  return names;
}

Failure usage(const std::string& code, const std::string& message, const std::string& hint) {
  return {Exit::usage, code, message, hint};
}

Failure unknown_word(const Node& node, const std::string& word) {
  if (word.starts_with("-")) {
    const std::string name = word.substr(0, word.find('='));
    const auto guess = nearest(name, flags_of(node));
    return usage("unknown_option", node.path() + " has no option '" + name + "'",
                 guess ? "did you mean '" + *guess + "'?" : node.path() + " --help lists them");
  }
  if (node.children.empty()) {
    return usage("unexpected_argument",
                 node.path() + " does not know what to do with '" + word + "'",
                 node.path() + " --help shows what it takes");
  }
  const auto guess = nearest(word, node.child_names());
  return usage("unknown_command", "there is no command '" + node.path() + " " + word + "'",
               guess ? "did you mean '" + node.path() + " " + *guess + "'?"
                     : node.path() + " --help lists them");
}

const Node* parsed_node(const Node& root) {
  const Node* node = &root;
  for (bool deeper = true; deeper;) {
    deeper = false;
    for (const auto& child : node->children) {
      if (child->app->parsed()) {
        node = child.get();
        deeper = true;
        break;
      }
    }
  }
  return node;
}

// The command that `word` was given to: CLI11 goes on to commands that follow an unknown word.
const Node& receiver(const Node& root, std::vector<std::string> words, const std::string& word) {
  std::reverse(words.begin(), words.end());
  if (word.starts_with("-")) return *parsed_node(root);
  const auto at = std::find(words.rbegin(), words.rend(), word).base();  // behind it
  auto from = words.begin();
  const Node* node = &root;
  while (true) {
    const auto child = std::find_if(node->children.begin(), node->children.end(),
                                    [](const auto& c) { return c->app->parsed(); });
    if (child == node->children.end()) return *node;
    from = std::find(from, words.end(), (*child)->name);
    if (at <= from) return *node;
    node = child->get();
  }
}

// CLI11 begins these messages with the option's name and a colon.
Failure wrong_count(const Node& node, const CLI::ParseError& error) {
  const std::string what = error.what();
  const std::string name = what.substr(0, what.find(':'));
  for (const Node* at = &node; at != nullptr; at = at->parent) {
    const CLI::Option* option = at->app->get_option_no_throw(name);
    if (option == nullptr) continue;
    if (option->count() > 1) {
      return usage("repeated_option", name + " is given more than once", "give it once");
    }
    return usage("missing_value", name + " needs a value",
                 node.path() + " --help shows what it takes");
  }
  return usage("usage", what, node.path() + " --help shows what it takes");
}

std::optional<Failure> missing_operand(const Node& node) {
  for (const OperandText& operand : node.operands) {
    if (operand.required && operand.option->count() == 0) {
      return usage("missing_argument", node.path() + " needs " + operand.name,
                   "usage: " + usage_line(node));
    }
  }
  return std::nullopt;
}

// A value that is none of its fixed set. The code is made of the option's or operand's name.
std::optional<Failure> wrong_value(const std::string& name, ValueKind kind,
                                   const CLI::Option& given) {
  const std::vector<std::string>& allowed = fixed_values(kind);
  if (allowed.empty()) return std::nullopt;
  for (const std::string& value : given.results()) {
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) continue;
    std::string code = "invalid_";
    for (const char c : name.substr(name.find_first_not_of('-')))
      code += c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto guess = nearest(value, allowed);
    return usage(code, name + " cannot be '" + value + "'",
                 guess ? "did you mean '" + *guess + "'?" : "one of " + join(allowed, ", "));
  }
  return std::nullopt;
}

std::optional<Failure> wrong_value(const Node& node) {
  for (const Node* at = &node; at != nullptr; at = at->parent) {
    for (const OptionText& option : at->options) {
      if (auto failure = wrong_value("--" + option.name, option.kind, *option.parsed))
        return failure;
    }
  }
  for (const OperandText& operand : node.operands) {
    if (auto failure = wrong_value(operand.name, operand.kind, *operand.option)) return failure;
  }
  return std::nullopt;
}

// "--name=" means an empty value; CLI11 would take the next word for it.
std::vector<std::string> words_reversed(int argc, const char* const* argv) {
  std::vector<std::string> words;
  bool options = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") options = false;
    if (options && word.size() > 3 && word.starts_with("--") && word.find('=') == word.size() - 1) {
      words.push_back(word.substr(0, word.size() - 1));
      words.emplace_back();
    } else {
      words.push_back(word);
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace

std::string Node::path() const {
  return parent == nullptr ? name : parent->path() + " " + name;
}

const Node* Node::child(const std::string& child_name) const {
  for (const auto& below : children) {
    if (below->name == child_name) return below.get();
  }
  return nullptr;
}

std::vector<std::string> Node::child_names() const {
  std::vector<std::string> names;
  for (const auto& below : children)
    names.push_back(below->name);
  return names;
}

Command Command::add(const std::string& name, const std::string& summary) {
  auto child = std::make_unique<Node>();
  child->name = name;
  child->summary = summary;
  child->heading = node_->next_heading;
  child->parent = node_;
  child->app = node_->app->add_subcommand(name);
  node_->children.push_back(std::move(child));
  return Command(node_->children.back().get());
}

void Command::heading(const std::string& title) {
  node_->next_heading = title;
}

Command& Command::section(const std::string& title) {
  node_->next_section = title;
  return *this;
}

Command& Command::option(const std::string& name, const std::string& value, Text& into,
                         const std::string& help, ValueKind kind) {
  const std::string names = (name == "output" ? "-o,--" : "--") + name;
  auto* parsed = node_->app->add_option(names, [&into](const CLI::results_t& results) {
    into = results.front();
    return true;
  });
  node_->options.push_back({name, value, help, node_->next_section, kind, false, parsed});
  return *this;
}

Command& Command::repeated(const std::string& name, const std::string& value, Texts& into,
                           const std::string& help, ValueKind kind) {
  // One value each time, so that an operand may follow; CLI11 would split a value in brackets.
  auto* parsed = node_->app->add_option("--" + name, into);
  parsed->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  node_->options.push_back({name, value, help, node_->next_section, kind, true, parsed});
  return *this;
}

Command& Command::flag(const std::string& name, bool& into, const std::string& help) {
  auto* parsed = node_->app->add_flag((name == "quiet" ? "-q,--" : "--") + name, into);
  node_->options.push_back({name, "", help, node_->next_section, ValueKind::none, false, parsed});
  return *this;
}

Command& Command::operand(const std::string& name, Text& into, const std::string& help,
                          ValueKind kind) {
  CLI::Option* option = node_->app->add_option(name, [&into](const CLI::results_t& results) {
    into = results.front();
    return true;
  });
  node_->operands.push_back({name, help, true, false, option, kind});
  return *this;
}

Command& Command::operands(const std::string& name, Texts& into, const std::string& help,
                           bool required, ValueKind kind) {
  CLI::Option* option = node_->app->add_option(name, into);
  node_->operands.push_back({name, help, required, true, option, kind});
  return *this;
}

Command& Command::remark(const std::string& text) {
  node_->remarks.push_back(text);
  return *this;
}

void Command::run(std::function<Exit()> action) {
  node_->action = std::move(action);
}

CommandTree::CommandTree(const std::string& program, const std::string& description)
    : root_(std::make_unique<Node>()) {
  root_->name = program;
  root_->summary = description;
  root_->owned = std::make_shared<CLI::App>(description, program);
  root_->app = root_->owned.get();
  root_->app->fallthrough();  // global options may stand anywhere
  root_->app->require_subcommand(0, 1);
  root_->app->set_help_flag("-h,--help");
  root_->app->set_version_flag("--version", program + " " + AIQ_VERSION);
}

CommandTree::~CommandTree() = default;
CommandTree::CommandTree(CommandTree&&) noexcept = default;

Command CommandTree::root() {
  return Command(root_.get());
}

Expected<CommandTree::Parsed, Failure> CommandTree::parse(int argc, const char* const* argv) {
  try {
    root_->app->parse(words_reversed(argc, argv));
  } catch (const CLI::CallForHelp&) {
    return Parsed{nullptr, help_text(*parsed_node(*root_))};
  } catch (const CLI::CallForVersion&) {
    return Parsed{nullptr, root_->name + " " AIQ_VERSION "\n"};
  } catch (const CLI::ExtrasError&) {
    const std::string word = root_->app->remaining(true).front();
    return Unexpected{unknown_word(receiver(*root_, words_reversed(argc, argv), word), word)};
  } catch (const CLI::ArgumentMismatch& error) {
    return Unexpected{wrong_count(*parsed_node(*root_), error)};
  } catch (const CLI::ParseError& error) {
    return Unexpected{usage("usage", error.what(), "aiq --help shows what there is")};
  }
  const Node& node = *parsed_node(*root_);
  if (!node.action) {
    return Unexpected{usage("missing_command", node.path() + " needs a command",
                            node.parent == nullptr ? node.path() + " --help lists them"
                                                   : "one of " + join(node.child_names(), ", "))};
  }
  if (auto failure = missing_operand(node)) return Unexpected{std::move(*failure)};
  if (auto failure = wrong_value(node)) return Unexpected{std::move(*failure)};
  return Parsed{node.action, ""};
}

}  // namespace aiq::cli
