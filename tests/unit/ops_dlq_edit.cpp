#include "ops_world.h"

using namespace ops_world;

namespace {

// Numbers that a general reader would change.
constexpr const char* kBody =
    R"({"model":"gpt-small","seed":123456789012345678901234567890,"temperature":1.0,)"
    R"("messages":[{"role":"user","content":"old"}]})";

Json set(std::initializer_list<std::pair<const char*, const char*>> values) {
  Json out = Json::array();
  for (const auto& [pointer, value] : values)
    out.push_back({{"pointer", pointer}, {"value", value}});
  return out;
}

struct DeadWorld : World {
  std::string job_id, dlq_id;

  explicit DeadWorld(const std::string& body = kBody, const Json& more = Json::object()) {
    Json in = {{"request", body}};
    in.update(more);
    job_id = ok("submit", in)["job_id"];
    reject(lease());
    dlq_id = ok("dlq.list")["rows"][0]["dlq_id"];
  }
  Json edit(Json in) {
    in["dlq_id"] = dlq_id;
    return ok("dlq.edit", in);
  }
  void refuses(Json in, Exit exit, const std::string& code) {
    in["dlq_id"] = dlq_id;
    const Json before = shown();
    fails("dlq.edit", in, exit, code);
    CHECK(shown() == before);
  }
  Json shown() { return ok("dlq.show", {{"dlq_id", dlq_id}}); }
  std::string payload() { return shown()["payload_text"]; }
};

}  // namespace

TEST_CASE("dlq edit: values are set in place, the rest keeps its bytes") {
  DeadWorld world;
  const Json answer = world.edit({{"set", set({{"/messages/0/content", "\"new\""},
                                               {"/messages/-", R"({"role":"user"})"},
                                               {"/top_p", "0.10"}})}});
  CHECK(keys_of(answer) == Names{"dlq_id", "job_id", "generation", "vendor", "model", "endpoint",
                                 "idempotency_key", "cache_key"});
  CHECK(world.payload() ==
        R"({"model":"gpt-small","seed":123456789012345678901234567890,"temperature":1.0,)"
        R"("messages":[{"role":"user","content":"new"},{"role":"user"}],"top_p":0.10})");
  const Json letter = world.shown();
  CHECK(letter["original_payload_text"] == kBody);
  CHECK(letter["payload_target"] ==
        Json{{"vendor", "main"}, {"model", "gpt-small"}, {"endpoint", "chat"}});
  CHECK(letter["state"] == "open");

  // Its keys are those that a submit of the new request has.
  const Json job = world.ok("show", {{"job_id", world.job_id}});
  const Json same = world.ok("submit.preview", {{"request", world.payload()}});
  CHECK(job["idempotency_key"] == same["idempotency_key"]);
  CHECK(job["cache_key"] == same["cache_key"]);
  CHECK(answer["cache_key"] == same["cache_key"]);
}

TEST_CASE("dlq edit: another model or vendor") {
  DeadWorld world;
  world.edit({{"model", "claude-small"}, {"vendor", "main"}});
  CHECK(world.payload().starts_with(R"({"model":"claude-small","seed":1234567890)"));
  Json job = world.ok("show", {{"job_id", world.job_id}});
  CHECK(job["model"] == "claude-small");
  CHECK(job["vendor"] == "main");
  CHECK(world.ok("dlq.list")["rows"][0]["model"] == "gpt-small");

  // The body names it too.
  world.edit({{"set", set({{"/model", "\"gpt-small\""}})}});
  job = world.ok("show", {{"job_id", world.job_id}});
  CHECK(job["model"] == "gpt-small");
  CHECK(job["vendor"] == "main");

  // Nothing is translated: another api needs another body.
  world.refuses({{"vendor", "other"}}, Exit::usage, "unsupported_endpoint");
  world.refuses({{"model", "claude-small"}}, Exit::usage, "unsupported_endpoint");
  const std::string body = R"({"model":"claude-small","max_tokens":5,"messages":[]})";
  world.edit({{"request", body}});
  CHECK(world.payload() == body);
  job = world.ok("show", {{"job_id", world.job_id}});
  CHECK(job["endpoint"] == "messages");
  CHECK(job["vendor"] == "other");
  CHECK(world.shown()["original_payload_text"] == kBody);
}

TEST_CASE("dlq edit: a vendor that was named at submit stays, and a body without a model") {
  const std::string body = R"({"messages":[]})";
  DeadWorld world(body, {{"model", "unlisted"}, {"vendor", "main"}});
  world.edit({{"set", set({{"/n", "1"}})}});
  Json job = world.ok("show", {{"job_id", world.job_id}});
  CHECK(job["model"] == "unlisted");
  CHECK(job["vendor"] == "main");
  CHECK(world.payload() == R"({"messages":[],"n":1})");
  world.edit({{"model", "gpt-small"}});
  CHECK(world.payload() == R"({"messages":[],"n":1})");
  job = world.ok("show", {{"job_id", world.job_id}});
  CHECK(job["model"] == "gpt-small");
}

TEST_CASE("dlq edit: what can't be is refused and changes nothing") {
  DeadWorld world;
  world.refuses(Json::object(), Exit::usage, "missing_option");
  world.refuses({{"set", set({{"/messages/3/content", "1"}})}}, Exit::usage, "no_such_place");
  world.refuses({{"set", set({{"/top_p", "1"}, {"/absent/x", "1"}})}}, Exit::usage,
                "no_such_place");
  world.refuses({{"set", set({{"messages", "1"}})}}, Exit::usage, "invalid_pointer");
  world.refuses({{"set", set({{"/seed", "one"}})}}, Exit::usage, "invalid_json");
  world.refuses({{"set", set({{"", "[]"}})}}, Exit::usage, "invalid_request");
  world.refuses({{"set", {{{"pointer", "/a"}}}}}, Exit::usage, "invalid_set");
  world.refuses({{"set", "x"}}, Exit::usage, "invalid_set");
  world.refuses({{"request", "{}"}, {"set", set({{"/a", "1"}})}}, Exit::usage,
                "conflicting_options");
  world.refuses({{"request", "{"}}, Exit::usage, "invalid_json");
  world.refuses({{"model", "gpt-small"}, {"set", set({{"/model", "\"claude-small\""}})}},
                Exit::usage, "model_mismatch");
  world.refuses({{"vendor", "nobody"}}, Exit::usage, "unknown_vendor");
  world.refuses({{"model", "nothing"}}, Exit::usage, "unknown_model");
  world.config.limits.request_bytes = 200;
  world.refuses({{"set", set({{"/user", ("\"" + std::string(200, 'x') + "\"").c_str()}})}},
                Exit::refused, "request_too_large");
  world.config.tenants["default"].disabled = true;
  world.refuses({{"set", set({{"/n", "1"}})}}, Exit::refused, "tenant_disabled");
  world.fails("dlq.edit", {{"dlq_id", "99"}, {"model", "gpt-small"}}, Exit::not_found,
              "no_such_dead_letter");
}

TEST_CASE("dlq edit: replayed in the same step, unless a live job asks the same") {
  DeadWorld world;
  const std::string live = world.submit(
      "x",
      {{"request", R"({"model":"gpt-small","n":1})"}, {"prompt", nullptr}, {"model", nullptr}});
  Json answer = world.edit({{"request", R"({"n":1, "model":"gpt-small"})"}, {"replay", true}});
  CHECK(answer["outcome"] == "duplicate");
  CHECK(answer["duplicate_of"] == live);
  CHECK(answer["generation"] == 1);
  CHECK(world.shown()["state"] == "open");
  CHECK(world.payload() == R"({"n":1, "model":"gpt-small"})");

  answer = world.edit({{"set", set({{"/n", "2"}})}, {"replay", true}});
  CHECK(answer["outcome"] == "replayed");
  CHECK(answer["duplicate_of"].is_null());
  CHECK(answer["generation"] == 2);
  CHECK(world.shown()["state"] == "replayed");
  CHECK(world.ok("show", {{"job_id", world.job_id}})["status"] == "queued");
  world.refuses({{"set", set({{"/n", "3"}})}}, Exit::conflict, "already_resolved");
}

TEST_CASE("dlq edit: a refresh asks what its entry answers") {
  World world;
  world.submit("hot");
  world.complete(world.lease());
  world.clock.wall += 3'700'000;  // past the soft TTL
  CHECK(world.ok("submit", World::prompt("hot"))["stale"] == true);
  world.reject(world.lease());
  const std::string dlq_id = world.ok("dlq.list")["rows"][0]["dlq_id"];
  world.fails("dlq.edit", {{"dlq_id", dlq_id}, {"set", set({{"/n", "1"}})}}, Exit::usage,
              "not_editable");
}
