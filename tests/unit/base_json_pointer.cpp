#include "core/base/json_pointer.h"

#include <doctest/doctest.h>

#include "core/base/json_layout.h"

using namespace aiq;

namespace {

std::string set(std::string_view text, std::string_view pointer, std::string_view value) {
  const auto out = set_at_pointer(text, pointer, value);
  return out ? *out : "error: " + out.error().message;
}

PointerError::Kind kind_of(std::string_view text, std::string_view pointer) {
  const auto out = set_at_pointer(text, pointer, "1");
  REQUIRE_FALSE(out.has_value());
  return out.error().kind;
}

}  // namespace

TEST_CASE("json pointer: the value changes and no other byte") {
  struct Row {
    const char* text;
    const char* pointer;
    const char* value;
    const char* expected;
  };
  const Row rows[] = {
      {R"( { "a" : 1.50 , "n":123456789012345678901234567890, "b":[1e2, 2 ] } )", "/b/1", "\"x\"",
       R"( { "a" : 1.50 , "n":123456789012345678901234567890, "b":[1e2, "x" ] } )"},
      {R"({"a":{"b":{"c":1}},"d":2})", "/a/b", "null", R"({"a":{"b":null},"d":2})"},
      {R"({"a":"x}]\"","b":1})", "/b", "2", R"({"a":"x}]\"","b":2})"},
      {R"({"a":1})", "", "[]", "[]"},
      {"  7 ", "", "8", "  8 "},
      // names: escapes of the pointer, and of the text
      {R"({"a/b":1,"m~n":2,"":3})", "/a~1b", "0", R"({"a/b":0,"m~n":2,"":3})"},
      {R"({"a/b":1,"m~n":2,"":3})", "/m~0n", "0", R"({"a/b":1,"m~n":0,"":3})"},
      {R"({"~1":1})", "/~01", "0", R"({"~1":0})"},
      {R"({"a/b":1,"m~n":2,"":3})", "/", "0", R"({"a/b":1,"m~n":2,"":0})"},
      {R"({"\u0061":1})", "/a", "0", R"({"\u0061":0})"},
      {R"({"q\"":1,"é":2})", "/q\"", "0", R"({"q\"":0,"é":2})"},
      {R"({"q\"":1,"\u00e9":2})", "/é", "0", R"({"q\"":1,"\u00e9":0})"},
      {R"({"0":{"1":5}})", "/0/1", "6", R"({"0":{"1":6}})"},
      // added
      {R"({"a":1 })", "/b", "2", R"({"a":1,"b":2 })"},
      {R"({ })", "/b", "2", R"({"b":2 })"},
      {R"({"a":{}})", "/a/k", "2", R"({"a":{"k":2}})"},
      {R"({"-":1})", "/-", "2", R"({"-":2})"},
      {R"({"a":[1, 2 ]})", "/a/-", "3", R"({"a":[1, 2,3 ]})"},
      {R"({"a":[ ]})", "/a/-", "3", R"({"a":[3 ]})"},
      {R"([[1],[2]])", "/1/0", "9", R"([[1],[9]])"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CAPTURE(row.pointer);
    CHECK(set(row.text, row.pointer, row.value) == row.expected);
  }
}

TEST_CASE("json pointer: what leads nowhere is named") {
  using Kind = PointerError::Kind;
  for (const char* bad : {"a", "a/b", "/a~", "/~2", "#/a"})
    CHECK(kind_of(R"({"a":1})", bad) == Kind::syntax);
  for (const char* nowhere : {"/x/y", "/a/b", "/l/2", "/l/01", "/l/-1", "/l/x", "/l/-/a", "/l/+1",
                              "/l/", "/l/99999999999999999999999"}) {
    CAPTURE(nowhere);
    CHECK(kind_of(R"({"a":1,"l":[1,2]})", nowhere) == Kind::no_place);
  }
  CHECK(set(R"({"a":{"b":[]}})", "/a/x/y", "1") ==
        R"(error: "/a/x/y" leads nowhere: "/a" has no member "x")");
  CHECK(
      set(R"({"a":[1]})", "/a/1", "1") ==
      R"(error: "/a/1" leads nowhere: "/a" is an array of 1 and has no element "1"; - appends one)");
}

TEST_CASE("json layout: tokens keep their bytes") {
  CHECK(one_line_json("{\n \"a\":\r\n 1.0}") == R"({ "a": 1.0})");
  CHECK(indented_json(R"({"a":[1.50,{"b" : 12345678901234567890}],"e":{ },"f":[],"s":"x,{\""})") ==
        "{\n  \"a\": [\n    1.50,\n    {\n      \"b\": 12345678901234567890\n    }\n  ],\n"
        "  \"e\": {},\n  \"f\": [],\n  \"s\": \"x,{\\\"\"\n}");
  CHECK(indented_json("\"open") == "\"open");
  // Nothing but brackets: no line is longer than the deepest level shown.
  CHECK(indented_json(std::string(10'000, '[')).size() < 10'000 * 200);
}
