#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/base/sha256.h"
#include "core/model/request.h"

using namespace aiq;

namespace {

CheckedBody checked(std::string_view body) {
  auto result = check_body(body);
  REQUIRE_MESSAGE(result.has_value(), body);
  return *result;
}

InvalidRequest refused(std::string_view body) {
  auto result = check_body(body);
  REQUIRE_MESSAGE(!result.has_value(), body);
  return result.error();
}

KeyInputs inputs() {
  return {.tenant = "kitchen",
          .cache_group = "",
          .vendor = "main",
          .model = "gpt-4o-mini",
          .endpoint = Endpoint::chat,
          .locale = "",
          .safety = "",
          .scope = ""};
}

std::string nested(int depth) {
  const auto n = static_cast<std::size_t>(depth);
  return "{\"a\":" + std::string(n - 1, '[') + std::string(n - 1, ']') + "}";
}

}  // namespace

TEST_CASE("request: endpoints have the contract's names") {
  for (const char* name : {"chat", "embeddings", "responses", "messages"}) {
    const auto endpoint = parse_endpoint(name);
    REQUIRE(endpoint.has_value());
    CHECK(to_string(*endpoint) == name);
  }
  CHECK_FALSE(parse_endpoint("completions").has_value());
}

TEST_CASE("request: a body without a stream goes out byte for byte") {
  for (const std::string body :
       {R"({"model":"m"})", " {\n\t\"b\" : 1.0 ,\"a\":\"\\u0041\" } \n", R"({"stream":false})",
        R"({"a":{"stream":true},"b":[{"stream":true}]})", "{}"}) {
    const CheckedBody out = checked(body);
    CHECK(out.sent == body);
    CHECK_FALSE(out.stream_removed);
  }
}

TEST_CASE("request: only the outermost stream is sent as false, the rest as given") {
  struct Row {
    std::string body, sent;
  };
  const std::vector<Row> rows = {
      {R"({"stream":true})", R"({"stream":false})"},
      {"{ \"a\" :1,\n \"stream\"  :  true  , \"b\": [ 2 ] }",
       "{ \"a\" :1,\n \"stream\"  :  false  , \"b\": [ 2 ] }"},
      {R"({"\u0073tream":true,"x":"y"})", R"({"\u0073tream":false,"x":"y"})"},
      {R"({"stream":null})", R"({"stream":false})"},
      {R"({"stream":"false"})", R"({"stream":false})"},
      {R"({"x":{"stream":true},"stream":{"stream":1},"max_tokens":7})",
       R"({"x":{"stream":true},"stream":false,"max_tokens":7})"},
  };
  for (const Row& row : rows) {
    const CheckedBody out = checked(row.body);
    CHECK(out.sent == row.sent);
    CHECK(out.stream_removed);
  }
  // Members behind it are still read from the right place.
  CHECK(checked(rows.back().body).output_limit == 7);
}

TEST_CASE("request: members that do not change an answer are not in the canonical request") {
  const CheckedBody out =
      checked(R"({"user":"u","metadata":{"a":1},"store":true,"stream":true,"stream_options":{},)"
              R"("z":1,"model":"m","service_tier":"flex","n":{"user":"kept"}})");
  CHECK(out.canonical == R"({"model":"m","n":{"user":"kept"},"service_tier":"flex","z":1})");
  CHECK(out.cache_canonical == R"({"model":"m","n":{"user":"kept"},"z":1})");
  const CheckedBody plain = checked(R"({"b":1,"a":12345678901234567890123})");
  CHECK(plain.canonical == R"({"a":12345678901234567890123,"b":1})");
  CHECK(plain.cache_canonical == plain.canonical);
}

TEST_CASE("request: model, output limit and temperature are read, and never judged") {
  struct Row {
    std::string body, model;
    std::optional<std::int64_t> limit;
    std::optional<double> temperature;
  };
  const std::vector<Row> rows = {
      {R"({})", "", {}, {}},
      {R"({"model":"gpt-\u0034","max_tokens":16,"temperature":0})", "gpt-4", 16, 0.0},
      {R"({"model":7,"max_tokens":"16","temperature":"hot"})", "", {}, {}},
      {R"({"model":null,"max_tokens":-1,"temperature":null})", "", {}, {}},
      {R"({"max_completion_tokens":32,"temperature":0.7})", "", 32, 0.7},
      {R"({"max_output_tokens":64,"temperature":1e400})", "", 64, {}},
      {R"({"max_tokens":8,"max_completion_tokens":32,"max_output_tokens":16})", "", 32, {}},
      {R"({"max_tokens":1e3,"temperature":2})", "", 1000, 2.0},
      {R"({"max_tokens":1.5})", "", {}, {}},
      {R"({"max_tokens":99999999999999999999})", "", {}, {}},
      {R"({"max_tokens":9223372036854775807})", "", INT64_MAX, {}},
      {R"({"max_tokens":0,"x":{"model":"inner","max_tokens":5}})", "", 0, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.body);
    const CheckedBody out = checked(row.body);
    CHECK(out.model == row.model);
    CHECK(out.output_limit == row.limit);
    CHECK(out.temperature == row.temperature);
  }
}

TEST_CASE("request: what can't have one meaning is refused, with a code and the byte") {
  struct Row {
    std::string body, code;
  };
  const std::vector<Row> rows = {
      {"", "invalid_json_line"},
      {"{", "invalid_json_line"},
      {"{}x", "invalid_json_line"},
      {"{'a':1}", "invalid_json_line"},
      {"\xEF\xBB\xBF{}", "invalid_json_line"},
      {"{\"a\":\"\xFF\"}", "invalid_utf8"},
      {"{\"a\":\"\xED\xA0\x80\"}", "invalid_utf8"},
      {R"({"a":"\ud800"})", "invalid_request"},
      {R"({"a":1,"\u0061":2})", "invalid_request"},
      {R"({"x":{"a":1,"a":1}})", "invalid_request"},
      {"[]", "invalid_request"},
      {"null", "invalid_request"},
      {"\"text\"", "invalid_request"},
      {nested(129), "invalid_request"},
  };
  for (const Row& row : rows) {
    const InvalidRequest error = refused(row.body);
    CAPTURE(row.body);
    CAPTURE(error.message);
    CHECK(error.code == row.code);
    CHECK(error.message.find(" at byte ") != std::string::npos);
    CHECK(error.message.find('\n') == std::string::npos);
  }
  CHECK(check_body(nested(128)).has_value());
}

TEST_CASE("keys: 64 lower-case hex digits, framed as the header says") {
  const CheckedBody body = checked(R"({"model":"m"})");
  KeyInputs in = inputs();
  in.cache_group = "g";
  in.scope = "s";
  const auto expect = [&](const char* domain, const char* owner) {
    Sha256 hash;
    for (const char* field :
         {domain, "1", owner, "main", "gpt-4o-mini", "chat", "{\"model\":\"m\"}", "", "", "s"}) {
      hash.update_field(field);
    }
    return hash.hex();
  };
  const RequestKeys keys = derive_keys(in, body);
  CHECK(keys.idempotency_key == expect("idempotency", "kitchen"));
  CHECK(keys.cache_key == expect("cache", "group:g"));
  CHECK(keys.cache_key.size() == 64);
  CHECK(keys.cache_key.find_first_not_of("0123456789abcdef") == std::string::npos);
}

TEST_CASE("keys: every input that may change the answer changes both keys") {
  const CheckedBody body = checked(R"({"model":"m","x":1})");
  const RequestKeys base = derive_keys(inputs(), body);
  const std::vector<std::function<void(KeyInputs&)>> changes = {
      [](KeyInputs& in) { in.tenant = "office"; },
      [](KeyInputs& in) { in.vendor = "other"; },
      [](KeyInputs& in) { in.model = "gpt-4o"; },
      [](KeyInputs& in) { in.endpoint = Endpoint::responses; },
      [](KeyInputs& in) { in.locale = "de-DE"; },
      [](KeyInputs& in) { in.safety = "de-DE"; },
      [](KeyInputs& in) { in.scope = "de-DE"; },
      [](KeyInputs& in) { in.version = "0"; },
      // The same text cut elsewhere must not meet.
      [](KeyInputs& in) { in.vendor = "maing", in.model = "pt-4o-mini"; },
  };
  std::set<std::string> seen = {base.idempotency_key, base.cache_key};
  CHECK(seen.size() == 2);
  for (const auto& change : changes) {
    KeyInputs in = inputs();
    change(in);
    const RequestKeys keys = derive_keys(in, body);
    CHECK(seen.insert(keys.idempotency_key).second);
    CHECK(seen.insert(keys.cache_key).second);
  }
  const RequestKeys other = derive_keys(inputs(), checked(R"({"model":"m","x":2})"));
  CHECK(seen.insert(other.idempotency_key).second);
  CHECK(seen.insert(other.cache_key).second);
}

TEST_CASE("keys: the same request written differently has the same keys") {
  const RequestKeys base = derive_keys(inputs(), checked(R"({"a":"é","b":1,"c":[1,2]})"));
  for (const char* text :
       {R"({"c":[1,2],"b":1,"a":"é"})", "{ \"a\":\"\\u00e9\", \"b\":1 ,\"c\":[ 1, 2 ] }\n",
        R"({"user":"me","stream":true,"a":"é","b":1,"c":[1,2],"metadata":null})"}) {
    const RequestKeys keys = derive_keys(inputs(), checked(text));
    CHECK(keys.idempotency_key == base.idempotency_key);
    CHECK(keys.cache_key == base.cache_key);
  }
  // Not Unicode-normalised, not trimmed; the order of an array counts.
  for (const char* text : {R"({"a":"e\u0301","b":1,"c":[1,2]})", R"({"a":"é ","b":1,"c":[1,2]})",
                           R"({"a":"é","b":1,"c":[2,1]})"}) {
    CHECK(derive_keys(inputs(), checked(text)).idempotency_key != base.idempotency_key);
  }
}

TEST_CASE("keys: the service tier tells jobs apart, but not cached answers") {
  const RequestKeys plain = derive_keys(inputs(), checked(R"({"a":1})"));
  const RequestKeys flex = derive_keys(inputs(), checked(R"({"a":1,"service_tier":"flex"})"));
  CHECK(plain.idempotency_key != flex.idempotency_key);
  CHECK(plain.cache_key == flex.cache_key);
}

TEST_CASE("keys: a cache group shares answers, and is never a tenant of that name") {
  const CheckedBody body = checked(R"({"a":1})");
  KeyInputs kitchen = inputs();
  KeyInputs office = inputs();
  office.tenant = "office";
  CHECK(derive_keys(kitchen, body).cache_key != derive_keys(office, body).cache_key);
  kitchen.cache_group = office.cache_group = "house";
  CHECK(derive_keys(kitchen, body).cache_key == derive_keys(office, body).cache_key);
  CHECK(derive_keys(kitchen, body).idempotency_key != derive_keys(office, body).idempotency_key);
  KeyInputs house = inputs();
  house.tenant = "house";
  CHECK(derive_keys(house, body).cache_key != derive_keys(kitchen, body).cache_key);
}
