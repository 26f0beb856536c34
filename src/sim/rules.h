#pragma once
// Rules: which requests get another treatment than the usual answer, and which one.
// The form of the JSON file is described in aiq-sim(1).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/base/expected.h"
#include "sim/api_request.h"
#include "sim/message.h"

namespace aiq::sim {

// A POSIX extended regular expression.
class Pattern {
 public:
  // nullopt when it can't be compiled; `error` then says why.
  [[nodiscard]] static std::optional<Pattern> compile(const std::string& text, std::string& error);
  [[nodiscard]] bool found_in(const std::string& text) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

struct Match {
  std::optional<std::string> path;
  std::optional<std::string> model;
  std::optional<std::string> prompt_contains;  // in all text content of the request
  std::optional<Pattern> prompt_regex;
  Headers headers;  // names in lower case; each must be there with exactly this value

  // Which of the requests that meet the other conditions, counted from 1. Empty = all.
  struct Range {
    std::int64_t from;
    std::int64_t to;
  };
  std::vector<Range> nth;
};

// Where the body comes from.
enum class BodyKind { usual, given, invalid_json, empty, html };

// How the exchange ends. cut: less bytes than Content-Length promised. cut_chunked: no last chunk.
// close: no byte at all. reset: no byte, and a TCP reset.
enum class Ending { complete, cut, cut_chunked, close, reset };

struct Act {
  std::optional<int> status;
  Headers headers;
  BodyKind body_kind = BodyKind::usual;
  std::string body;                 // of kind given
  bool body_is_json = false;        // `body` was given as JSON, not as a string
  std::optional<DurationMs> delay;  // before the first byte; unset = the usual latency
  DurationMs body_delay = 0;        // in the middle of the body
  Ending ending = Ending::complete;
  std::optional<std::int64_t> cut_at;  // bytes of the body to send; unset = half
  bool hold = false;                   // until released
  bool echo_secret = false;            // answer with the credential that was received
  bool usage_given = false;
  Json usage;  // null = leave usage out
};

struct Rule {
  std::string name;
  Match match;
  Act act;
  std::optional<std::int64_t> times;     // at most so many uses
  std::optional<DurationMs> active_for;  // since the rules were loaded
};

// Reads {"rules":[...]}. The error is one sentence with the place: "rules[2].act.delay: ...".
[[nodiscard]] Expected<std::vector<Rule>, std::string> parse_rules(std::string_view text);

// Rules in use, with their counters. Not thread-safe.
class RuleSet {
 public:
  struct Counts {
    std::int64_t matched = 0;  // requests that met all conditions but `nth`
    std::int64_t used = 0;
  };

  RuleSet() = default;
  RuleSet(std::vector<Rule> rules, MonoMs loaded_at);

  // The first rule that applies, or nullptr. Counts the request for every rule whose conditions it
  // meets, also for those behind the first. The pointer lives as long as this object is unchanged.
  [[nodiscard]] const Rule* choose(const Request& request, const ApiRequest& api, MonoMs now);

  [[nodiscard]] const std::vector<Rule>& rules() const { return rules_; }
  [[nodiscard]] const std::vector<Counts>& counts() const { return counts_; }

 private:
  std::vector<Rule> rules_;
  std::vector<Counts> counts_;
  MonoMs loaded_at_ = 0;
};

}  // namespace aiq::sim
