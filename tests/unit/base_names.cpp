#include "core/base/names.h"

#include <doctest/doctest.h>

#include <string>

using namespace aiq;

TEST_CASE("names: what a tenant and a label may be called") {
  struct Row {
    std::string name;
    bool tenant;
    bool label;
  };
  const Row rows[] = {
      {"a", true, true},
      {"acme.prod_2-eu", true, true},
      {"AZaz09", true, true},
      {"openai/gpt-4o:latest", false, true},
      {"", false, false},
      {"with space", false, false},
      {"naïve", false, false},
      {"semi;colon", false, false},
      {"new\nline", false, false},
      {std::string("nul\0", 4), false, false},
      {std::string(64, 'x'), true, true},
      {std::string(65, 'x'), false, true},
      {std::string(128, 'x'), false, true},
      {std::string(129, 'x'), false, false},
      {"@", false, false},
      {"[", false, false},
      {"`", false, false},
      {"{", false, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(is_tenant_name(row.name) == row.tenant);
    CHECK(is_label_name(row.name) == row.label);
  }
}

TEST_CASE("names: plain text is UTF-8 without control characters, up to a size in bytes") {
  struct Row {
    std::string text;
    std::size_t max_bytes;
    bool plain;
  };
  const Row rows[] = {
      {"", 0, true},
      {"order 17 (retry) ~ ok", 200, true},
      {"h\xC3\xA9", 3, true},
      {"h\xC3\xA9", 2, false},
      {"a\tb", 200, false},
      {"a\x1B[2J", 200, false},
      {"a\x7F", 200, false},
      {"\xC2\x80", 200, false},
      {"\xC2\x9F", 200, false},
      {"\xC2\xA0", 200, true},
      {std::string("\0", 1), 200, false},
      {"\xC2", 200, false},
      {"\xFF", 200, false},
      {"\xED\xA0\x80", 200, false},
      {"\xF0\x9F\x98\x80", 200, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(is_plain_text(row.text, row.max_bytes) == row.plain);
  }
}
