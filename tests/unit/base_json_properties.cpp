// Laws of canonical JSON over random values. The seed is printed; AIQ_TEST_SEED replays it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_canonical.h"
#include "core/base/random.h"

using namespace aiq;

namespace {

std::uint64_t seed() {
  const char* const given = std::getenv("AIQ_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : system_random().next();
}

// A JSON value that can be spelled in many ways. Scalars are lists of equal spellings.
struct Value {
  enum class Kind { scalar, string, array, object } kind = Kind::scalar;
  std::vector<std::string> spellings;
  std::u32string text;
  std::vector<std::u32string> names;
  std::vector<Value> items;
};

class Maker {
 public:
  explicit Maker(std::uint64_t from) : random_(from) {}

  Value value(int depth) {
    const std::uint64_t kind = random_.below(depth > 5 ? 2 : 4);
    Value out;
    out.kind = static_cast<Value::Kind>(kind);
    if (out.kind == Value::Kind::scalar) out.spellings = scalar();
    if (out.kind == Value::Kind::string) out.text = text();
    if (out.kind == Value::Kind::array || out.kind == Value::Kind::object) {
      const std::uint64_t count = random_.below(6);
      for (std::uint64_t i = 0; i < count; ++i) {
        out.items.push_back(value(depth + 1));
        // The number at the end makes names unique.
        out.names.push_back(text() + static_cast<char32_t>('0' + i));
      }
    }
    return out;
  }

  std::string spell(const Value& v) {
    switch (v.kind) {
      case Value::Kind::scalar:
        return space() + pick(v.spellings) + space();
      case Value::Kind::string:
        return space() + spell(v.text) + space();
      default:
        break;
    }
    std::vector<std::size_t> order(v.items.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    const bool object = v.kind == Value::Kind::object;
    for (std::size_t i = order.size(); object && i > 1; --i) {
      std::swap(order[i - 1], order[random_.below(i)]);
    }
    std::string out = space() + (object ? "{" : "[") + space();
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0) out += ',';
      if (object) out += space() + spell(v.names[order[i]]) + space() + ":";
      out += spell(v.items[order[i]]);
    }
    return out + (object ? "}" : "]") + space();
  }

  // Gives one scalar or string somewhere inside another meaning. False if there is none.
  bool change_one(Value& v) {
    if (v.kind == Value::Kind::scalar) {
      v.spellings = {v.spellings.front() == "31" ? "32" : "31"};
      return true;
    }
    if (v.kind == Value::Kind::string) {
      v.text += U'!';
      return true;
    }
    const std::size_t count = v.items.size();
    const std::size_t start = count > 0 ? random_.below(count) : 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (change_one(v.items[(start + i) % count])) return true;
    }
    return false;
  }

 private:
  const std::string& pick(const std::vector<std::string>& list) {
    return list[random_.below(list.size())];
  }

  std::vector<std::string> scalar() {
    static const std::vector<std::vector<std::string>> kScalars{
        {"null"},
        {"true"},
        {"false"},
        {"0", "-0", "0.0", "-0.0", "0e7", "0.000E-5"},
        {"0.7", "0.70", "7e-1", "70E-2", "0.0007e+3"},
        {"100", "1e2", "1E+2", "100.0", "1000e-1"},
        {"-12.5", "-12.50", "-125e-1", "-0.125e2"},
        {"9007199254740993"},
        {"123456789012345678901234567890"},
        {"1e400", "10e399", "0.1e401", "1.000E400"},
        {"1.5e-9", "0.0000000015", "15e-10"},
    };
    return kScalars[random_.below(kScalars.size())];
  }

  std::u32string text() {
    static constexpr std::u32string_view kSpecial =
        U"\"\\/\b\f\n\r\t\u0001\u007f\u00e9\u20ac\ud7ff"
        U"\ue000\ufb33\uffff\U00010000\U0001F600";
    std::u32string out;
    for (std::uint64_t n = random_.below(14); n > 0; --n) {
      const bool letter = random_.below(2) == 0;
      out += letter ? static_cast<char32_t>('a' + random_.below(26))
                    : kSpecial[random_.below(kSpecial.size())];
    }
    if (random_.below(10) == 0) out += U'\0';
    return out;
  }

  std::string spell(const std::u32string& text) {
    std::string out = "\"";
    for (const char32_t c : text) {
      const bool must = c < 0x20 || c == '"' || c == '\\';
      if (must || random_.below(4) == 0) {
        out += escape(c);
      } else {
        put_utf8(out, c);
      }
    }
    return out + '"';
  }

  std::string escape(char32_t c) {
    static constexpr std::u32string_view kShort = U"\"\\/\b\f\n\r\t";
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    const std::size_t i = kShort.find(c);
    if (i != std::u32string_view::npos && random_.below(2) == 0) {
      return std::string("\\") + kLetters[i];
    }
    if (c < 0x10000) return unit(c);
    return unit(0xD800 + ((c - 0x10000) >> 10U)) + unit(0xDC00 + ((c - 0x10000) & 0x3FFU));
  }

  std::string unit(char32_t value) {
    const std::string_view hex = random_.below(2) == 0 ? "0123456789abcdef" : "0123456789ABCDEF";
    std::string out = "\\u";
    for (unsigned shift = 16; shift > 0; shift -= 4)
      out += hex[(value >> (shift - 4U)) & 0xFU];
    return out;
  }

  static void put_utf8(std::string& out, char32_t c) {
    const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 + c / 64), put(0x80 + c % 64);
    } else if (c < 0x10000) {
      put(0xE0 + c / 4096), put(0x80 + c / 64 % 64), put(0x80 + c % 64);
    } else {
      put(0xF0 + c / 262144), put(0x80 + c / 4096 % 64), put(0x80 + c / 64 % 64);
      put(0x80 + c % 64);
    }
  }

  std::string space() {
    static const std::vector<std::string> kSpaces{"", "", "", " ", "\n", "\t", "\r\n  "};
    return pick(kSpaces);
  }

  SeededRandom random_;
};

std::string canonical(const std::string& text) {
  auto result = canonicalize_json(text);
  REQUIRE_MESSAGE(result.has_value(), text);
  return std::move(result).value().text;
}

}  // namespace

TEST_CASE("canonical JSON: the same meaning gives the same bytes, another meaning other bytes") {
  const std::uint64_t from = seed();
  MESSAGE("AIQ_TEST_SEED=" << from);
  Maker make(from);
  int changed = 0;
  for (int i = 0; i < 2'000; ++i) {
    CAPTURE(from);
    CAPTURE(i);
    Value value = make.value(0);
    const std::string one = canonical(make.spell(value));
    REQUIRE(canonical(one) == one);
    REQUIRE(canonical(make.spell(value)) == one);
    REQUIRE(differing_pointers(one, one).empty());
    if (!make.change_one(value)) continue;
    const std::string other = canonical(make.spell(value));
    REQUIRE(other != one);
    REQUIRE(differing_pointers(one, other).size() == 1);
    ++changed;
  }
  CHECK(changed > 500);
}

TEST_CASE("canonical JSON: cut and damaged texts never give more than an error") {
  const std::uint64_t from = seed();
  MESSAGE("AIQ_TEST_SEED=" << from);
  Maker make(from);
  SeededRandom random(from + 1);
  int accepted = 0;
  for (int i = 0; i < 5'000; ++i) {
    CAPTURE(from);
    CAPTURE(i);
    std::string text = make.spell(make.value(0));
    const std::string whole = canonical(text);
    if (random.below(2) == 0) {
      text.resize(random.below(text.size()));
    } else {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    const auto result = canonicalize_json(text);
    // The walker is given the damaged text too: it promises no meaning for it, only an end.
    (void)differing_pointers(whole, text);
    (void)differing_pointers(text, whole);
    if (!result) {
      REQUIRE(result.error().offset <= text.size());
      continue;
    }
    ++accepted;
    REQUIRE(canonical(result.value().text) == result.value().text);
    REQUIRE(is_valid_utf8(result.value().text));
  }
  CHECK(accepted > 100);
}

TEST_CASE("differing pointers: where two canonical texts differ") {
  struct Row {
    std::string_view a;
    std::string_view b;
    std::vector<std::string> pointers;
  };
  const Row rows[] = {
      {"1", "1", {}},
      {"1", "2", {""}},
      {"{}", "[]", {""}},
      {R"({"a":1})", R"({"a":1})", {}},
      {R"({"a":1,"b":2})", R"({"a":1,"b":3})", {"/b"}},
      {R"({"a":1})", R"({"b":1})", {"/a", "/b"}},
      {R"({"a":1,"c":1,"e":1})", R"({"b":1,"c":2,"d":1})", {"/a", "/c", "/e", "/b", "/d"}},
      {R"({})", R"({"a":{}})", {"/a"}},
      {R"({"a":[1,2,3]})", R"({"a":[1,9]})", {"/a/1", "/a/2"}},
      {R"({"a":[1]})", R"({"a":[1,{"x":1},3]})", {"/a/1", "/a/2"}},
      {R"({"m":[{"c":"hi","r":"u"}]})", R"({"m":[{"c":"ho","r":"u"}]})", {"/m/0/c"}},
      {R"({"a":{"b":1}})", R"({"a":[1]})", {"/a"}},
      {R"({"a/b":1,"m~n":1})", R"({"a/b":2,"m~n":2})", {"/a~1b", "/m~0n"}},
      {R"({"":{"":1}})", R"({"":{"":2}})", {"//"}},
      {R"({"q\"\\\n\u0001":1})", R"({"q\"\\\n\u0001":2})", {"/q\"\\\n\x01"}},
      {R"({"a":"]},\"","b":1})", R"({"a":"]},\"","b":2})", {"/b"}},
      // In UTF-16 order the emoji comes first, and is so found to be missing on the right.
      {"{\"\xF0\x9F\x98\x80\":1,\"\xEF\xAC\xB3\":1}",
       "{\"\xEF\xAC\xB3\":2}",
       {"/\xF0\x9F\x98\x80", "/\xEF\xAC\xB3"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.a);
    CHECK(differing_pointers(row.a, row.b) == row.pointers);
  }
}

TEST_CASE("differing pointers: at most as many as asked for") {
  std::string a = "[0";
  std::string b = "[1";
  for (int i = 1; i < 300; ++i) {
    a += ",0";
    b += ",1";
  }
  a += "]";
  b += "]";
  CHECK(differing_pointers(a, b).size() == 100);
  CHECK(differing_pointers(a, b, 3) == std::vector<std::string>{"/0", "/1", "/2"});
  CHECK(differing_pointers("{}", R"({"a":1,"b":2})", 1) == std::vector<std::string>{"/a"});
  CHECK(differing_pointers(a, b, 0).empty());
}
