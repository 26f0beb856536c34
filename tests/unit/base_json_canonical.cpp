#include "core/base/json_canonical.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/json_number.h"

using namespace aiq;
using namespace std::string_literals;

namespace {

std::string canonical(std::string_view input, const std::vector<std::string_view>& drop = {}) {
  const auto result = canonicalize_json(input, drop);
  if (!result) return "error at " + std::to_string(result.error().offset);
  return result.value().text;
}

std::string nested(int depth, char open, char close) {
  std::string text;
  for (int i = 0; i < depth; ++i)
    text += open == '{' && i + 1 < depth ? "{\"k\":" : ""s + open;
  return text + std::string(static_cast<std::size_t>(depth), close);
}

}  // namespace

TEST_CASE("canonical JSON: the example of RFC 8785, section 3.2") {
  CHECK(canonical(R"({
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  })") == R"({"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],)"
          R"("string":"€$\u000f\nA'B\"\\\\\"/"})");
}

TEST_CASE("canonical JSON: members in UTF-16 order, as in RFC 8785, section 3.2.3") {
  CHECK(
      canonical(R"({"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7})") ==
      "{\"\\r\":2,\"1\":4,\"\xC2\x80\":6,\"\xC3\xB6\":7,\"\xE2\x82\xAC\":1,"
      "\"\xF0\x9F\x98\x80\":5,\"\xEF\xAC\xB3\":3}");
}

TEST_CASE("canonical JSON: doubles are printed as in RFC 8785, appendix B") {
  struct Row {
    std::uint64_t bits;
    std::string_view text;
  };
  const Row rows[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0xffefffffffffffff, "-1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const Row& row : rows) {
    std::string out;
    append_double(out, std::bit_cast<double>(row.bits));
    CHECK(out == row.text);
    CHECK(std::strtod(out.c_str(), nullptr) == std::bit_cast<double>(row.bits));
  }
}

TEST_CASE("canonical JSON: number literals") {
  struct Row {
    std::string_view literal;
    std::string_view text;
  };
  const Row rows[] = {
      {"0", "0"},
      {"-0", "0"},
      {"-0.0", "0"},
      {"-0e5", "0"},
      {"0e999999999999999999999", "0"},
      {"0.70", "0.7"},
      {"7e-1", "0.7"},
      {"0.7", "0.7"},
      {"1.0", "1"},
      {"1e2", "100"},
      {"1E+2", "100"},
      {"-12.50", "-12.5"},
      {"9007199254740993", "9007199254740993"},
      {"-123456789012345678901234567890", "-123456789012345678901234567890"},
      {"1000000000000000000000", "1000000000000000000000"},
      {"9007199254740993.0", "9007199254740992"},
      {"1e20", "100000000000000000000"},
      {"1e21", "1e+21"},
      {"1.5e300", "1.5e+300"},
      {"0.000001", "0.000001"},
      {"0.0000001", "1e-7"},
      {"1.25e-7", "1.25e-7"},
      {"5e-324", "5e-324"},
      {"1e-400", "0"},
      {"-1e-400", "0"},
      {"1e-99999999999999999999999", "0"},
      {"1e400", "1e+400"},
      {"10e399", "1e+400"},
      {"0.001e403", "1e+400"},
      {"-12.3400e500", "-1.234e+501"},
      {"1.7976931348623159e308", "1.7976931348623159e+308"},
      {"1e00000400", "1e+400"},
      {"1e99999999999999999999999", "1e+99999999999999999999999"},
      {"1000e99999999999999999999999", "1e+100000000000000000000002"},
      {"0.0001e10000000000000000000000", "1e+9999999999999999999996"},
      {"0.01e9223372036854775807", "1e+9223372036854775805"},
      {"1.0e-9223372036854775807", "0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.literal);
    CHECK(canonical(row.literal) == row.text);
    CHECK(canonical("[" + std::string(row.literal) + " ]") == "[" + std::string(row.text) + "]");
  }
  // More digits than the exponent takes away.
  CHECK(canonical("12" + std::string(500, '0') + "e-10") == "1.2e+491");
}

TEST_CASE("canonical JSON: strings keep their meaning and lose their spelling") {
  struct Row {
    std::string input;
    std::string text;
  };
  const Row rows[] = {
      {R"("")", R"("")"},
      {R"("\u0061\/b")", R"("a/b")"},
      {R"("\b\t\n\f\r\u0008\u0009\u000A\u000C\u000d")", R"("\b\t\n\f\r\b\t\n\f\r")"},
      {R"("\u0000\u001F\u007f")", "\"\\u0000\\u001f\x7F\""},
      {R"("\ud83d\ude00 \uDBFF\uDFFF")", "\"\xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF\""},
      {R"("\u00e9 \u20ac \uffff")", "\"\xC3\xA9 \xE2\x82\xAC \xEF\xBF\xBF\""},
      // A letter with its accent in one piece and in two: both stay as they are.
      {"\"\xC3\xA9 e\xCC\x81\"", "\"\xC3\xA9 e\xCC\x81\""},
      {R"(" a  b ")", R"(" a  b ")"},
  };
  for (const Row& row : rows)
    CHECK(canonical(row.input) == row.text);
}

TEST_CASE("canonical JSON: escapes are found at every place of a long string") {
  for (std::size_t before = 0; before < 20; ++before) {
    const std::string a(before, 'a');
    CHECK(canonical("\"" + a + "\\u0041zzzzzzzzz\"") == "\"" + a + "Azzzzzzzzz\"");
    CHECK(canonical("\"" + a + "\nzzzzzzzzz\"") == "error at " + std::to_string(before + 1));
    CHECK(canonical("\"" + a + "\x80zzzzzzzzz\"") == "error at " + std::to_string(before + 1));
    CHECK(canonical("\"" + a + " !#[]~\x7F\"") == "\"" + a + " !#[]~\x7F\"");
  }
}

TEST_CASE("canonical JSON: objects at all levels are ordered, white space goes") {
  struct Row {
    std::string_view input;
    std::string_view text;
  };
  const Row rows[] = {
      {" {\r\n\t} ", "{}"},
      {"[ ]", "[]"},
      {"[ 1 , [ ] , { } ]", "[1,[],{}]"},
      {R"({"b":1,"a":2})", R"({"a":2,"b":1})"},
      {R"({"b":{"d":1,"c":[{"z":1,"y":2}]},"a":null})",
       R"({"a":null,"b":{"c":[{"y":2,"z":1}],"d":1}})"},
      {R"({"aa":1,"a":2,"":3})", R"({"":3,"a":2,"aa":1})"},
      {R"({"10":1,"9":2})", R"({"10":1,"9":2})"},
      // A quote is escaped when printed, but sorts as itself.
      {R"({"#":1,"\"":2,"!":3})", R"({"!":3,"\"":2,"#":1})"},
      {R"({"A":1,"\\":2,"a":3})", R"({"A":1,"\\":2,"a":3})"},
      {"true", "true"},
      {" null ", "null"},
  };
  for (const Row& row : rows)
    CHECK(canonical(row.input) == row.text);
}

TEST_CASE("canonical JSON: errors say what and where") {
  using Kind = JsonError::Kind;
  struct Row {
    std::string input;
    Kind kind;
    std::size_t offset;
  };
  const Row rows[] = {
      {"", Kind::syntax, 0},
      {"  ", Kind::syntax, 2},
      {"{", Kind::syntax, 1},
      {"[1", Kind::syntax, 2},
      {"[1,]", Kind::syntax, 3},
      {"[,1]", Kind::syntax, 1},
      {"[1 2]", Kind::syntax, 3},
      {R"({"a":1,})", Kind::syntax, 7},
      {R"({"a" 1})", Kind::syntax, 5},
      {R"({"a":})", Kind::syntax, 5},
      {R"({a:1})", Kind::syntax, 1},
      {R"({'a':1})", Kind::syntax, 1},
      {R"({"a":1]})", Kind::syntax, 6},
      {"1 2", Kind::syntax, 2},
      {"[1]]", Kind::syntax, 3},
      {"01", Kind::syntax, 1},
      {"-", Kind::syntax, 1},
      {"-a", Kind::syntax, 1},
      {"+1", Kind::syntax, 0},
      {"1.", Kind::syntax, 2},
      {".5", Kind::syntax, 0},
      {"1e", Kind::syntax, 2},
      {"1e+", Kind::syntax, 3},
      {"0x10", Kind::syntax, 1},
      {"NaN", Kind::syntax, 0},
      {"Infinity", Kind::syntax, 0},
      {"nul", Kind::syntax, 0},
      {"True", Kind::syntax, 0},
      {"truee", Kind::syntax, 4},
      {"\"abc", Kind::syntax, 4},
      {"\"a\\", Kind::syntax, 3},
      {"\"a\tb\"", Kind::syntax, 2},
      {"\"a\0b\""s, Kind::syntax, 2},
      {R"("\x41")", Kind::syntax, 1},
      {R"("\u12G4 ")", Kind::syntax, 1},
      {R"("\u12)", Kind::syntax, 5},
      {R"("\U0041")", Kind::syntax, 1},
      {"[1] // no", Kind::syntax, 4},
      {"\v1", Kind::syntax, 0},
      {"\xEF\xBB\xBF{}", Kind::syntax, 0},  // a byte order mark
      {"\xC2\xA0"
       "1",
       Kind::syntax, 0},  // a space, but not one of JSON
      {"\xFF", Kind::invalid_utf8, 0},
      {"\"\xC3\"", Kind::invalid_utf8, 1},
      {"\"a\x80\"", Kind::invalid_utf8, 2},
      {"\"\xC0\xAF\"", Kind::invalid_utf8, 1},          // overlong
      {"\"\xE0\x9F\xBF\"", Kind::invalid_utf8, 1},      // overlong
      {"\"\xF0\x8F\xBF\xBF\"", Kind::invalid_utf8, 1},  // overlong
      {"\"\xED\xA0\x80\"", Kind::invalid_utf8, 1},      // a surrogate
      {"\"\xF4\x90\x80\x80\"", Kind::invalid_utf8, 1},  // beyond U+10FFFF
      {"\"\xF5\x80\x80\x80\"", Kind::invalid_utf8, 1},
      {"{\"\xFF\":1}", Kind::invalid_utf8, 2},
      {R"("\ud800")", Kind::lone_surrogate, 1},
      {R"("\uDFFF")", Kind::lone_surrogate, 1},
      {R"("ab\ud83dx\ude00")", Kind::lone_surrogate, 3},
      {R"("\ud83d\u0041")", Kind::lone_surrogate, 1},
      {R"("\ud83d\ud83d\ude00")", Kind::lone_surrogate, 1},
      {R"("\ude00\ud83d")", Kind::lone_surrogate, 1},
      {R"({"\ud800":1})", Kind::lone_surrogate, 2},
      {R"({"a":1,"a":1})", Kind::duplicate_member, 7},
      {R"({"a":1,"b":2,"\u0061":3})", Kind::duplicate_member, 13},
      {R"([{"x":{"b":1,"a":2,"b":3}}])", Kind::duplicate_member, 19},
      {R"({"":1,"":2})", Kind::duplicate_member, 6},
      {R"({"\/":1,"/":2})", Kind::duplicate_member, 8},
      {R"({"\ud83d\ude00":1,"😀":2})", Kind::duplicate_member, 18},
  };
  for (const Row& row : rows) {
    CAPTURE(row.input);
    const auto result = canonicalize_json(row.input);
    REQUIRE_FALSE(result.has_value());
    CHECK(static_cast<int>(result.error().kind) == static_cast<int>(row.kind));
    CHECK(result.error().offset == row.offset);
    CHECK_FALSE(result.error().message.empty());
  }
}

TEST_CASE("canonical JSON: equal names in different objects are no duplicates") {
  CHECK(canonical(R"({"a":{"a":1},"b":[{"a":1},{"a":1}]})") ==
        R"({"a":{"a":1},"b":[{"a":1},{"a":1}]})");
  CHECK(canonical(R"({"a":1,"A":2})") == R"({"A":2,"a":1})");
}

TEST_CASE("canonical JSON: depth ends at the limit, not before and not by a crash") {
  for (const auto& [open, close] : {std::pair{'[', ']'}, std::pair{'{', '}'}}) {
    CHECK(canonical(nested(kJsonMaxDepth, open, close)) == nested(kJsonMaxDepth, open, close));
    const auto deeper = canonicalize_json(nested(kJsonMaxDepth + 1, open, close));
    REQUIRE_FALSE(deeper.has_value());
    CHECK(deeper.error().kind == JsonError::Kind::too_deep);
    CHECK(canonicalize_json(nested(1'000'000, open, close)).error().kind ==
          JsonError::Kind::too_deep);
  }
}

TEST_CASE("canonical JSON: named members of the outermost object are left out") {
  const std::vector<std::string_view> drop{"user", "stream"};
  struct Row {
    std::string_view input;
    std::string_view text;
  };
  const Row rows[] = {
      {R"({"user":"u","a":1})", R"({"a":1})"},
      {R"({"a":1,"stream":true,"b":{"user":2}})", R"({"a":1,"b":{"user":2}})"},
      {R"({"stream":{"x":[1]},"user":2})", R"({})"},
      {R"({"\u0075ser":1,"z":2})", R"({"z":2})"},
      {R"({"users":1,"use":2})", R"({"use":2,"users":1})"},
      {R"([{"user":1}])", R"([{"user":1}])"},
      {R"("user")", R"("user")"},
  };
  for (const Row& row : rows)
    CHECK(canonical(row.input, drop) == row.text);
  CHECK(canonicalize_json(R"({"user":1,"user":2})", drop).error().kind ==
        JsonError::Kind::duplicate_member);
  CHECK(canonicalize_json(R"({"user":01})", drop).error().kind == JsonError::Kind::syntax);
}

TEST_CASE("canonical JSON: members of the outermost object are told by their place") {
  const std::string input = R"( { "model" : "m" , "\u0061" :[1, {"in":2}],"stream":  true } )";
  const auto result = canonicalize_json(input, {"stream"});
  REQUIRE(result.has_value());
  CHECK(result.value().is_object);
  struct Row {
    std::string_view name;
    std::string_view value;
  };
  const Row rows[] = {{"model", R"("m")"}, {"a", R"([1, {"in":2}])"}, {"stream", "true"}};
  REQUIRE(result.value().members.size() == std::size(rows));
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const JsonMember& member = result.value().members[i];
    CHECK(member.name == rows[i].name);
    CHECK(input.substr(member.value_begin, member.value_end - member.value_begin) == rows[i].value);
  }
  CHECK_FALSE(canonicalize_json(R"([{"a":1}])").value().is_object);
  CHECK(canonicalize_json(R"([{"a":1}])").value().members.empty());
}

TEST_CASE("UTF-8: well-formed and not, wherever it stands") {
  struct Row {
    std::string bytes;
    bool valid;
  };
  const Row rows[] = {
      {"", true},
      {"ascii only, longer than a word", true},
      {std::string("\0", 1), true},
      {"\xC2\x80", true},
      {"\xED\x9F\xBF\xEE\x80\x80", true},
      {"\xF4\x8F\xBF\xBF", true},
      {"\xC1\xBF", false},
      {"\xE0\x80\x80", false},
      {"\xED\xA0\x80", false},
      {"\xED\xBF\xBF", false},
      {"\xF0\x80\x80\x80", false},
      {"\xF4\x90\x80\x80", false},
      {"\xE2\x82", false},
      {"\xE2\x28\xA1", false},
      {"\x80", false},
      {"\xFE", false},
  };
  for (const Row& row : rows) {
    for (std::size_t before = 0; before < 10; ++before) {
      const std::string text = std::string(before, 'x') + row.bytes;
      CAPTURE(text);
      CHECK(is_valid_utf8(text) == row.valid);
      CHECK(is_valid_utf8(text + "yyyyyyyyy") == row.valid);
    }
  }
}

TEST_CASE("JSON strings: minimal escapes, and JSON whatever the bytes") {
  struct Row {
    std::string text;
    std::string literal;
  };
  const Row rows[] = {
      {"", R"("")"},
      {"plain / text", R"("plain / text")"},
      {"\"\\\b\f\n\r\t", R"("\"\\\b\f\n\r\t")"},
      {std::string("\0\x1F\x7F", 3), "\"\\u0000\\u001f\x7F\""},
      {"caf\xC3\xA9", "\"caf\xC3\xA9\""},
      {"a\xFFz", "\"a\xEF\xBF\xBDz\""},
      {"\xE2\x82", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
  };
  for (const Row& row : rows) {
    std::string out = "x";
    append_json_string(out, row.text);
    CHECK(out == "x" + row.literal);
    CHECK(canonicalize_json(out.substr(1)).has_value());
  }
}
