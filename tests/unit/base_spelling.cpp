#include "core/base/spelling.h"

#include <doctest/doctest.h>

using aiq::closest_name;
using aiq::did_you_mean;

TEST_CASE("spelling: the nearest name is suggested, a far one is not") {
  const std::vector<std::string> names = {"openai", "anthropic", "gpt-4o", "gpt-4o-mini"};
  struct Row {
    const char* word;
    const char* nearest;
  };
  for (const Row& row : {Row{"opnai", "openai"}, Row{"oepnai", "openai"}, Row{"OpenAI", "openai"},
                         Row{"antropic", "anthropic"}, Row{"gpt-4o-mni", "gpt-4o-mini"},
                         Row{"gpt-40", "gpt-4o"}, Row{"mistral", ""}, Row{"", ""}, Row{"x", ""}}) {
    CAPTURE(row.word);
    CHECK(closest_name(row.word, names) == row.nearest);
  }
  CHECK(closest_name("openai", {}) == "");
  CHECK(closest_name(std::string(1000, 'a'), {std::string(1000, 'a')}) == "");
}

TEST_CASE("spelling: a question, when a name is near") {
  CHECK(did_you_mean("opnai", {"anthropic", "openai"}) == "did you mean openai?");
  CHECK(did_you_mean("zzz", {"anthropic", "openai"}).empty());
}
