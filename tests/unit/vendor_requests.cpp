// What the adapters send, and the echo vendor.

#include <nlohmann/json.hpp>

#include "unit/vendor_support.h"

using namespace aiq;
using namespace aiq_test;

namespace {

VendorConfig section(const std::string& base_url, const std::string& auth) {
  VendorConfig config;
  config.name = "main";
  config.base_url = base_url;
  config.auth = auth;
  return config;
}

VendorCall call(Endpoint endpoint = Endpoint::chat) {
  VendorCall made;
  made.model = "m";
  made.endpoint = endpoint;
  made.body = R"({ "model":"m" })";
  made.idempotency_value = "aiq-1.1.1";
  made.attempt_value = "1.1.2";
  return made;
}

std::string header(const HttpRequest& request, const char* name) {
  const auto* value = find_header(request.headers, name);
  return value == nullptr ? "(none)" : *value;
}

}  // namespace

TEST_CASE("requests: each adapter is found by its name") {
  for (const char* api : {"openai", "anthropic", "echo"})
    CHECK(find_vendor(api) != nullptr);
  CHECK(find_vendor("other") == nullptr);
  CHECK(find_vendor("") == nullptr);
  CHECK(find_vendor("openai")->default_endpoint() == Endpoint::chat);
  CHECK(find_vendor("openai")->supports(Endpoint::embeddings));
  CHECK_FALSE(find_vendor("openai")->supports(Endpoint::messages));
  CHECK(find_vendor("anthropic")->default_endpoint() == Endpoint::messages);
  CHECK_FALSE(find_vendor("anthropic")->supports(Endpoint::chat));
  CHECK_FALSE(find_vendor("openai")->in_process());
  CHECK(find_vendor("echo")->in_process());
}

TEST_CASE("requests: the URL is the base and the endpoint's path") {
  const auto url = [](const char* api, const char* base, Endpoint endpoint) {
    return find_vendor(api)->encode(section(base, "none"), call(endpoint), "").url;
  };
  CHECK(url("openai", "http://h/v1", Endpoint::chat) == "http://h/v1/chat/completions");
  CHECK(url("openai", "http://h/v1/", Endpoint::responses) == "http://h/v1/responses");
  CHECK(url("openai", "http://h/v1", Endpoint::embeddings) == "http://h/v1/embeddings");
  CHECK(url("openai", "http://h/d?api-version=1", Endpoint::chat) ==
        "http://h/d/chat/completions?api-version=1");
  CHECK(url("anthropic", "http://h", Endpoint::messages) == "http://h/v1/messages");
  CHECK(url("anthropic", "http://h/v1/", Endpoint::messages) == "http://h/v1/messages");
}

TEST_CASE("requests: the body goes as it is, with headers by the section") {
  auto config = section("http://h/v1", "bearer");
  config.headers = {{"OpenAI-Project", "p"}, {"User-Agent", "mine"}};
  config.idempotency_header = "Idempotency-Key";
  config.attempt_header = "X-Aiq-Attempt";
  config.connect_timeout_ms = 1;
  config.first_byte_timeout_ms = 2;
  config.total_timeout_ms = 3;
  config.max_connection_age_ms = 4;
  config.ca_file = "ca.pem";
  config.proxy = "http://127.0.0.1:9";
  const auto request = find_vendor("openai")->encode(config, call(), "k");
  CHECK(request.body == R"({ "model":"m" })");
  CHECK(header(request, "content-type") == "application/json");
  CHECK(header(request, "authorization") == "Bearer k");
  CHECK(header(request, "openai-project") == "p");
  CHECK(header(request, "user-agent") == "mine");
  CHECK(header(request, "idempotency-key") == "aiq-1.1.1");
  CHECK(header(request, "x-aiq-attempt") == "1.1.2");
  CHECK(request.connect_timeout_ms == 1);
  CHECK(request.first_byte_timeout_ms == 2);
  CHECK(request.total_timeout_ms == 3);
  CHECK(request.max_connection_age_ms == 4);
  CHECK(request.ca_file == "ca.pem");
  CHECK(request.proxy == "http://127.0.0.1:9");
}

TEST_CASE("requests: nothing is sent that the section does not ask for") {
  const auto plain = find_vendor("openai")->encode(section("http://h/v1", "none"), call(), "k");
  CHECK(header(plain, "authorization") == "(none)");
  CHECK(header(plain, "x-api-key") == "(none)");
  CHECK(header(plain, "idempotency-key") == "(none)");
  CHECK(header(plain, "user-agent") == "aiq/" AIQ_VERSION);
  const auto claude =
      find_vendor("anthropic")->encode(section("http://h", "x-api-key"), call(), "k");
  CHECK(header(claude, "x-api-key") == "k");
  CHECK(header(claude, "authorization") == "(none)");
  CHECK(header(claude, "anthropic-version") == "2023-06-01");
  const auto bearer = find_vendor("anthropic")->encode(section("http://h", "bearer"), call(), "k");
  CHECK(header(bearer, "authorization") == "Bearer k");
}

TEST_CASE("requests: a prompt becomes a body of its endpoint") {
  Vendor::Prompt prompt;
  prompt.model = "m";
  prompt.prompt = "say \"hi\"\n";
  prompt.max_tokens_field = "max_tokens";
  const auto* openai = find_vendor("openai");
  const auto* anthropic = find_vendor("anthropic");
  CHECK(openai->prompt_body(Endpoint::chat, prompt) ==
        R"({"model":"m","messages":[{"role":"user","content":"say \"hi\"\n"}]})");
  CHECK(anthropic->prompt_body(Endpoint::messages, prompt) ==
        R"({"model":"m","max_tokens":1024,"messages":[{"role":"user","content":"say \"hi\"\n"}]})");
  prompt.prompt = "hi";
  prompt.system = "be brief";
  prompt.max_tokens = 7;
  prompt.temperature = "0.70";
  prompt.max_tokens_field = "max_completion_tokens";
  CHECK(openai->prompt_body(Endpoint::chat, prompt) ==
        R"({"model":"m","messages":[{"role":"system","content":"be brief"},)"
        R"({"role":"user","content":"hi"}],"max_completion_tokens":7,"temperature":0.70})");
  CHECK(openai->prompt_body(Endpoint::responses, prompt) ==
        R"({"model":"m","instructions":"be brief","input":"hi","max_output_tokens":7,)"
        R"("temperature":0.70})");
  CHECK(openai->prompt_body(Endpoint::embeddings, prompt) == R"({"model":"m","input":"hi"})");
  CHECK(anthropic->prompt_body(Endpoint::messages, prompt) ==
        R"({"model":"m","max_tokens":7,"system":"be brief",)"
        R"("messages":[{"role":"user","content":"hi"}],"temperature":0.70})");
}

TEST_CASE("echo: answers with the last user text and counts its tokens") {
  const auto* echo = find_vendor("echo");
  auto made = call();
  made.model = "echo";
  made.body = R"({"messages":[{"role":"system","content":"abc"},{"role":"user","content":"first"},
                 {"role":"user","content":[{"type":"text","text":"say \"h\u00e9\""}]},
                 {"role":"assistant","content":"x"}]})";
  const auto result = echo->answer(made).result;
  CHECK(outcome(result) == "completed");
  CHECK(billed(result) == "yes");
  CHECK(echo->answer_text(Endpoint::chat, result.body) == "say \"h\u00e9\"");
  CHECK(result.usage[Meter::input] == 5);   // 3 + 5 + 9 + 1 bytes
  CHECK(result.usage[Meter::output] == 3);  // 9 bytes
  CHECK(echo->answer(made).result.body == result.body);
  // Its body is judged like any other vendor's.
  const auto read = decode("openai", http(200, result.body)).result;
  CHECK(outcome(read) == "completed");
  CHECK(read.usage == result.usage);
  CHECK(nlohmann::json::parse(result.body)["usage"]["total_tokens"] == 8);
}

TEST_CASE("echo: a request without user text is rejected") {
  auto made = call();
  for (const char* body : {"{}", R"({"messages":[]})", R"({"messages":[{"role":"user"}]})",
                           R"({"messages":[{"role":"system","content":"x"}]})"}) {
    made.body = body;
    const auto result = find_vendor("echo")->answer(made).result;
    CHECK(outcome(result) == "rejected");
    CHECK(billed(result) == "no");
    CHECK_FALSE(result.retryable);
  }
}
