// aiq help

#include <algorithm>

#include "cli/command_node.h"
#include "cli/commands.h"
#include "cli/help_topics.h"
#include "cli/hints.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

using Node = Command::Node;

const HelpTopic* find_topic(const std::string& name) {
  const auto topics = help_topics();
  const auto found = std::find_if(topics.begin(), topics.end(),
                                  [&](const HelpTopic& topic) { return topic.name == name; });
  return found == topics.end() ? nullptr : &*found;
}

[[noreturn]] void fail_topic(const Node& at, const std::string& word) {
  std::vector<std::string> names = at.child_names();
  if (at.parent == nullptr) {
    for (const HelpTopic& topic : help_topics())
      names.push_back(topic.name);
  }
  const std::string before = at.parent == nullptr ? "" : at.path().substr(4) + " ";
  const auto guess = nearest(word, names);
  fail_usage("unknown_topic", "there is no help for '" + before + word + "'",
             guess ? "did you mean 'aiq help " + before + *guess + "'?" : "aiq help lists it all");
}

std::string text_of(const Node& root, const Texts& words) {
  if (words.size() == 1) {
    if (const HelpTopic* topic = find_topic(words[0])) return topic->text;
  }
  const Node* at = &root;
  for (const std::string& word : words) {
    const Node* child = at->child(word);
    if (child == nullptr) fail_topic(*at, word);
    at = child;
  }
  return help_text(*at);
}

Exit help(Session& session, const Node& root, const Texts& words) {
  const std::string text = text_of(root, words);
  if (session.out.json()) {
    std::string topic;
    for (const std::string& word : words)
      topic += (topic.empty() ? "" : " ") + word;
    session.out.object({{"topic", topic}, {"text", text}});
  } else {
    session.out.text(text);
  }
  return Exit::ok;
}

}  // namespace

void add_help(Command root, Session& session) {
  const auto words = std::make_shared<Texts>();
  Command command = root.add("help", "explain a command, or a topic");
  command.operands("TOPIC", *words, "A command, such as cache list, or one of the topics below",
                   false, ValueKind::topic);
  std::string topics;
  for (const HelpTopic& topic : help_topics())
    topics += (topics.empty() ? "Topics: " : ", ") + topic.name;
  command.remark(topics + ".");
  command.run([&session, root, words] { return help(session, root.node(), *words); });
}

}  // namespace aiq::cli
