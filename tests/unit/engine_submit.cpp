#include "core/engine/submit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/redact.h"

using namespace aiq;

namespace {

constexpr UnixMs kNow = 1'767'225'600'000;  // 2026-01-01T00:00:00Z

constexpr const char* kTwoVendors = R"(
[cache]
soft_ttl = "1h"
hard_ttl = "2h"
jitter = 0.0
[vendors.main]
api = "openai"
base_url = "http://127.0.0.1:1/v1"
auth = "none"
[vendors.other]
api = "anthropic"
base_url = "http://127.0.0.1:1"
auth = "none"
[models.gpt-small]
vendor = "main"
max_output_tokens = 100
[models.claude-small]
vendor = "other"
)";

Config config_of(const std::string& extra) {
  return parse_config(std::string(kTwoVendors) + extra, "test.toml");
}

SubmitInput request_of(const std::string& body) {
  SubmitInput in;
  in.request = body;
  return in;
}

SubmitInput plain() {
  return request_of(R"({"model":"gpt-small","messages":[{"role":"user","content":"hi"}]})");
}

PreparedSubmission good(const Config& config, const SubmitInput& in, std::uint64_t seed = 1) {
  SeededRandom random(seed);
  auto out = prepare_submission(config, in, "uid:7", kNow, random);
  REQUIRE_MESSAGE(out.has_value(), out.error().message);
  return std::move(*out);
}

Failure bad(const Config& config, const SubmitInput& in) {
  SeededRandom random(1);
  auto out = prepare_submission(config, in, "uid:7", kNow, random);
  REQUIRE_FALSE(out.has_value());
  return out.error();
}

void check_bad(const Config& config, const SubmitInput& in, Exit exit, const std::string& code) {
  const Failure failure = bad(config, in);
  CHECK_MESSAGE(failure.code == code, failure.message);
  CHECK(failure.exit == exit);
  CHECK_FALSE(failure.message.empty());
}

}  // namespace

TEST_CASE("submission: the body goes out as given, with keys and defaults") {
  const Config config = config_of("");
  const SubmitInput in = plain();
  const PreparedSubmission out = good(config, in);
  const NewSubmission& s = out.submission;
  CHECK(s.body == *in.request);
  CHECK(s.tenant == "default");
  CHECK(s.vendor == "main");
  CHECK(s.model == "gpt-small");
  CHECK(s.endpoint == Endpoint::chat);
  CHECK(s.cache_owner == "tenant:default");
  CHECK(s.keys.idempotency_key.size() == 64);
  CHECK(s.keys.cache_key.size() == 64);
  CHECK(s.correlation_id.size() == 32);
  CHECK(s.run_at == kNow);
  CHECK(s.max_attempts == 5);
  CHECK(s.actor == "uid:7");
  CHECK(s.cache.read);
  CHECK(s.cache.store);
  CHECK(s.cache.coalesce);
  CHECK(s.soft_ttl_ms == 3'600'000);
  CHECK(s.hard_ttl_ms == 7'200'000);
  CHECK(out.warnings.empty());
  CHECK(out.output_limit == 100);
  CHECK(out.prompt_tokens_estimate == static_cast<std::int64_t>((s.body.size() + 3) / 4));
}

TEST_CASE("submission: a prompt becomes a body of the vendor's dialect") {
  const Config config = config_of("");
  SubmitInput in;
  in.prompt = "say \"hi\"";
  in.model = "claude-small";
  in.max_tokens = 7;
  in.temperature = "0.5";
  const PreparedSubmission out = good(config, in);
  CHECK(out.submission.vendor == "other");
  CHECK(out.submission.endpoint == Endpoint::messages);
  CHECK(out.output_limit == 7);
  CHECK(out.submission.body.find("say \\\"hi\\\"") != std::string::npos);
  CHECK(out.submission.body.find("claude-small") != std::string::npos);
}

TEST_CASE("submission: an asked-for stream is turned off and said") {
  SubmitInput in = request_of(R"({"model":"gpt-small","stream":true})");
  const PreparedSubmission out = good(config_of(""), in);
  CHECK(out.submission.body == R"({"model":"gpt-small","stream":false})");
  REQUIRE(out.warnings.size() == 1);
  CHECK(out.warnings[0].find("stream") != std::string::npos);
}

TEST_CASE("submission: invalid input is exit 2 with its code") {
  const Config config = config_of("");
  struct Row {
    const char* code;
    void (*change)(SubmitInput&);
  };
  const Row rows[] = {
      {"invalid_tenant", [](SubmitInput& in) { in.tenant = "a b"; }},
      {"invalid_tenant", [](SubmitInput& in) { in.tenant = ""; }},
      {"invalid_vendor", [](SubmitInput& in) { in.vendor = "a b"; }},
      {"invalid_model", [](SubmitInput& in) { in.request = R"({"model":"a b"})"; }},
      {"invalid_label", [](SubmitInput& in) { in.labels["a b"] = "x"; }},
      {"invalid_label", [](SubmitInput& in) { in.labels["a"] = "x\ny"; }},
      {"invalid_idempotency_key",
       [](SubmitInput& in) { in.idempotency_key = std::string(201, 'k'); }},
      {"invalid_scope", [](SubmitInput& in) { in.scope = "\x01"; }},
      {"invalid_priority", [](SubmitInput& in) { in.priority = 101; }},
      {"invalid_max_attempts", [](SubmitInput& in) { in.max_attempts = -1; }},
      {"deadline_before_start",
       [](SubmitInput& in) {
         in.run_at = kNow + 2000;
         in.deadline = kNow + 1000;
       }},
      {"conflicting_options",
       [](SubmitInput& in) {
         in.only_if_cached = true;
         in.bypass_cache = true;
       }},
      {"conflicting_options", [](SubmitInput& in) { in.prompt = "both"; }},
      {"conflicting_options", [](SubmitInput& in) { in.max_tokens = 3; }},
      {"missing_request", [](SubmitInput& in) { in.request.reset(); }},
      {"missing_model", [](SubmitInput& in) { in.request = R"({"messages":[]})"; }},
      {"model_mismatch", [](SubmitInput& in) { in.model = "claude-small"; }},
      {"unknown_vendor", [](SubmitInput& in) { in.vendor = "nobody"; }},
      {"unsupported_endpoint", [](SubmitInput& in) { in.endpoint = Endpoint::messages; }},
      {"invalid_json", [](SubmitInput& in) { in.request = "{"; }},
      {"invalid_request", [](SubmitInput& in) { in.request = "[1]"; }},
      {"invalid_request",
       [](SubmitInput& in) { in.request = R"({"model":"gpt-small","model":"gpt-small"})"; }},
      {"invalid_utf8",
       [](SubmitInput& in) { in.request = "{\"model\":\"gpt-small\",\"x\":\"\xff\"}"; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.code);
    SubmitInput in = plain();
    row.change(in);
    check_bad(config, in, Exit::usage, row.code);
  }
}

TEST_CASE("submission: prompts are checked too") {
  const Config config = config_of("");
  SubmitInput in;
  in.model = "gpt-small";
  in.prompt = "\xff";
  check_bad(config, in, Exit::usage, "invalid_utf8");
  in.prompt = "x";
  for (const char* temperature : {"hot", "", "1 2", " 1", "1,\"x\":2", "\"1\""}) {
    CAPTURE(temperature);
    in.temperature = temperature;
    check_bad(config, in, Exit::usage, "invalid_temperature");
  }
  in.temperature.reset();
  in.max_tokens = 0;
  check_bad(config, in, Exit::usage, "invalid_max_tokens");
}

TEST_CASE("submission: a misspelled name is suggested") {
  const Config config = config_of("");
  const Failure model = bad(config, request_of(R"({"model":"gpt-smal"})"));
  CHECK(model.code == "unknown_model");
  CHECK(model.exit == Exit::usage);
  CHECK(model.hint.find("gpt-small") != std::string::npos);
  SubmitInput in = plain();
  in.vendor = "mian";
  CHECK(bad(config, in).hint.find("did you mean main?") != std::string::npos);
  in.vendor = "something-else-entirely";
  CHECK(bad(config, in).hint.find("did you mean") == std::string::npos);
}

TEST_CASE("submission: a request over the limit is refused by policy") {
  const Config config = config_of("[limits]\nrequest_bytes = \"64\"\n");
  SubmitInput in = request_of(R"({"model":"gpt-small"})");
  good(config, in);
  in.request = "{\"model\":\"gpt-small\",\"x\":\"" + std::string(64, 'x') + "\"}";
  check_bad(config, in, Exit::refused, "request_too_large");
  SubmitInput prompt;
  prompt.model = "gpt-small";
  prompt.prompt = std::string(60, 'x');  // the body around it makes it too large
  check_bad(config, prompt, Exit::refused, "request_too_large");
}

TEST_CASE("submission: tenants are accepted as the configuration says") {
  struct Row {
    const char* config;
    const char* tenant;
    const char* code;  // "" = accepted
  };
  const Row rows[] = {
      {"", "anyone", ""},
      {"[tenants.a]\n", "a", ""},
      {"[tenants.a]\n", "b", "unknown_tenant"},
      {"[tenants.a]\n", "default", ""},
      {"[tenants.default]\n", "b", ""},
      {"[tenants.a]\n[limits]\nunknown_tenants = \"accept\"\n", "b", ""},
      {"[limits]\nunknown_tenants = \"refuse\"\n", "default", "unknown_tenant"},
      {"[tenants.a]\ndisabled = true\n", "a", "tenant_disabled"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.config);
    CAPTURE(row.tenant);
    SubmitInput in = plain();
    in.tenant = row.tenant;
    if (row.code[0] == '\0')
      good(config_of(row.config), in);
    else
      check_bad(config_of(row.config), in, Exit::refused, row.code);
  }
}

TEST_CASE("submission: bypassing the cache may be forbidden") {
  SubmitInput in = plain();
  in.bypass_cache = true;
  const NewSubmission s = good(config_of(""), in).submission;
  CHECK_FALSE(s.cache.read);
  CHECK_FALSE(s.cache.store);
  CHECK_FALSE(s.cache.coalesce);
  in.tenant = "a";
  check_bad(config_of("[tenants.a]\nallow_bypass = false\n"), in, Exit::refused,
            "bypass_not_allowed");
}

TEST_CASE("submission: cache settings follow policy and options") {
  SubmitInput in = plain();
  in.no_cache = true;
  NewSubmission s = good(config_of(""), in).submission;
  CHECK_FALSE(s.cache.read);
  CHECK(s.cache.store);
  in = plain();
  in.no_store = true;
  in.max_age_ms = 5;
  s = good(config_of(""), in).submission;
  CHECK(s.cache.read);
  CHECK_FALSE(s.cache.store);
  CHECK(s.cache.max_age == 5);

  const Config off = config_of("[tenants.a]\ncache = { policy = \"off\" }\n");
  in = plain();
  in.tenant = "a";
  s = good(off, in).submission;
  CHECK_FALSE(s.cache.read);
  CHECK_FALSE(s.cache.store);
  CHECK(s.cache.coalesce);  // live equal jobs are still one
}

TEST_CASE("submission: the deterministic policy caches at temperature 0 only") {
  const Config config = config_of("[tenants.default]\ncache = { policy = \"deterministic\" }\n");
  struct Row {
    const char* body;
    bool cached;
  };
  for (const Row& row : {Row{R"({"model":"gpt-small","temperature":0})", true},
                         Row{R"({"model":"gpt-small","temperature":0.0})", true},
                         Row{R"({"model":"gpt-small","temperature":0.1})", false},
                         Row{R"({"model":"gpt-small","temperature":"0"})", false},
                         Row{R"({"model":"gpt-small"})", false}}) {
    CAPTURE(row.body);
    const NewSubmission s = good(config, request_of(row.body)).submission;
    CHECK(s.cache.read == row.cached);
    CHECK(s.cache.store == row.cached);
  }
}

TEST_CASE("submission: a ttl bounds both times") {
  SubmitInput in = plain();
  in.ttl_ms = 60'000;
  NewSubmission s = good(config_of(""), in).submission;
  CHECK(s.hard_ttl_ms == 60'000);
  CHECK(s.soft_ttl_ms == 60'000);
  in.ttl_ms = 100LL * 3600 * 1000;
  s = good(config_of(""), in).submission;
  CHECK(s.hard_ttl_ms == 100LL * 3600 * 1000);
  CHECK(s.soft_ttl_ms == 3'600'000);
}

TEST_CASE("submission: jitter only shortens, and both times alike") {
  std::string text = kTwoVendors;
  text.replace(text.find("jitter = 0.0"), 12, "jitter = 0.1");
  const Config config = parse_config(text, "test.toml");
  DurationMs least = std::numeric_limits<DurationMs>::max();
  DurationMs most = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const NewSubmission s = good(config, plain(), seed).submission;
    CHECK(s.hard_ttl_ms <= 7'200'000);
    CHECK(s.hard_ttl_ms >= 6'480'000);
    CHECK(std::abs(s.hard_ttl_ms - 2 * s.soft_ttl_ms) <= 2);
    least = std::min(least, s.hard_ttl_ms);
    most = std::max(most, s.hard_ttl_ms);
  }
  CHECK(most - least > 500'000);
}

TEST_CASE("submission: what is filled together does not expire together") {
  // The defaults: 24 h less up to a tenth.
  const Config config = parse_config(
      "[vendors.main]\napi = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nauth = "
      "\"none\"\n",
      "test.toml");
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    SeededRandom random(seed);
    std::vector<DurationMs> ends;
    for (int i = 0; i < 1000; ++i) {
      const auto out = prepare_submission(config, plain(), "uid:7", kNow, random);
      REQUIRE(out.has_value());
      ends.push_back(out->submission.hard_ttl_ms);
    }
    std::sort(ends.begin(), ends.end());
    CHECK(ends.back() - ends.front() > 2 * 3600 * 1000);
    // In no second more than 1 %; even shares would be one in 8.6 s.
    for (std::size_t i = 10; i < ends.size(); ++i)
      CHECK(ends[i] - ends[i - 10] > 1000);
  }
}

TEST_CASE("submission: the request over the tenant over the model over the common settings") {
  struct Row {
    const char* common;
    const char* model;
    const char* tenant;
    bool bypass;
    bool cached;
  };
  const Row rows[] = {
      {"all", "", "", false, true},
      {"off", "", "", false, false},
      {"off", "all", "", false, true},
      {"all", "off", "", false, false},
      {"off", "off", "all", false, true},
      {"all", "all", "off", false, false},
      {"all", "all", "deterministic", false, false},
      {"off", "deterministic", "all", false, true},
      {"all", "all", "all", true, false},
      // A request can do without the cache, it can't open it.
      {"all", "all", "off", true, false},
  };
  const auto policy = [](const char* value) {
    return value[0] == '\0' ? std::string()
                            : "cache = { policy = \"" + std::string(value) + "\" }\n";
  };
  for (const Row& row : rows) {
    CAPTURE(row.common);
    CAPTURE(row.model);
    CAPTURE(row.tenant);
    std::string text = kTwoVendors;
    const std::string model_section = "max_output_tokens = 100\n";
    text.insert(text.find(model_section), policy(row.model));
    text.insert(text.find("soft_ttl"), "policy = \"" + std::string(row.common) + "\"\n");
    text += "[tenants.default]\n" + policy(row.tenant);
    SubmitInput in = plain();
    in.bypass_cache = row.bypass;
    const NewSubmission s = good(parse_config(text, "test.toml"), in).submission;
    CHECK(s.cache.read == row.cached);
    CHECK(s.cache.store == row.cached);
  }
}

TEST_CASE("submission: times by request, tenant, model and the common settings") {
  std::string text = kTwoVendors;
  const std::string model_section = "max_output_tokens = 100\n";
  text.insert(text.find(model_section), "cache = { soft_ttl = \"10m\", hard_ttl = \"20m\" }\n");
  const Config config = parse_config(text +
                                         "[tenants.a]\ncache = { hard_ttl = \"15m\" }\n"
                                         "[tenants.b]\ncache = { soft_ttl = \"1m\" }\n"
                                         "[tenants.c]\ncache = { hard_ttl = \"5m\" }\n"
                                         "[tenants.default]\n",
                                     "test.toml");
  struct Row {
    const char* tenant;
    const char* model;
    std::optional<DurationMs> ttl;
    DurationMs soft, hard;
  };
  constexpr DurationMs kMinute = 60'000;
  for (const Row& row : {Row{"default", "claude-small", {}, 60 * kMinute, 120 * kMinute},
                         Row{"default", "gpt-small", {}, 10 * kMinute, 20 * kMinute},
                         Row{"a", "gpt-small", {}, 10 * kMinute, 15 * kMinute},
                         Row{"b", "gpt-small", {}, kMinute, 20 * kMinute},
                         Row{"c", "gpt-small", {}, 5 * kMinute, 5 * kMinute},
                         Row{"b", "claude-small", {}, kMinute, 120 * kMinute},
                         Row{"b", "gpt-small", 2 * kMinute, kMinute, 2 * kMinute},
                         Row{"a", "gpt-small", 60 * kMinute, 10 * kMinute, 60 * kMinute},
                         Row{"a", "gpt-small", 0, 0, 0}}) {
    CAPTURE(row.tenant);
    CAPTURE(row.model);
    SubmitInput in = request_of("{\"model\":\"" + std::string(row.model) + "\"}");
    in.tenant = row.tenant;
    in.ttl_ms = row.ttl;
    const NewSubmission s = good(config, in).submission;
    CHECK(s.soft_ttl_ms == row.soft);
    CHECK(s.hard_ttl_ms == row.hard);
  }
}

TEST_CASE("submission: tenants of one cache group share the cache key, never the derived key") {
  const Config config = config_of(
      "[tenants.a]\ncache_group = \"g\"\n[tenants.b]\ncache_group = \"g\"\n[tenants.c]\n");
  const auto of = [&config](const char* tenant) {
    SubmitInput in = plain();
    in.tenant = tenant;
    return good(config, in).submission;
  };
  const NewSubmission a = of("a"), b = of("b"), c = of("c");
  CHECK(a.cache_owner == "group:g");
  CHECK(a.keys.cache_key == b.keys.cache_key);
  CHECK(a.keys.idempotency_key != b.keys.idempotency_key);
  CHECK(a.keys.cache_key != c.keys.cache_key);
}

TEST_CASE("submission: no limit on attempts is the largest number") {
  SubmitInput in = plain();
  in.max_attempts = 0;
  CHECK(good(config_of(""), in).submission.max_attempts == std::numeric_limits<int>::max());
  in.max_attempts = 3;
  CHECK(good(config_of(""), in).submission.max_attempts == 3);
}

TEST_CASE("submission: errors do not repeat a secret") {
  register_secret("hunter2-hunter2");
  SubmitInput in = plain();
  in.tenant = "hunter2-hunter2 ";
  CHECK(bad(config_of(""), in).message.find("hunter2") == std::string::npos);
}
