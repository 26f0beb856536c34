#include "core/base/redact.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/base/json_canonical.h"

using namespace aiq;

namespace {

constexpr std::string_view kSecret = "Zq7/w\"x+ y\\=K9?tail";

struct Registered {
  Registered() { register_secret(kSecret); }
};

std::string secrets_only(std::string text) {
  redact_secrets(text);
  return text;
}

}  // namespace

TEST_CASE("redact: all written forms of a registered secret go") {
  const Registered registered;
  struct Row {
    std::string_view form;
    std::string_view text;
  };
  const Row rows[] = {
      {"as it is", R"(Zq7/w"x+ y\=K9?tail)"},
      {"JSON", R"(Zq7/w\"x+ y\\=K9?tail)"},
      {"JSON with \\/", R"(Zq7\/w\"x+ y\\=K9?tail)"},
      {"percent", "Zq7%2Fw%22x%2B%20y%5C%3DK9%3Ftail"},
      {"percent, lower case", "Zq7%2fw%22x%2b%20y%5c%3dK9%3ftail"},
      {"form", "Zq7%2Fw%22x%2B+y%5C%3DK9%3Ftail"},
      {"Base64", "WnE3L3cieCsgeVw9Szk/dGFpbA=="},
      {"Base64 without padding", "WnE3L3cieCsgeVw9Szk/dGFpbA"},
      {"Base64 for URLs", "WnE3L3cieCsgeVw9Szk_dGFpbA"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.form);
    const std::string text = "before:" + std::string(row.text) + "&after";
    CHECK(secrets_only(text) == "before:[redacted]&after");
    CHECK(redact(text) == "before:[redacted]&after");
  }
}

TEST_CASE("redact: any bytes of a secret may be escaped") {
  register_secret("sk-live.escaped&Key");
  const std::string_view forms[] = {
      R"(sk\u002dlive.escaped&Key)",
      R"(sk\u002Dlive\u002eescaped\u0026Key)",
      R"(\u0073\u006b\u002d\u006c\u0069\u0076\u0065.escaped&Key)",
      R"(sk\\u002dlive.escaped&Key)",    // JSON in a string of JSON
      R"(sk\\\\u002dlive.escaped&Key)",  // and once more
      "sk%2Dlive%2eescaped%26Key",
      "%73%6b-live.escaped&Key",
      "sk&#45;live&#x2E;escaped&amp;Key",
      "&#115;k-live.escaped&#38;Key",
      R"(sk%2Dlive\u002eescaped&amp;Key)",
  };
  for (const std::string_view form : forms) {
    CAPTURE(form);
    CHECK(secrets_only("a " + std::string(form) + " z") == "a [redacted] z");
    CHECK(redact("\"" + std::string(form) + "\"") == "\"[redacted]\"");
    CHECK(secrets_only(std::string(form)) == kRedacted);
  }
}

TEST_CASE("redact: escapes of other texts stay") {
  register_secret("sk-live.escaped&Key");
  for (const std::string_view text :
       {R"(sk\u002dlive)", R"(sk\u002elive.escaped&Key)", "100% of &amp; 50%2", "%", "a&#45", "&#;",
        "&#99999999999;", R"(\u)", R"(\u00)", R"(\\)", "&", "sk%2", R"(\ud83d\ude00)"}) {
    CAPTURE(text);
    CHECK(secrets_only(std::string(text)) == text);
  }
  std::string body = R"({"text":"C:\\sk\u002dlive.escaped\u0026Key\n"})";
  CHECK(redact_secrets(body));
  CHECK(body == R"({"text":"C:\\[redacted]\n"})");
  CHECK(canonicalize_json(body).has_value());
}

TEST_CASE("redact: a secret inside of longer Base64 leaves none of its bytes") {
  const Registered registered;
  // "u:" and "ab:" and "abc:" before the secret, as in Basic credentials: all bit positions.
  for (const std::string_view text :
       {"dTpacTcvdyJ4KyB5XD1LOT90YWls",
        "YWI6WnE3L3cieCsgeVw9Szk/dGFpbA==", "YWJjOlpxNy93IngrIHlcPUs5P3RhaWw="}) {
    const std::string cleaned = secrets_only(std::string(text));
    CAPTURE(cleaned);
    CHECK(cleaned.find("[redacted]") != std::string::npos);
    // What stays are the bytes before, and at most 3 characters on each side of the cut.
    CHECK(cleaned.size() <= 5 + kRedacted.size() + 3);
  }
}

TEST_CASE("redact: overlapping and repeated secrets go as one or each") {
  register_secret("overlapONE");
  register_secret("ONEtwothree");
  register_secret("overlap");
  CHECK(secrets_only("x overlapONEtwothree y") == "x [redacted] y");
  CHECK(secrets_only("overlap,overlapONE,overlap") == "[redacted],[redacted],[redacted]");
  CHECK(secrets_only("overlapoverlap") == "[redacted][redacted]");
}

TEST_CASE("redact: short secrets are not registered, others once") {
  register_secret("abc");
  register_secret("");
  CHECK(secrets_only("abc") == "abc");
  register_secret("vier");
  register_secret("vier");
  CHECK(secrets_only("a vier b vie") == "a [redacted] b vie");
}

TEST_CASE("redact: vendor bodies keep look-alikes and stay JSON") {
  register_secret("newtoken99");
  std::string body = R"({"text":"use sk-abcdefghijkl or Bearer abc","line":"x\newtoken99"})";
  CHECK(redact_secrets(body));
  CHECK(body == R"({"text":"use sk-abcdefghijkl or Bearer abc","line":"x[redacted]"})");
  CHECK(canonicalize_json(body).has_value());
  CHECK_FALSE(redact_secrets(body));
  std::string escaped = R"({"line":"C:\\newtoken99"})";
  CHECK(redact_secrets(escaped));
  CHECK(escaped == R"({"line":"C:\\[redacted]"})");
}

TEST_CASE("redact: what looks like a credential") {
  struct Row {
    std::string_view text;
    std::string_view cleaned;
  };
  const Row rows[] = {
      {"Authorization: Bearer abc.def-1", "Authorization: [redacted]"},
      {"authorization:Basic dXNlcjpwYXNz\r\nHost: h", "authorization:[redacted]\r\nHost: h"},
      {"x-api-key: 12345, next", "x-api-key: [redacted], next"},
      {"X-Api-Key=12345&a=b", "X-Api-Key=[redacted]&a=b"},
      {"api-key: k1", "api-key: [redacted]"},
      {R"({"Authorization":"Bearer abc","n":1})", R"({"Authorization":"[redacted]","n":1})"},
      {R"({"x-api-key" : "a b\"c","n":1})", R"({"x-api-key" : "[redacted]","n":1})"},
      {R"({"authorization":["Token abc"]})", R"({"authorization":["[redacted]"]})"},
      {R"({"authorization":null,"n":1})", R"({"authorization":null,"n":1})"},
      {R"({"authorization":{"type":"none"}})", R"({"authorization":{"type":"none"}})"},
      {R"({"e":"{\"x-api-key\":\"abc\",\"n\":1}"})",
       R"({"e":"{\"x-api-key\":\"[redacted]\",\"n\":1}"})"},
      {R"({"e":"Authorization: Token abc\r\nHost: h"})",
       R"({"e":"Authorization: [redacted]\r\nHost: h"})"},
      {"{'Authorization': 'Token abc'}", "{'Authorization': '[redacted]'}"},
      {"sent bearer abc123== ok", "sent bearer [redacted] ok"},
      {"?h=Bearer%20abc%3D&x", "?h=Bearer%20[redacted]&x"},
      {"key sk-proj-Ab_9xyz.", "key [redacted]."},
      {R"({"m":"a\nsk-abcdef123"})", R"({"m":"a\n[redacted]"})"},
      {"k=sk-ant-api03-xx", "k=[redacted]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(redact(row.text) == row.cleaned);
    CHECK(redact(row.cleaned) == row.cleaned);
    if (row.text.front() == '{' && row.text[1] == '"') {
      CHECK(canonicalize_json(redact(row.text)).has_value());
    }
  }
}

TEST_CASE("redact: ordinary words stay") {
  for (const std::string_view text :
       {"", "the authorization failed", "Authorization", "api-key", "task-scheduler-12 risk-based",
        "sk-learn", "forbearer of news", "bearer", "the x-api-key header is missing",
        "\"authorization\":\"\"", "a sk- b"}) {
    CHECK(redact(text) == text);
  }
}

TEST_CASE("redact: registering while others redact") {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 300; ++i)
        (void)redact("text with early-secret-0 and Bearer abc");
    });
  }
  for (int i = 0; i < 20; ++i)
    register_secret("early-secret-" + std::to_string(i));
  threads.clear();
  CHECK(redact("early-secret-7") == kRedacted);
}
