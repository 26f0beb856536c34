#include "cli/complete.h"

#include <algorithm>
#include <set>

#include "cli/help_topics.h"

namespace aiq::cli {
namespace {

using Node = Command::Node;

const OptionText* find_option(const Node& node, const std::string& name) {
  for (const Node* at = &node; at != nullptr; at = at->parent) {
    for (const OptionText& option : at->options) {
      if (option.name == name) return &option;
    }
  }
  return nullptr;
}

// Where the word that is being typed stands.
struct Place {
  const Node* node = nullptr;
  const OptionText* value_of = nullptr;  // the word is the value of this option
  bool options_over = false;             // after "--"
  std::vector<std::string> operands;     // before the word
  GivenOptions given;
  std::set<std::string> flags;  // options before the word, with and without value
};

void take_option(Place& place, const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
  place.flags.insert(name);
  const OptionText* option = find_option(*place.node, name);
  if (option == nullptr) return;
  if (equals != std::string::npos) {
    place.given[name] = word.substr(equals + 1);
  } else if (!option->value.empty()) {
    place.value_of = option;
  }
}

void take_word(Place& place, const std::string& word) {
  if (place.value_of != nullptr) {
    place.given[place.value_of->name] = word;
    place.value_of = nullptr;
  } else if (!place.options_over && word == "--") {
    place.options_over = true;
  } else if (!place.options_over && word.starts_with("--")) {
    take_option(place, word);
  } else if (!place.options_over && word.size() > 1 && word.starts_with("-")) {
    return;  // short ones take no value
  } else if (const Node* child = place.node->child(word); child != nullptr) {
    place.node = child;
  } else {
    place.operands.push_back(word);
  }
}

void offer(Completion& out, const std::string& typed, const std::string& word,
           const std::string& about) {
  if (word.starts_with(typed)) out.candidates.push_back({word, about});
}

void offer_commands(Completion& out, const Node& node, const std::string& typed) {
  for (const auto& child : node.children)
    offer(out, typed, child->name, child->summary);
}

void offer_options(Completion& out, const Place& place, const std::string& typed) {
  for (const Node* at = place.node; at != nullptr; at = at->parent) {
    for (const OptionText& option : at->options) {
      if (option.repeated || !place.flags.contains(option.name)) {
        offer(out, typed, "--" + option.name, option.help);
      }
    }
  }
  offer(out, typed, "--help", "Print the help of this command");
  if (place.node->parent == nullptr) offer(out, typed, "--version", "Print the version");
}

// After `aiq help`: pages, or one command after the other down the tree.
void offer_topics(Completion& out, const Place& place, const std::string& typed) {
  const Node* at = place.node;
  while (at->parent != nullptr)
    at = at->parent;
  for (const std::string& word : place.operands) {
    at = at->child(word);
    if (at == nullptr) return;
  }
  offer_commands(out, *at, typed);
  if (at->parent != nullptr) return;
  for (const HelpTopic& topic : help_topics())
    offer(out, typed, topic.name, topic.summary);
}

// `before`: what stands in the same word before the value.
void offer_values(Completion& out, const Place& place, ValueKind kind, const std::string& before,
                  const std::string& typed, const Lookup& lookup) {
  if (kind == ValueKind::none) return;
  if (kind == ValueKind::topic) return offer_topics(out, place, typed);
  out.files = kind == ValueKind::file || kind == ValueKind::job_or_file;
  out.no_space = kind == ValueKind::label && typed.find('=') == std::string::npos;
  for (const std::string& value : fixed_values(kind))
    offer(out, before + typed, before + value, "");
  if (!fixed_values(kind).empty() || kind == ValueKind::file) return;
  for (const Candidate& candidate : lookup(kind, place.given))
    offer(out, before + typed, before + candidate.word, candidate.about);
}

ValueKind operand_kind(const Place& place) {
  const std::vector<OperandText>& operands = place.node->operands;
  if (operands.empty()) return ValueKind::none;
  if (place.operands.size() < operands.size()) return operands[place.operands.size()].kind;
  return operands.back().many ? operands.back().kind : ValueKind::none;
}

// An operand that stands already is not offered again.
void drop_given(Completion& out, const Place& place) {
  std::erase_if(out.candidates, [&](const Candidate& candidate) {
    return std::find(place.operands.begin(), place.operands.end(), candidate.word) !=
           place.operands.end();
  });
}

}  // namespace

Completion complete(const Node& root, const std::vector<std::string>& words, const Lookup& lookup) {
  Completion out;
  if (words.empty()) return out;
  Place place{.node = &root};
  for (auto word = words.begin(); word + 1 != words.end(); ++word)
    take_word(place, *word);
  const std::string& typed = words.back();
  if (place.value_of != nullptr) {
    offer_values(out, place, place.value_of->kind, "", typed, lookup);
    return out;
  }
  if (!place.options_over && typed.starts_with("-")) {
    const std::size_t equals = typed.find('=');
    if (equals == std::string::npos || !typed.starts_with("--")) {
      offer_options(out, place, typed);
    } else if (const auto* option = find_option(*place.node, typed.substr(2, equals - 2))) {
      offer_values(out, place, option->kind, typed.substr(0, equals + 1), typed.substr(equals + 1),
                   lookup);
    }
    return out;
  }
  offer_commands(out, *place.node, typed);
  offer_values(out, place, operand_kind(place), "", typed, lookup);
  drop_given(out, place);
  return out;
}

}  // namespace aiq::cli
