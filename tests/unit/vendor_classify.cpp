// The table of what an answer means, row by row, through the adapters.

#include "core/base/json_canonical.h"
#include "core/base/redact.h"
#include "unit/vendor_support.h"

using namespace aiq;
using namespace aiq_test;
using Failure = HttpResult::Failure;

TEST_CASE("classify: every failure of the transport has its outcome and bill") {
  struct Row {
    Failure failure;
    bool sent;
    const char *outcome, *billed;
  };
  const Row rows[] = {
      {Failure::not_sent, false, "network", "no"},
      {Failure::connect_timeout, false, "connect_timeout", "no"},
      {Failure::first_byte_timeout, true, "first_byte_timeout", "maybe"},
      {Failure::total_timeout, true, "total_timeout", "maybe"},
      {Failure::broken, true, "network", "maybe"},
      {Failure::cut, true, "bad_response", "maybe"},
      {Failure::too_large, true, "bad_response", "maybe"},
      {Failure::malformed, true, "bad_response", "maybe"},
      {Failure::cancelled, true, "cancelled", "maybe"},
      {Failure::cancelled, false, "cancelled", "no"},
  };
  for (const auto& row : rows) {
    for (const int status : {0, 200}) {
      CAPTURE(row.outcome);
      HttpResult http;
      http.failure = row.failure;
      http.failure_text = "it broke";
      http.sent = row.sent;
      http.status = row.sent ? status : 0;
      http.total_ms = 7;
      const auto result = decode("openai", http).result;
      CHECK(outcome(result) == row.outcome);
      CHECK(billed(result) == row.billed);
      CHECK(result.retryable);
      CHECK(result.error_code != "");
      CHECK(result.error_message == "it broke");
      CHECK(state(result) == "none");
      CHECK(result.body == "");
      CHECK(result.total_ms == 7);
      CHECK(result.http_status.has_value() == (http.status != 0));
    }
  }
}

TEST_CASE("classify: every status has its outcome, bill, retry and pause") {
  struct Row {
    int status;
    const char* outcome;
    const char* billed;
    bool retryable, vendor, model;
  };
  const Row rows[] = {
      {400, "rejected", "no", false, false, false},
      {401, "auth", "no", true, true, false},
      {402, "vendor_quota", "no", true, true, false},
      {403, "auth", "no", true, false, true},
      {404, "rejected", "no", false, false, false},
      {408, "server_error", "no", true, false, false},
      {409, "server_error", "no", true, false, false},
      {410, "rejected", "no", false, false, false},
      {413, "rejected", "no", false, false, false},
      {418, "rejected", "no", false, false, false},
      {422, "rejected", "no", false, false, false},
      {425, "server_error", "no", true, false, false},
      {429, "rate_limited", "no", true, false, false},
      {499, "rejected", "no", false, false, false},
      {500, "server_error", "no", true, false, false},
      {501, "server_error", "no", true, false, false},
      {502, "server_error", "no", true, false, false},
      {503, "overloaded", "no", true, false, false},
      {504, "server_error", "no", true, false, false},
      {529, "overloaded", "no", true, false, false},
      {599, "server_error", "no", true, false, false},
      {300, "rejected", "no", false, false, false},
      {301, "rejected", "no", false, false, false},
      {307, "rejected", "no", false, false, false},
      {201, "bad_response", "maybe", true, false, false},
      {202, "bad_response", "maybe", true, false, false},
      {204, "bad_response", "maybe", true, false, false},
      {999, "bad_response", "maybe", true, false, false},
  };
  for (const auto& row : rows) {
    for (const char* api : {"openai", "anthropic"}) {
      CAPTURE(row.status);
      const auto result = decode(api, http(row.status, R"({"error":{"message":"why"}})")).result;
      CHECK(outcome(result) == row.outcome);
      CHECK(billed(result) == row.billed);
      CHECK(result.retryable == row.retryable);
      CHECK(result.spent_vendor == row.vendor);
      CHECK(result.spent_model == row.model);
      CHECK(result.http_status == row.status);
      CHECK(result.body == "");
    }
  }
}

TEST_CASE("classify: an error status counts even when its body is cut or too large") {
  for (const auto failure : {Failure::cut, Failure::too_large}) {
    auto result = http(503, R"({"error":{"mess)");
    result.failure = failure;
    CHECK(outcome(decode("openai", result).result) == "overloaded");
    CHECK(billed(decode("openai", result).result) == "no");
  }
  auto late = http(503, "");
  late.failure = Failure::total_timeout;
  CHECK(outcome(decode("openai", late).result) == "total_timeout");
}

TEST_CASE("classify: 429 is a wait or a spend limit") {
  struct Row {
    const char *api, *body, *outcome, *code;
  };
  const Row rows[] = {
      {"openai", R"({"error":{"code":"rate_limit_exceeded","type":"requests"}})", "rate_limited",
       "rate_limit_exceeded"},
      {"openai", R"({"error":{"code":"slow_down"}})", "rate_limited", "slow_down"},
      {"openai", R"({"error":{"code":"something_new"}})", "rate_limited", "something_new"},
      {"openai", R"({"error":{"code":429,"message":"busy"}})", "rate_limited", "429"},
      {"openai", R"({"error":"too many"})", "rate_limited", "http_429"},
      {"openai", "<html>busy</html>", "rate_limited", "http_429"},
      {"openai", "", "rate_limited", "http_429"},
      {"openai", R"({"error":{"type":"insufficient_quota","code":null}})", "vendor_quota",
       "insufficient_quota"},
      {"openai", R"({"error":{"type":"x","code":"insufficient_quota"}})", "vendor_quota",
       "insufficient_quota"},
      {"openai", R"({"error":{"code":"credit_balance_exhausted"}})", "vendor_quota",
       "credit_balance_exhausted"},
      {"openai", R"({"error":{"code":"organization_spend_limit_exceeded"}})", "vendor_quota",
       "organization_spend_limit_exceeded"},
      {"openai", R"({"error":{"code":"project_spend_limit_exceeded"}})", "vendor_quota",
       "project_spend_limit_exceeded"},
      {"openai", R"({"error":{"code":"organization_usage_limit_exceeded"}})", "vendor_quota",
       "organization_usage_limit_exceeded"},
      {"anthropic", R"({"type":"error","error":{"type":"rate_limit_error","message":"m"}})",
       "rate_limited", "rate_limit_error"},
      {"anthropic",
       R"({"type":"error","error":{"type":"rate_limit_error","message":"m",
           "details":{"error_code":"enforced_spend_limit_reached"}}})",
       "vendor_quota", "enforced_spend_limit_reached"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.body);
    const auto result = decode(row.api, http(429, row.body)).result;
    CHECK(outcome(result) == row.outcome);
    CHECK(result.error_code == row.code);
    CHECK(result.spent_vendor == (result.outcome == Outcome::vendor_quota));
    CHECK(billed(result) == "no");
  }
}

TEST_CASE("classify: an Anthropic 400 that names a spend limit is one, another is not") {
  const auto body = [](const std::string& text) {
    return R"({"type":"error","error":{"type":"invalid_request_error","message":")" + text +
           R"("}})";
  };
  for (const char* text :
       {"This workspace has reached its spend limit.", "Your credit balance is too low to go on.",
        "You have reached your specified API usage limits. You will regain access later."}) {
    CAPTURE(text);
    CHECK(outcome(decode("anthropic", http(400, body(text))).result) == "vendor_quota");
    CHECK(decode("anthropic", http(400, body(text))).result.spent_vendor);
    CHECK(outcome(decode("openai", http(400, body(text))).result) == "rejected");
    CHECK(outcome(decode("anthropic", http(404, body(text))).result) == "rejected");
  }
  CHECK(outcome(decode("anthropic", http(400, body("max_tokens: too large"))).result) ==
        "rejected");
}

TEST_CASE("classify: an error inside a 200 is judged by its names") {
  struct Row {
    const char *error, *outcome, *billed;
    bool retryable;
  };
  const Row rows[] = {
      {R"({"code":"rate_limit_exceeded"})", "rate_limited", "no", true},
      {R"({"type":"insufficient_quota"})", "vendor_quota", "no", true},
      {R"({"code":"invalid_api_key","type":"invalid_request_error"})", "auth", "no", true},
      {R"({"type":"permission_error"})", "auth", "no", true},
      {R"({"type":"overloaded_error"})", "overloaded", "no", true},
      {R"({"type":"server_error","message":"m"})", "server_error", "maybe", true},
      {R"({"type":"invalid_request_error","code":null})", "rejected", "no", false},
      {R"({"code":429})", "rate_limited", "no", true},
      {R"({"code":"502"})", "server_error", "maybe", true},
      {R"({"code":7})", "bad_response", "maybe", true},
      {R"({"message":"what is this"})", "bad_response", "maybe", true},
      {R"("just text")", "bad_response", "maybe", true},
      {R"({})", "bad_response", "maybe", true},
      {R"(false)", "bad_response", "maybe", true},
  };
  for (const auto& row : rows) {
    for (const char* rest : {"", R"(,"choices":[{"message":{"content":"hi"}}])"}) {
      CAPTURE(row.error);
      const auto result =
          decode("openai", http(200, std::string(R"({"error":)") + row.error + rest + "}")).result;
      CHECK(outcome(result) == row.outcome);
      CHECK(billed(result) == row.billed);
      CHECK(result.retryable == row.retryable);
      CHECK(result.body == "");
      CHECK(result.error_code != "");
    }
  }
  CHECK(outcome(decode("openai", http(200, R"({"error":null,)" + chat().substr(1))).result) ==
        "completed");
}

TEST_CASE("classify: a 200 that can't be an answer is a bad response with its beginning kept") {
  struct Row {
    std::string body, code;
  };
  const Row rows[] = {
      {"", "empty_body"},
      {" \r\n", "empty_body"},
      {"<!DOCTYPE html><html>Bad gateway</html>", "html"},
      {"{\"choices\":[", "invalid_json"},
      {chat() + "x", "invalid_json"},
      {chat("{\"content\":\"\xff\"}"), "invalid_utf8"},
      {chat(R"({"content":"\ud800"})"), "invalid_json"},
      {"[]", "invalid_json"},
      {"null", "invalid_json"},
      {"{}", "unexpected_shape"},
      {R"({"choices":{}})", "unexpected_shape"},
      {R"({"message":"ok"})", "unexpected_shape"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.body);
    const auto result = decode("openai", http(200, row.body)).result;
    CHECK(outcome(result) == "bad_response");
    CHECK(result.error_code == row.code);
    CHECK(is_valid_utf8(result.excerpt));
    CHECK(result.excerpt.empty() == (row.body.empty()));
    CHECK(result.retryable);
  }
  const auto large = decode("openai", http(200, std::string(9000, 'x'))).result;
  CHECK(large.excerpt == std::string(2048, 'x'));
  const auto wide = decode("openai", http(502, "a" + std::string(9000, '\xc3'))).result;
  CHECK(is_valid_utf8(wide.excerpt));
  CHECK(wide.excerpt.size() == 2048);
}

TEST_CASE("classify: an excerpt cuts between characters and shows no control characters") {
  std::string body = "<";
  for (int i = 0; i < 2000; ++i)
    body += "\u00e9";
  const auto result = decode("openai", http(200, body)).result;
  CHECK(result.excerpt.size() == 2047);
  CHECK(is_valid_utf8(result.excerpt));
  using namespace std::string_literals;
  CHECK(decode("openai", http(200, "<a\0\x1b[31m\r\n"s)).result.excerpt == "<a  [31m \n");
}

TEST_CASE("classify: secrets that a vendor echoes are kept out of every text") {
  const std::string secret = "topsecretvalue-12345";
  register_secret(secret);
  const auto error =
      http(401, R"({"error":{"message":"bad key )" + secret + R"(","code":")" + secret + R"("}})",
           {{"x-request-id", "r-" + secret}});
  const auto html = http(502, "<html>" + std::string(2040, 'x') + secret + "</html>");
  const auto answer = http(200, chat(R"({"content":"you sent )" + secret + R"("})"));
  auto failed = http(0, "");
  failed.failure = Failure::broken;
  failed.failure_text = "proxy " + secret;
  for (const auto& h : {error, html, answer, failed}) {
    const auto result = decode("openai", h).result;
    for (const auto& text : {result.error_message, result.error_code, result.excerpt,
                             result.vendor_request_id, result.body}) {
      CHECK(text.find(secret.substr(0, 8)) == std::string::npos);
    }
  }
  CHECK(outcome(decode("openai", answer).result) == "completed");
}

TEST_CASE("classify: x-should-retry decides for server errors, overload and rejection alone") {
  const auto retryable = [](int status, const char* value) {
    return decode("openai", http(status, "{}", {{"x-should-retry", value}})).result.retryable;
  };
  CHECK(retryable(400, "true"));
  CHECK_FALSE(retryable(500, "false"));
  CHECK_FALSE(retryable(503, "false"));
  CHECK(retryable(500, "no"));
  CHECK(retryable(429, "false"));
  CHECK(retryable(200, "false"));
}

TEST_CASE("classify: the request id comes from the header or the body") {
  CHECK(decode("openai", http(500, "{}", {{"x-request-id", "a"}})).result.vendor_request_id == "a");
  CHECK(decode("anthropic", http(500, R"({"request_id":"b"})")).result.vendor_request_id == "b");
  CHECK(decode("anthropic", http(200, message(), {{"request-id", "c"}})).result.vendor_request_id ==
        "c");
}
