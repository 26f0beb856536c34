#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/json_canonical.h"
#include "sim/answer.h"
#include "sim/api_request.h"
#include "sim/vendor_error.h"

using namespace aiq::sim;

namespace {

ApiRequest read(const std::string& path, const Json& body, const std::string& method = "POST") {
  return read_api_request({method, path, {}, body.dump()});
}

Json user_says(const std::string& text) {
  return {{"model", "m"}, {"messages", Json::array({{{"role", "user"}, {"content", text}}})}};
}

}  // namespace

TEST_CASE("sim request: text content is counted by bytes, structure is not") {
  struct Row {
    const char* path;
    const char* body;
    std::int64_t tokens;
    const char* last_user_text;
  };
  const Row rows[] = {
      {"/v1/chat/completions", R"({"model":"m","messages":[{"role":"user","content":"12345"}]})", 2,
       "12345"},
      {"/v1/chat/completions",
       R"({"model":"m","messages":[{"role":"system","content":"1234"},{"role":"user","content":
           [{"type":"text","text":"5678"},{"type":"image_url","image_url":{"url":"x"}}]},
           {"role":"assistant","content":null}]})",
       2, "5678"},
      {"/v1/chat/completions", R"({"model":"m","messages":[{"role":"user","content":""}]})", 0, ""},
      {"/v1/chat/completions", R"({"model":"m","messages":[{"role":"user","content":"éé"}]})", 1,
       "éé"},
      {"/v1/messages",
       R"({"model":"m","max_tokens":9,"system":[{"type":"text","text":"1234"}],"messages":[
           {"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"56"}]},
           {"type":"text","text":"78"}]}]})",
       2, "56\n78"},
      {"/v1/responses", R"({"model":"m","instructions":"1234","input":"5678"})", 2, "5678"},
      {"/v1/responses",
       R"({"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]})",
       1, "hi"},
      {"/v1/embeddings", R"({"model":"m","input":["1234","5678"]})", 2, "1234"},
      {"/v1/embeddings", R"({"model":"m","input":[[1,2,3],[4]]})", 4, "[1,2,3]"},
      {"/v1/embeddings", R"({"model":"m","input":[1,2,3]})", 3, "[1,2,3]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.body);
    const ApiRequest request = read_api_request({"POST", row.path, {}, row.body});
    CHECK_FALSE(request.problem);
    CHECK(request.prompt_tokens() == row.tokens);
    CHECK(request.last_user_text == row.last_user_text);
  }
}

TEST_CASE("sim request: what the vendor would refuse has a problem") {
  struct Row {
    const char* path;
    const char* body;
    const char* message;
  };
  const Row rows[] = {
      {"/v1/chat/completions", "not json", "could not parse"},
      {"/v1/chat/completions", "[]", "could not parse"},
      {"/v1/chat/completions", R"({"model":"m"})", "messages"},
      {"/v1/chat/completions", R"({"model":"","messages":[{"role":"user"}]})", "model"},
      {"/v1/chat/completions", R"({"model":"m","messages":[]})", "messages"},
      {"/v1/chat/completions", R"({"model":"m","messages":["x"]})", "messages"},
      {"/v1/chat/completions", R"({"model":"m","messages":[{"role":"user"}],"max_tokens":0})",
       "max_tokens"},
      {"/v1/chat/completions", R"({"model":"m","messages":[{"role":"user"}],"n":"2"})", "'n'"},
      {"/v1/chat/completions",
       R"({"model":"m","messages":[{"role":"user"}],"max_tokens":18446744073709551615})",
       "max_tokens"},
      {"/v1/messages", R"({"model":"m","messages":[{"role":"user"}]})",
       "max_tokens: Field required"},
      {"/v1/responses", R"({"model":"m","input":5})", "input"},
      {"/v1/embeddings", R"({"model":"m","input":[true]})", "input"},
      {"/v1/embeddings", R"({"model":"m","input":[]})", "input"},
      {"/v2/else", "{}", "Unknown request URL"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.body);
    const ApiRequest request = read_api_request({"POST", row.path, {}, row.body});
    REQUIRE(request.problem);
    CHECK(request.problem->message.find(row.message) != std::string::npos);
  }
  CHECK(read("/v1/chat/completions", user_says("x"), "GET").problem->status == 405);
}

TEST_CASE("sim answer: equal texts get equal words, other texts, models and seeds other ones") {
  const auto words = [](const Json& body, std::uint64_t seed) {
    return complete(read("/v1/chat/completions", body), seed).front().text;
  };
  const std::string first = words(user_says("hello"), 0);
  CHECK(first.rfind("echo: hello\n\n", 0) == 0);
  Json reordered = {{"messages", user_says("hello")["messages"]}, {"model", "m"}};
  CHECK(words(reordered, 0) == first);
  int different = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    different += words(user_says("hello"), seed) != first;
  CHECK(different > 5);
}

TEST_CASE("sim answer: max_tokens cuts at a code point and shows in the finish reason") {
  for (std::int64_t limit = 1; limit < 12; ++limit) {
    CAPTURE(limit);
    Json body = user_says("ééééééé€€€€");
    body["max_tokens"] = limit;
    body["n"] = 2;
    const ApiRequest request = read("/v1/chat/completions", body);
    const auto completions = complete(request, 0);
    REQUIRE(completions.size() == 2);
    CHECK(aiq::is_valid_utf8(completions[0].text));
    CHECK(completions[0].tokens == limit);
    CHECK(completions[0].length_limited);
    const Json answer = answer_body(request, completions, 0, {1, 0});
    CHECK(answer["choices"][1]["finish_reason"] == "length");
    CHECK(answer["usage"]["completion_tokens"] == 2 * limit);
  }
}

TEST_CASE("sim answer: usage has each vendor's own fields") {
  Json body = user_says("12345678");
  body["max_tokens"] = 1000;
  const auto answer = [&](const std::string& path, const Json& asked) {
    const ApiRequest request = read(path, asked);
    REQUIRE_FALSE(request.problem);
    return answer_body(request, complete(request, 0), 0, {7, 1000});
  };
  const Json chat = answer("/v1/chat/completions", body);
  CHECK(chat["usage"]["prompt_tokens"] == 2);
  CHECK(chat["usage"]["prompt_tokens_details"]["cached_tokens"] == 0);
  const Json message = answer("/v1/messages", body);
  CHECK(message["usage"]["input_tokens"] == 2);
  CHECK(message["usage"]["output_tokens"] == chat["usage"]["completion_tokens"]);
  const Json response = answer("/v1/responses", {{"model", "m"}, {"input", "12345678"}});
  CHECK(response["usage"]["input_tokens"] == 2);
  const Json vectors = answer("/v1/embeddings", {{"model", "m"}, {"input", "12345678"}});
  CHECK(vectors["usage"] == Json({{"prompt_tokens", 2}, {"total_tokens", 2}}));
  CHECK(vectors["data"][0]["embedding"].size() == kEmbeddingDimensions);
}

TEST_CASE("sim error: bodies have the shape of the vendor") {
  const Json openai = error_body(false, usual_problem(429), "req");
  CHECK(openai["error"]["code"] == "rate_limit_exceeded");
  CHECK(openai["error"]["param"].is_null());
  const Json anthropic = error_body(true, usual_problem(529), "req");
  CHECK(anthropic["type"] == "error");
  CHECK(anthropic["error"]["type"] == "overloaded_error");
  CHECK(anthropic["request_id"] == "req");
  CHECK(error_body(false, usual_problem(599), "req")["error"]["type"] == "server_error");
  CHECK(error_body(true, usual_problem(418), "req")["error"]["type"] == "invalid_request_error");
}

TEST_CASE("sim request: the head of a text ends between code points") {
  CHECK(head_of("abc", 2) == "ab");
  CHECK(head_of("é€😀x", 3) == "é€😀");
  CHECK(head_of("ab", 80) == "ab");
  CHECK(head_of("", 80).empty());
}
