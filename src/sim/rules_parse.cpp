// Reading rules: strict, because a misspelt fault is a drill that proves nothing.

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "core/base/json_canonical.h"
#include "sim/rules.h"

namespace aiq::sim {
namespace {

// Thrown and caught in this file only: the place and the reason.
struct RuleError {
  std::string message;
};

[[noreturn]] void fail(const std::string& place, const std::string& reason) {
  throw RuleError{place + ": " + reason};
}

void only_keys(const Json& object, const std::string& place,
               std::initializer_list<std::string_view> known) {
  if (!object.is_object()) fail(place, "expected an object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail(place, "unknown key '" + key + "'");
    }
  }
}

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::optional<std::string> text_member(const Json& object, const std::string& place,
                                       const char* key) {
  const Json* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(place + "." + key, "expected a string");
  return value->get<std::string>();
}

bool flag_member(const Json& object, const std::string& place, const char* key) {
  const Json* value = member(object, key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) fail(place + "." + key, "expected true or false");
  return value->get<bool>();
}

std::int64_t integer(const Json& value, const std::string& place, std::int64_t min,
                     std::int64_t max = std::numeric_limits<std::int32_t>::max()) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < min ||
      value.get<std::int64_t>() > max) {
    fail(place, "expected an integer from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return value.get<std::int64_t>();
}

std::optional<DurationMs> duration_member(const Json& object, const std::string& place,
                                          const char* key) {
  const std::optional<std::string> text = text_member(object, place, key);
  if (!text) return std::nullopt;
  const std::optional<DurationMs> duration = parse_duration(*text);
  if (!duration) fail(place + "." + key, "expected a duration such as \"200ms\"");
  return duration;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool is_header_text(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

Headers header_member(const Json& object, const std::string& place, const char* key,
                      bool lower_names) {
  Headers out;
  const Json* headers = member(object, key);
  if (headers == nullptr) return out;
  const std::string here = place + "." + key;
  if (!headers->is_object()) fail(here, "expected an object of names and values");
  for (const auto& [name, value] : headers->items()) {
    if (!value.is_string() && !value.is_number()) fail(here + "." + name, "expected a string");
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (name.empty() || !is_header_text(name) || !is_header_text(text)) {
      fail(here + "." + name, "not a header");
    }
    out.emplace_back(lower_names ? lower(name) : name, std::move(text));
  }
  return out;
}

Match::Range nth_range(const Json& value, const std::string& place) {
  constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  if (!value.is_object()) {
    const std::int64_t only = integer(value, place, 1);
    return {only, only};
  }
  only_keys(value, place, {"from", "to"});
  const Json* from = member(value, "from");
  const Json* to = member(value, "to");
  Match::Range range{from != nullptr ? integer(*from, place + ".from", 1) : 1,
                     to != nullptr ? integer(*to, place + ".to", 1) : kNoEnd};
  if (range.to < range.from) fail(place, "'to' lies before 'from'");
  return range;
}

std::vector<Match::Range> nth_ranges(const Json& value, const std::string& place) {
  std::vector<Match::Range> out;
  if (!value.is_array()) {
    out.push_back(nth_range(value, place));
    return out;
  }
  if (value.empty()) fail(place, "an empty list matches nothing");
  for (const Json& item : value)
    out.push_back(nth_range(item, place));
  return out;
}

Match read_match(const Json& object, const std::string& place) {
  only_keys(object, place, {"path", "model", "prompt_contains", "prompt_regex", "nth", "header"});
  Match match;
  match.path = text_member(object, place, "path");
  match.model = text_member(object, place, "model");
  match.prompt_contains = text_member(object, place, "prompt_contains");
  if (const auto regex = text_member(object, place, "prompt_regex"); regex) {
    std::string error;
    match.prompt_regex = Pattern::compile(*regex, error);
    if (!match.prompt_regex) fail(place + ".prompt_regex", error);
  }
  match.headers = header_member(object, place, "header", true);
  if (const Json* nth = member(object, "nth"); nth != nullptr) {
    match.nth = nth_ranges(*nth, place + ".nth");
  }
  return match;
}

// Of keys that exclude each other, at most one may be there (false counts as absent).
void at_most_one(const Json& object, const std::string& place,
                 std::initializer_list<const char*> keys) {
  std::string first;
  for (const char* key : keys) {
    const Json* value = member(object, key);
    if (value == nullptr || *value == false) continue;
    if (!first.empty()) fail(place, "'" + first + "' and '" + key + "' exclude each other");
    first = key;
  }
}

void read_body(const Json& object, const std::string& place, Act& act) {
  at_most_one(object, place, {"body", "invalid_json", "empty", "html"});
  if (const Json* body = member(object, "body"); body != nullptr) {
    act.body_kind = BodyKind::given;
    act.body_is_json = !body->is_string();
    act.body = act.body_is_json ? dump(*body) : body->get<std::string>();
  }
  if (flag_member(object, place, "invalid_json")) act.body_kind = BodyKind::invalid_json;
  if (flag_member(object, place, "empty")) act.body_kind = BodyKind::empty;
  if (flag_member(object, place, "html")) act.body_kind = BodyKind::html;
  if (const Json* usage = member(object, "usage"); usage != nullptr) {
    if (!usage->is_object() && !usage->is_null()) {
      fail(place + ".usage", "expected an object or null");
    }
    at_most_one(object, place, {"body", "empty", "html"});
    if (act.body_kind != BodyKind::usual && act.body_kind != BodyKind::invalid_json) {
      fail(place, "'usage' changes the usual answer, which this rule does not send");
    }
    act.usage_given = true;
    act.usage = *usage;
  }
}

void read_ending(const Json& object, const std::string& place, Act& act) {
  at_most_one(object, place, {"cut", "cut_chunked", "close", "reset"});
  if (const Json* cut = member(object, "cut"); cut != nullptr && *cut != false) {
    act.ending = Ending::cut;
    if (*cut != true) act.cut_at = integer(*cut, place + ".cut", 0);
  }
  if (flag_member(object, place, "cut_chunked")) act.ending = Ending::cut_chunked;
  if (flag_member(object, place, "close")) act.ending = Ending::close;
  if (flag_member(object, place, "reset")) act.ending = Ending::reset;
  if (act.ending != Ending::close && act.ending != Ending::reset) return;
  for (const char* key : {"status", "headers", "body", "body_delay", "invalid_json", "empty",
                          "html", "usage", "echo_secret"}) {
    const char* ending = act.ending == Ending::close ? "close" : "reset";
    at_most_one(object, place, {ending, key});
  }
}

Act read_act(const Json& object, const std::string& place) {
  only_keys(object, place,
            {"status", "headers", "body", "delay", "body_delay", "cut", "cut_chunked", "close",
             "reset", "invalid_json", "empty", "html", "hold", "usage", "echo_secret"});
  Act act;
  if (const Json* status = member(object, "status"); status != nullptr) {
    act.status = static_cast<int>(integer(*status, place + ".status", 200, 599));
  }
  act.headers = header_member(object, place, "headers", false);
  for (const auto& [name, value] : act.headers) {
    const std::string key = lower(name);
    if (key == "content-length" || key == "transfer-encoding" || key == "connection") {
      fail(place + ".headers", "'" + name + "' follows from the body; see 'cut' and 'cut_chunked'");
    }
  }
  act.delay = duration_member(object, place, "delay");
  act.body_delay = duration_member(object, place, "body_delay").value_or(0);
  act.hold = flag_member(object, place, "hold");
  at_most_one(object, place, {"hold", "delay"});
  act.echo_secret = flag_member(object, place, "echo_secret");
  read_body(object, place, act);
  read_ending(object, place, act);
  return act;
}

Rule read_rule(const Json& object, const std::string& place, std::size_t index) {
  only_keys(object, place, {"name", "match", "act", "times", "for"});
  Rule rule;
  rule.name = text_member(object, place, "name").value_or("rule-" + std::to_string(index + 1));
  if (const Json* match = member(object, "match"); match != nullptr) {
    rule.match = read_match(*match, place + ".match");
  }
  const Json* act = member(object, "act");
  if (act == nullptr) fail(place, "'act' is missing");
  rule.act = read_act(*act, place + ".act");
  if (const Json* times = member(object, "times"); times != nullptr) {
    rule.times = integer(*times, place + ".times", 1);
  }
  rule.active_for = duration_member(object, place, "for");
  return rule;
}

}  // namespace

Expected<std::vector<Rule>, std::string> parse_rules(std::string_view text) {
  // The strict reader first: it also refuses duplicate members, of which one would be lost.
  if (const auto strict = canonicalize_json(text); !strict) {
    return Unexpected{"byte " + std::to_string(strict.error().offset) + ": " +
                      strict.error().message};
  }
  try {
    const Json document = Json::parse(text);
    only_keys(document, "rules file", {"rules"});
    const Json* list = member(document, "rules");
    if (list == nullptr || !list->is_array()) fail("rules", "expected a list");
    std::vector<Rule> rules;
    for (const Json& item : *list) {
      const std::string place = "rules[" + std::to_string(rules.size()) + "]";
      rules.push_back(read_rule(item, place, rules.size()));
      const auto same_name = [&](const Rule& rule) { return rule.name == rules.back().name; };
      if (std::count_if(rules.begin(), rules.end(), same_name) > 1) {
        fail(place, "another rule is named '" + rules.back().name + "' too");
      }
    }
    return rules;
  } catch (const RuleError& error) {
    return Unexpected{error.message};
  } catch (const Json::exception& error) {
    return Unexpected{std::string(error.what())};
  }
}

}  // namespace aiq::sim
