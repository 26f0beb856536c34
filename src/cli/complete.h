#pragma once
// What may stand next on a command line: the inside of shell completion. Pure; the values that
// only the database knows come from outside.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/command_node.h"
#include "cli/value_kind.h"

namespace aiq::cli {

struct Candidate {
  std::string word;
  std::string about;  // one line; may be empty
};

struct Completion {
  std::vector<Candidate> candidates;
  bool files = false;     // file names, too
  bool no_space = false;  // the word goes on: "team="
};

// Options given before, by name without dashes; for --db and --config.
using GivenOptions = std::map<std::string, std::string>;
// The known values of a kind that is no fixed set.
using Lookup = std::function<std::vector<Candidate>(ValueKind kind, const GivenOptions& given)>;

// `words`: those after the program's name; the last one is being typed and may be empty. Words
// that make no sense are passed over. Candidates begin with what is typed, and are whole words:
// for "--status=qu" that is "--status=queued".
[[nodiscard]] Completion complete(const Command::Node& root, const std::vector<std::string>& words,
                                  const Lookup& lookup);

}  // namespace aiq::cli
