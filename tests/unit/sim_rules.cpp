#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/rules.h"

using namespace aiq::sim;

namespace {

Request chat(const std::string& text, const std::string& model = "m", Headers headers = {}) {
  Json body = {{"model", model},
               {"messages", Json::array({{{"role", "user"}, {"content", text}}})}};
  return {"POST", "/v1/chat/completions", std::move(headers), body.dump()};
}

RuleSet rules_of(const std::string& list) {
  auto rules = parse_rules("{\"rules\":[" + list + "]}");
  if (!rules) FAIL(rules.error());
  return RuleSet(std::move(*rules), 0);
}

// The name of the rule that applies, or "".
std::string choose(RuleSet& rules, const Request& request, aiq::MonoMs now = 0) {
  const Rule* rule = rules.choose(request, read_api_request(request), now);
  return rule == nullptr ? "" : rule->name;
}

}  // namespace

TEST_CASE("sim rules: what is not understood is an error with its place") {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"{", "byte"},
      {"[]", "expected an object"},
      {"{}", "rules: expected a list"},
      {R"({"rules":[],"more":1})", "unknown key 'more'"},
      {R"({"rules":[{}]})", "rules[0]: 'act' is missing"},
      {R"({"rules":[{"act":{}},{"act":{},"matches":{}}]})", "rules[1]: unknown key 'matches'"},
      {R"({"rules":[{"act":{"stauts":500}}]})", "rules[0].act: unknown key 'stauts'"},
      {R"({"rules":[{"act":{"status":"500"}}]})", "rules[0].act.status"},
      {R"({"rules":[{"act":{"status":700}}]})", "rules[0].act.status"},
      {R"({"rules":[{"act":{"delay":"200"}}]})", "rules[0].act.delay"},
      {R"({"rules":[{"act":{"delay":200}}]})", "rules[0].act.delay"},
      {R"({"rules":[{"act":{"cut":-1}}]})", "rules[0].act.cut"},
      {R"({"rules":[{"act":{"usage":5}}]})", "rules[0].act.usage"},
      {R"({"rules":[{"act":{"hold":1}}]})", "rules[0].act.hold"},
      {R"({"rules":[{"act":{"headers":{"A":"b\nc"}}}]})", "not a header"},
      {R"({"rules":[{"act":{"headers":{"Content-Length":"1"}}}]})", "Content-Length"},
      {R"({"rules":[{"act":{"html":true,"empty":true}}]})", "exclude each other"},
      {R"({"rules":[{"act":{"cut":true,"reset":true}}]})", "exclude each other"},
      {R"({"rules":[{"act":{"reset":true,"status":500}}]})", "exclude each other"},
      {R"({"rules":[{"act":{"hold":true,"delay":"1s"}}]})", "exclude each other"},
      {R"({"rules":[{"act":{"body":"x","usage":null}}]})", "usual answer"},
      {R"({"rules":[{"act":{},"times":0}]})", "rules[0].times"},
      {R"({"rules":[{"act":{},"for":5}]})", "rules[0].for"},
      {R"({"rules":[{"act":{},"match":{"nth":0}}]})", "rules[0].match.nth"},
      {R"({"rules":[{"act":{},"match":{"nth":[]}}]})", "rules[0].match.nth"},
      {R"({"rules":[{"act":{},"match":{"nth":{"from":3,"to":2}}}]})", "rules[0].match.nth"},
      {R"({"rules":[{"act":{},"match":{"prompt_regex":"("}}]})", "rules[0].match.prompt_regex"},
      {R"({"rules":[{"name":"a","act":{}},{"name":"a","act":{}}]})", "named 'a'"},
      {R"({"rules":[{"act":{"status":500,"status":503}}]})", "byte"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto rules = parse_rules(row.text);
    REQUIRE_FALSE(rules);
    CAPTURE(rules.error());
    CHECK(rules.error().find(row.error) != std::string::npos);
  }
}

TEST_CASE("sim rules: every key is read") {
  RuleSet set = rules_of(R"({"name":"all","match":{"path":"/p","model":"m","prompt_contains":"c",
      "prompt_regex":"r","nth":[1,{"from":3}],"header":{"X-A":"b"}},
      "act":{"status":500,"headers":{"A":1},"body":{"a":1},"body_delay":"1s","delay":"200ms",
             "cut":5,"echo_secret":true},"times":2,"for":"5s"})");
  const Rule& rule = set.rules().front();
  CHECK(rule.match.headers == Headers{{"x-a", "b"}});
  CHECK(rule.match.nth.size() == 2);
  CHECK(rule.act.status == 500);
  CHECK(rule.act.headers == Headers{{"A", "1"}});
  CHECK(rule.act.body == R"({"a":1})");
  CHECK(rule.act.delay == 200);
  CHECK(rule.act.body_delay == 1000);
  CHECK(rule.act.ending == Ending::cut);
  CHECK(rule.act.cut_at == 5);
  CHECK(rule.act.echo_secret);
  CHECK(rule.times == 2);
  CHECK(rule.active_for == 5000);
}

TEST_CASE("sim rules: all conditions must hold, and the first rule wins") {
  RuleSet set = rules_of(R"({"name":"a","match":{"model":"big","prompt_contains":"x"},"act":{}},
      {"name":"b","match":{"prompt_regex":"^[0-9]+$"},"act":{}},
      {"name":"c","match":{"header":{"X-Key":"1"}},"act":{}},
      {"name":"d","match":{"path":"/v1/embeddings"},"act":{}},
      {"name":"e","match":{"prompt_contains":"x"},"act":{}})");
  CHECK(choose(set, chat("x", "big")) == "a");
  CHECK(choose(set, chat("x", "small")) == "e");
  CHECK(choose(set, chat("y", "big")).empty());
  CHECK(choose(set, chat("123")) == "b");
  CHECK(choose(set, chat("123a")).empty());
  CHECK(choose(set, chat("y", "m", {{"x-key", "1"}})) == "c");
  CHECK(choose(set, chat("y", "m", {{"x-key", "2"}})).empty());
}

TEST_CASE("sim rules: nth counts what meets the other conditions, also behind another rule") {
  RuleSet set = rules_of(R"({"name":"one","match":{"prompt_contains":"x","nth":1},"act":{}},
      {"name":"more","match":{"prompt_contains":"x","nth":[2,{"from":4,"to":5}]},"act":{}})");
  std::vector<std::string> got;
  for (int i = 0; i < 6; ++i) {
    CHECK(choose(set, chat("other")).empty());
    got.push_back(choose(set, chat("x")));
  }
  CHECK(got == std::vector<std::string>{"one", "more", "", "more", "more", ""});
  CHECK(set.counts()[0].matched == 6);
  CHECK(set.counts()[1].used == 3);
}

TEST_CASE("sim rules: times and for end a rule") {
  RuleSet twice = rules_of(R"({"name":"a","act":{},"times":2})");
  CHECK(choose(twice, chat("x")) == "a");
  CHECK(choose(twice, chat("x")) == "a");
  CHECK(choose(twice, chat("x")).empty());
  RuleSet timed = rules_of(R"({"name":"a","act":{},"for":"5s"})");
  CHECK(choose(timed, chat("x"), 4999) == "a");
  CHECK(choose(timed, chat("x"), 5000).empty());
}
