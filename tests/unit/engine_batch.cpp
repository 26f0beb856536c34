#include "core/engine/batch.h"

#include <doctest/doctest.h>

#include <tuple>

#include "core/config/config.h"

namespace aiq {
namespace {

Config config_of(const std::string& text = "") {
  return parse_config(
      "[vendors.openai]\napi = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\n" + text, "test");
}

BatchLine check(const std::string& text, const SubmitInput& options = {},
                const Config& config = config_of()) {
  SeededRandom random(1);
  const std::string actor = "uid:1000";
  std::vector<std::string> warnings;
  return check_batch_line({config, options, actor, 1'000, random}, 7, text, warnings);
}

const std::string kBody =
    R"({ "model":"m", "n": 1.50, "seed":12345678901234567890, "x":"\u0041" })";

std::string line(const std::string& body) {
  return R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":)" + body + "}";
}

TEST_CASE("batch line: the body is taken byte for byte, wherever it stands") {
  const BatchLine first = check(line(kBody));
  CHECK(first.code == "");
  CHECK(first.custom_id == "a");
  REQUIRE(first.submission.has_value());
  CHECK(first.submission->body == kBody);
  CHECK(first.submission->endpoint == Endpoint::chat);
  const BatchLine moved =
      check("  {\"body\" : " + kBody +
            R"( ,"url":"\/v1\/responses","method":"POST","custom_id":"\u00e9"} )");
  CHECK(moved.code == "");
  CHECK(moved.custom_id == "\u00e9");
  CHECK(moved.submission->body == kBody);
  CHECK(moved.submission->endpoint == Endpoint::responses);
}

TEST_CASE("batch line: each fault has its code") {
  struct Row {
    std::string text, code;
  };
  const std::string head = R"({"custom_id":"a","method":"POST",)";
  const std::string url = R"("url":"/v1/chat/completions",)";
  const Row rows[] = {
      {"{", "invalid_json_line"},
      {"null", "invalid_json_line"},
      {line(kBody) + "x", "invalid_json_line"},
      {head + R"("custom_id":"b",)" + url + R"("body":{}})", "invalid_json_line"},
      {head + url + R"("body":{"model":"m","model":"m"}})", "invalid_request"},
      {head + url + R"("body":{"model":"m","t":"[{\"","t":"\ud800"}})", "invalid_request"},
      {head + R"("note":"{[\"","note":1,)" + url + R"("body":{}})", "invalid_json_line"},
      {head + url + R"("body":null})", "missing_field"},
      {head + R"("body":{"model":"m"}})", "missing_field"},
      {R"({"method":"POST",)" + url + R"("body":{"model":"m"}})", "missing_field"},
      {R"({"custom_id":7,"method":"POST",)" + url + R"("body":{"model":"m"}})", "invalid_request"},
      {R"({"custom_id":"a","method":"post",)" + url + R"("body":{"model":"m"}})",
       "invalid_request"},
      {head + R"("url":"/v1/files","body":{"model":"m"}})", "unsupported_url"},
      {head + R"("url":5,"body":{"model":"m"}})", "unsupported_url"},
      {line("[]"), "invalid_request"},
      {line("{}"), "invalid_request"},
      {R"({"custom_id":")" + std::string(513, 'x') +
           R"(","method":"POST","url":"/v1/embeddings","body":{"model":"m"}})",
       "invalid_request"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const BatchLine got = check(row.text);
    CHECK(got.code == row.code);
    CHECK(got.line == 7);
    CHECK_FALSE(got.message.empty());
    CHECK_FALSE(got.submission.has_value());
  }
  const Config small = config_of("[limits]\nrequest_bytes = \"1KiB\"\n");
  CHECK(check(line(R"({"model":"m","x":")" + std::string(2000, 'x') + "\"}"), {}, small).code ==
        "too_large");
}

TEST_CASE("batch line: options must agree with the line") {
  SubmitInput options;
  options.endpoint = Endpoint::embeddings;
  CHECK(check(line(kBody), options).code == "invalid_request");
  options.endpoint = Endpoint::chat;
  options.model = "other";
  CHECK(check(line(kBody), options).code == "invalid_request");
  options.model = "m";
  options.priority = 9;
  CHECK(check(line(kBody), options).submission->priority == 9);
}

TEST_CASE("batch line: what is staged comes back whole") {
  SubmitInput options;
  options.labels = {{"team", "x"}};
  options.deadline = 5'000;
  options.max_age_ms = 7;
  options.scope = "s";
  options.locale = "l";
  options.safety = "f";
  options.correlation_id = "c";
  options.no_store = true;
  options.resubmit = true;
  options.priority = -3;
  options.run_at = 4'000;
  const BatchLine before = check(line(kBody), options);
  REQUIRE(before.submission.has_value());
  const BatchLine after = parse_staged(print_staged(before));
  CHECK(after.line == 7);
  REQUIRE(after.submission.has_value());
  const NewSubmission& a = *before.submission;
  const NewSubmission& b = *after.submission;
  CHECK(a.body == b.body);
  CHECK(a.keys.idempotency_key == b.keys.idempotency_key);
  CHECK(a.keys.cache_key == b.keys.cache_key);
  CHECK(std::tie(a.tenant, a.vendor, a.model, a.endpoint, a.correlation_id, a.cache_owner) ==
        std::tie(b.tenant, b.vendor, b.model, b.endpoint, b.correlation_id, b.cache_owner));
  CHECK(std::tie(a.scope, a.locale, a.safety, a.labels, a.priority, a.run_at, a.deadline) ==
        std::tie(b.scope, b.locale, b.safety, b.labels, b.priority, b.run_at, b.deadline));
  CHECK(std::tie(a.max_attempts, a.soft_ttl_ms, a.hard_ttl_ms, a.resubmit, a.actor) ==
        std::tie(b.max_attempts, b.soft_ttl_ms, b.hard_ttl_ms, b.resubmit, b.actor));
  CHECK(std::tie(a.cache.read, a.cache.store, a.cache.coalesce, a.cache.max_age) ==
        std::tie(b.cache.read, b.cache.store, b.cache.coalesce, b.cache.max_age));
}

}  // namespace
}  // namespace aiq
