#pragma once
// The pages of `aiq help TOPIC` that are about no single command.

#include <span>
#include <string>

namespace aiq::cli {

struct HelpTopic {
  std::string name;     // as it is typed
  std::string summary;  // one line, lower case, no full stop
  std::string text;     // at most 40 lines of 80 columns, ends with a newline
};

// In the order in which `aiq help` shows them.
[[nodiscard]] std::span<const HelpTopic> help_topics();

}  // namespace aiq::cli
