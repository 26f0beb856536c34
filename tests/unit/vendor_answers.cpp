// Whole answers of each endpoint: content, truncation, usage, text.

#include "unit/vendor_support.h"

using namespace aiq;
using namespace aiq_test;

namespace {

Usage usage(std::int64_t input, std::int64_t read, std::int64_t write_5m, std::int64_t write_1h,
            std::int64_t output) {
  return Usage{{input, read, write_5m, write_1h, output}};
}

AttemptResult chat_usage(const std::string& object) {
  return decode("openai", http(200, chat(R"({"content":"x"})", object))).result;
}
AttemptResult message_usage(const std::string& object) {
  return decode("anthropic", http(200, message(R"([{"type":"text","text":"x"}])", object))).result;
}

}  // namespace

TEST_CASE("answers: a whole chat answer completes with its body, usage and text") {
  const auto result = decode("openai", http(200, chat())).result;
  CHECK(outcome(result) == "completed");
  CHECK(billed(result) == "yes");
  CHECK(state(result) == "ok");
  CHECK(result.usage == usage(24, 0, 0, 0, 15));
  CHECK(result.body == chat());
  CHECK_FALSE(result.truncated);
  CHECK(result.error_code == "");
  CHECK(find_vendor("openai")->answer_text(Endpoint::chat, result.body) == "hello");
}

TEST_CASE("answers: what a chat message may hold instead of content") {
  struct Row {
    const char *message, *finish, *outcome;
  };
  const Row rows[] = {
      {R"({"content":"hi"})", "stop", "completed"},
      {R"({"content":[{"type":"text","text":"hi"}]})", "stop", "completed"},
      {R"({"content":null,"tool_calls":[{"id":"t"}]})", "tool_calls", "completed"},
      {R"({"content":null,"function_call":{"name":"f"}})", "function_call", "completed"},
      {R"({"content":null,"refusal":"no"})", "stop", "completed"},
      {R"({"content":null})", "content_filter", "completed"},
      {R"({"content":null})", "stop", "empty_response"},
      {R"({"content":""})", "stop", "empty_response"},
      {R"({"content":"","tool_calls":[]})", "stop", "empty_response"},
      {R"({"content":null,"refusal":""})", "stop", "empty_response"},
      {R"({})", "stop", "empty_response"},
      {R"(null)", "stop", "empty_response"},
      {R"({"content":""})", "length", "empty_response"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.message);
    const auto result = decode("openai", http(200, chat(row.message, "{}", row.finish))).result;
    CHECK(outcome(result) == row.outcome);
    CHECK(billed(result) == "maybe");
    CHECK(state(result) == "missing");
    CHECK(result.body.empty() == (result.outcome != Outcome::completed));
  }
}

TEST_CASE("answers: an empty answer charges its usage") {
  const char* bodies[] = {R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}})",
                          R"({"output":[],"usage":{"input_tokens":9,"output_tokens":0}})",
                          R"({"data":[],"usage":{"prompt_tokens":9,"total_tokens":9}})"};
  const Endpoint endpoints[] = {Endpoint::chat, Endpoint::responses, Endpoint::embeddings};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto result = decode("openai", http(200, bodies[i]), endpoints[i]).result;
    CHECK(outcome(result) == "empty_response");
    CHECK(billed(result) == "yes");
    CHECK(result.usage == usage(9, 0, 0, 0, 0));
    CHECK(result.retryable);
  }
  const auto result = decode("anthropic", http(200, message("[]"))).result;
  CHECK(outcome(result) == "empty_response");
  CHECK(result.usage == usage(3, 0, 0, 0, 5));
}

TEST_CASE("answers: a limit that was reached completes as truncated") {
  CHECK(decode("openai", http(200, chat(R"({"content":"x"})", "{}", "length"))).result.truncated);
  CHECK(
      decode("anthropic", http(200, message(R"([{"type":"text","text":"x"}])", "{}", "max_tokens")))
          .result.truncated);
  const auto responses = decode("openai", http(200, R"({"status":"incomplete","error":null,
                           "incomplete_details":{"reason":"max_output_tokens"},
                           "output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]})"),
                                Endpoint::responses)
                             .result;
  CHECK(outcome(responses) == "completed");
  CHECK(responses.truncated);
}

TEST_CASE("answers: the responses endpoint") {
  const std::string body =
      R"({"error":null,"incomplete_details":null,"output":[{"type":"reasoning","summary":[]},
          {"type":"message","content":[{"type":"output_text","text":"one "},
                                       {"type":"output_text","text":"two"}]},
          {"type":"message","content":[{"type":"output_text","text":" three"}]}],
          "usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},
                   "output_tokens":50,"output_tokens_details":{"reasoning_tokens":20}}})";
  const auto result = decode("openai", http(200, body), Endpoint::responses).result;
  CHECK(outcome(result) == "completed");
  CHECK(result.usage == usage(60, 40, 0, 0, 50));
  CHECK(find_vendor("openai")->answer_text(Endpoint::responses, body) == "one two three");
  const auto of = [](const char* output) {
    return outcome(decode("openai", http(200, std::string(R"({"output":)") + output + "}"),
                          Endpoint::responses)
                       .result);
  };
  CHECK(of(R"([{"type":"reasoning","summary":["x"]}])") == "empty_response");
  CHECK(of(R"([{"type":"message","content":[{"type":"output_text","text":""}]}])") ==
        "empty_response");
  CHECK(of(R"([{"type":"message","content":[{"type":"refusal","refusal":"no"}]}])") == "completed");
  CHECK(of(R"([{"type":"function_call","name":"f"}])") == "completed");
  CHECK(of("null") == "bad_response");
  CHECK(outcome(decode("openai", http(200, R"({"status":"failed","output":[],
                                             "error":{"code":"server_error","message":"m"}})"),
                       Endpoint::responses)
                    .result) == "server_error");
}

TEST_CASE("answers: the embeddings endpoint") {
  const std::string body = R"({"object":"list","data":[{"embedding":[0.1]}],
                               "usage":{"prompt_tokens":8,"total_tokens":8}})";
  const auto result = decode("openai", http(200, body), Endpoint::embeddings).result;
  CHECK(outcome(result) == "completed");
  CHECK(result.usage == usage(8, 0, 0, 0, 0));
  CHECK_FALSE(find_vendor("openai")->answer_text(Endpoint::embeddings, body).has_value());
}

TEST_CASE("answers: Anthropic content blocks") {
  struct Row {
    const char *content, *stop, *outcome;
  };
  const Row rows[] = {
      {R"([{"type":"text","text":"a"}])", "end_turn", "completed"},
      {R"([{"type":"tool_use","name":"f"}])", "tool_use", "completed"},
      {R"([])", "refusal", "completed"},
      {R"([{"type":"text","text":""}])", "end_turn", "empty_response"},
      {R"([{"type":"thinking","thinking":"hm"}])", "end_turn", "empty_response"},
      {R"("text")", "end_turn", "bad_response"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.content);
    CHECK(outcome(decode("anthropic", http(200, message(row.content, "{}", row.stop))).result) ==
          row.outcome);
  }
  const auto text =
      find_vendor("anthropic")
          ->answer_text(Endpoint::messages, message(R"([{"type":"thinking","thinking":"hm"},
                                                  {"type":"text","text":"a"},
                                                  {"type":"text","text":"b"}])"));
  CHECK(text == "ab");
  CHECK(outcome(decode("anthropic", http(200, R"({"type":"error","error":
            {"type":"overloaded_error","message":"m"}})"))
                    .result) == "overloaded");
}

TEST_CASE("usage: the vectors of the vendors come out in disjoint meters") {
  CHECK(message_usage(R"({"input_tokens":3,"cache_creation_input_tokens":12304,
                          "cache_read_input_tokens":0,"output_tokens":550})")
            .usage == usage(3, 0, 12304, 0, 550));
  CHECK(chat_usage(R"({"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100,
                       "prompt_tokens_details":{"cached_tokens":800},
                       "completion_tokens_details":{"reasoning_tokens":60}})")
            .usage == usage(200, 800, 0, 0, 100));
  CHECK(chat_usage(R"({"prompt_tokens":24,"completion_tokens":15})").usage ==
        usage(24, 0, 0, 0, 15));
  CHECK(chat_usage(R"({"prompt_tokens":1000,"completion_tokens":1,
                       "prompt_tokens_details":{"cached_tokens":300,"cache_write_tokens":500}})")
            .usage == usage(200, 300, 500, 0, 1));
  CHECK(message_usage(R"({"input_tokens":3,"cache_creation_input_tokens":30,
                          "cache_read_input_tokens":7,"output_tokens":5,
                          "cache_creation":{"ephemeral_5m_input_tokens":10,
                                            "ephemeral_1h_input_tokens":20}})")
            .usage == usage(3, 7, 10, 20, 5));
}

TEST_CASE("usage: what is null or left out is not counted, whole floats are") {
  const auto result = chat_usage(R"({"prompt_tokens":12.0,"completion_tokens":3,
      "prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}})");
  CHECK(state(result) == "ok");
  CHECK(result.usage == usage(12, 0, 0, 0, 3));
  CHECK(state(message_usage(R"({"input_tokens":1,"output_tokens":2,"cache_creation":null,
      "cache_read_input_tokens":null})")) == "ok");
  CHECK(state(chat_usage(R"({"prompt_tokens":0,"completion_tokens":0})")) == "ok");
}

TEST_CASE("usage: impossible numbers are invalid and not recorded") {
  const char* for_chat[] = {
      R"({"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":11}})",
      R"({"prompt_tokens":10,"completion_tokens":1,
          "prompt_tokens_details":{"cached_tokens":6,"cache_write_tokens":5}})",
      R"({"prompt_tokens":10,"completion_tokens":1,
          "completion_tokens_details":{"reasoning_tokens":2}})",
      R"({"prompt_tokens":-1,"completion_tokens":1})",
      R"({"prompt_tokens":1.5,"completion_tokens":1})",
      R"({"prompt_tokens":"12","completion_tokens":1})",
      R"({"prompt_tokens":1e300,"completion_tokens":1})",
      R"({"prompt_tokens":18446744073709551615,"completion_tokens":1})",
      R"({"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":7})",
      R"([1,2])",
  };
  for (const char* object : for_chat) {
    CAPTURE(object);
    const auto result = chat_usage(object);
    CHECK(outcome(result) == "completed");
    CHECK(state(result) == "invalid");
    CHECK(result.usage == Usage{});
    CHECK(billed(result) == "maybe");
  }
  CHECK(state(message_usage(R"({"input_tokens":1,"output_tokens":-2})")) == "invalid");
  CHECK(state(message_usage(R"({"input_tokens":1,"output_tokens":2,
      "cache_creation_input_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":10}})")) ==
        "invalid");
}

TEST_CASE("usage: it is recorded whatever the answer's outcome") {
  const std::string with = R"(,"usage":{"prompt_tokens":5,"completion_tokens":1}})";
  const auto error = decode("openai", http(500, R"({"error":{"message":"m"})" + with)).result;
  CHECK(outcome(error) == "server_error");
  CHECK(billed(error) == "yes");
  CHECK(state(error) == "ok");
  CHECK(error.usage == usage(5, 0, 0, 0, 1));
  const auto odd = decode("openai", http(200, R"({"x":1)" + with)).result;
  CHECK(outcome(odd) == "bad_response");
  CHECK(billed(odd) == "yes");
  CHECK(state(decode("openai", http(500, "{}")).result) == "none");
}
