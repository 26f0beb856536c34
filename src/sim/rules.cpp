#include "sim/rules.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <utility>

namespace aiq::sim {

struct Pattern::Compiled {
  regex_t regex{};
  bool usable = false;

  Compiled() = default;
  ~Compiled() {
    if (usable) regfree(&regex);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
};

std::optional<Pattern> Pattern::compile(const std::string& text, std::string& error) {
  auto compiled = std::make_shared<Compiled>();
  const int code = regcomp(&compiled->regex, text.c_str(), REG_EXTENDED | REG_NOSUB);
  if (code != 0) {
    std::array<char, 128> message{};
    regerror(code, &compiled->regex, message.data(), message.size());
    error = message.data();
    return std::nullopt;
  }
  compiled->usable = true;
  Pattern pattern;
  pattern.compiled_ = std::move(compiled);
  return pattern;
}

bool Pattern::found_in(const std::string& text) const {
  return regexec(&compiled_->regex, text.c_str(), 0, nullptr, 0) == 0;
}

namespace {

bool meets_conditions(const Match& match, const Request& request, const ApiRequest& api) {
  if (match.path && *match.path != request.path) return false;
  if (match.model && *match.model != api.model) return false;
  for (const auto& [name, value] : match.headers) {
    if (find_header(request.headers, name) != value) return false;
  }
  if (match.prompt_contains && api.text.find(*match.prompt_contains) == std::string::npos) {
    return false;
  }
  return !match.prompt_regex || match.prompt_regex->found_in(api.text);
}

bool is_nth(const std::vector<Match::Range>& ranges, std::int64_t count) {
  return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [count](const auto& range) {
           return range.from <= count && count <= range.to;
         });
}

}  // namespace

RuleSet::RuleSet(std::vector<Rule> rules, MonoMs loaded_at)
    : rules_(std::move(rules)), counts_(rules_.size()), loaded_at_(loaded_at) {}

const Rule* RuleSet::choose(const Request& request, const ApiRequest& api, MonoMs now) {
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    if (rule.active_for && now - loaded_at_ >= *rule.active_for) continue;
    if (!meets_conditions(rule.match, request, api)) continue;
    const std::int64_t count = ++counts_[i].matched;
    if (chosen || !is_nth(rule.match.nth, count)) continue;
    if (rule.times && counts_[i].used >= *rule.times) continue;
    chosen = i;
  }
  if (!chosen) return nullptr;
  ++counts_[*chosen].used;
  return &rules_[*chosen];
}

}  // namespace aiq::sim
