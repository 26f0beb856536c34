#include "ops_world.h"

#include "core/engine/submit.h"
#include "core/model/request.h"

using namespace ops_world;

namespace {

const Json& row_of(const Json& rows, const char* key, const std::string& value) {
  for (const Json& row : rows)
    if (row[key] == value) return row;
  FAIL("no row " << value);
  return rows;
}

}  // namespace

TEST_CASE("stats: counts, the oldest waiting job, vendors, cache") {
  World world;
  Json stats = world.ok("stats");
  CHECK(keys_of(stats) ==
        Names{"jobs", "oldest_queued_seconds", "vendors", "pauses", "cache", "dlq_open", "locks"});
  CHECK(keys_of(stats["jobs"]) == Names{"queued", "processing", "retrying", "completed", "failed",
                                        "dead_lettered", "cancelled"});
  CHECK(stats["oldest_queued_seconds"].is_null());
  CHECK(stats["cache"]["hit_ratio"].is_null());
  CHECK(stats["cache"]["avoided_cost"].is_null());
  CHECK(stats["vendors"].size() == 2);
  CHECK(row_of(stats["vendors"], "vendor", "main") == Json{{"vendor", "main"},
                                                           {"state", "unproven"},
                                                           {"reason", nullptr},
                                                           {"until", nullptr},
                                                           {"in_flight", 0}});
  world.submit("a");
  world.submit("b");
  world.clock.wall += 5500;
  const LeasedJob first = world.lease();
  stats = world.ok("stats");
  CHECK(stats["jobs"]["queued"] == 1);
  CHECK(stats["jobs"]["processing"] == 1);
  CHECK(stats["oldest_queued_seconds"] == 5);
  CHECK(row_of(stats["vendors"], "vendor", "main")["in_flight"] == 1);
  CHECK(stats["locks"] == 1);
  world.complete(first);
  world.reject(world.lease());
  world.submit("a");
  stats = world.ok("stats");
  CHECK(stats["cache"]["entries"] == 1);
  CHECK(stats["cache"]["hits"] == 1);
  CHECK(stats["cache"]["misses"] == 2);
  CHECK(stats["cache"]["hit_ratio"].get<double>() == doctest::Approx(1.0 / 3));
  CHECK(stats["cache"]["avoided_tokens"] == 5);
  CHECK(stats["dlq_open"] == 1);
  CHECK(world.ok("cache.stats") == stats["cache"]);
}

TEST_CASE("stats: groups have error rate and percentiles, unknown ones are null") {
  World world;
  world.submit("a");
  world.complete(world.lease());
  world.submit("b");
  world.reject(world.lease());
  const Json groups = world.ok("stats", {{"by", "model"}})["groups"];
  const Json& group = row_of(groups, "model", "gpt-small");
  CHECK(keys_of(group) ==
        Names{"model", "attempts", "errors", "error_rate", "latency_ms", "wait_ms"});
  CHECK(group["attempts"] == 2);
  CHECK(group["errors"] == 1);
  CHECK(group["error_rate"] == 0.5);
  CHECK(group["latency_ms"]["p50"] == 40);
  world.fails("stats", {{"by", "colour"}}, Exit::usage, "invalid_option");
  // Outside of the window nothing is left to group.
  CHECK(world.ok("stats", {{"by", "model"}, {"since", "2026-01-02T00:00:00Z"}})["groups"].empty());
}

TEST_CASE("pause: a scope is paused with its reason until it is resumed") {
  World world;
  const Json paused = world.ok(
      "pause", {{"vendor", "main"}, {"reason", "maintenance"}, {"until", "2026-01-01T02:00:00Z"}});
  CHECK(paused["paused"] == Json{{"vendor", "main"},
                                 {"model", nullptr},
                                 {"tenant", nullptr},
                                 {"reason", "maintenance"},
                                 {"until", "2026-01-01T02:00:00.000Z"}});
  Json stats = world.ok("stats");
  const Json& vendor = row_of(stats["vendors"], "vendor", "main");
  CHECK(vendor["state"] == "paused");
  CHECK(vendor["reason"] == "maintenance");
  CHECK(vendor["until"] == "2026-01-01T02:00:00.000Z");
  REQUIRE(stats["pauses"].size() == 1);
  CHECK(stats["pauses"][0]["cause"] == "operator");
  CHECK(stats["pauses"][0]["actor"] == "uid:7");
  CHECK(world.ok("resume", {{"vendor", "main"}}) == Json{{"resumed", 1}});
  CHECK(world.ok("resume", {{"vendor", "main"}}) == Json{{"resumed", 0}});
  CHECK(row_of(world.ok("stats")["vendors"], "vendor", "main")["state"] != "paused");
}

TEST_CASE("pause: the whole queue, a model, a tenant") {
  World world;
  CHECK(world.ok("pause")["paused"]["vendor"].is_null());
  CHECK(world.ok("resume") == Json{{"resumed", 1}});
  world.ok("pause", {{"vendor", "main"}, {"model", "gpt-small"}, {"reason", "slow"}});
  const Json vendor = world.ok("vendor.show", {{"vendor", "main"}});
  CHECK(vendor["state"] != "paused");
  CHECK(row_of(vendor["models"], "model", "gpt-small")["state"] == "paused");
  CHECK(row_of(vendor["models"], "model", "gpt-small")["reason"] == "slow");
  world.submit("x", {{"tenant", "t"}});
  world.ok("pause", {{"tenant", "t"}});
  CHECK(world.ok("stats")["pauses"].size() == 2);
}

TEST_CASE("pause: an unknown name is exit 3 with a suggestion, one that has jobs is known") {
  World world;
  CHECK(world.fails("pause", {{"vendor", "mian"}}, Exit::not_found, "no_such_vendor").hint ==
        "did you mean main?");
  CHECK(world
            .fails("pause", {{"vendor", "main"}, {"model", "gpt-smal"}}, Exit::not_found,
                   "no_such_model")
            .hint == "did you mean gpt-small?");
  world.fails("pause", {{"model", "gpt-small"}}, Exit::usage, "missing_option");
  world.fails("pause", {{"until", "2025-01-01T00:00:00Z"}}, Exit::usage, "invalid_option");
  world.ok("submit", {{"prompt", "x"}, {"model", "unlisted"}, {"vendor", "main"}});
  world.ok("pause", {{"vendor", "main"}, {"model", "unlisted"}});
  const Json resumed = world.ok("resume", {{"vendor", "mian"}});
  CHECK(resumed["resumed"] == 0);
  REQUIRE(resumed["warnings"].size() == 1);
  CHECK(resumed["warnings"][0].get<std::string>().find("did you mean main?") != std::string::npos);
}

TEST_CASE("pause: a tenant is known when its requests are accepted or it had some") {
  World world;
  world.ok("pause", {{"tenant", "any"}});  // no tenant is configured: all are accepted
  world.ok("submit", {{"prompt", "x"}, {"model", "gpt-small"}, {"tenant", "former"}});
  world.config = parse_config(std::string(kConfig) + "[tenants.acme]\n", "test.toml");
  CHECK(world.fails("pause", {{"tenant", "acne"}}, Exit::not_found, "no_such_tenant").hint ==
        "did you mean acme?");
  world.ok("pause", {{"tenant", "acme"}});
  world.ok("pause", {{"tenant", "former"}});
}

TEST_CASE("vendor: limits, state and models") {
  World world;
  const Json rows = world.ok("vendor.list")["rows"];
  REQUIRE(rows.size() == 2);
  const Json& vendor = row_of(rows, "vendor", "main");
  CHECK(keys_of(vendor) == Names{"vendor", "api", "base_url", "state", "reason", "until",
                                 "in_flight", "max_in_flight", "rpm", "tpm", "last_seen", "rate",
                                 "limits", "models"});
  CHECK(vendor["api"] == "openai");
  CHECK(vendor["max_in_flight"] == 9);
  CHECK(vendor["rpm"] == 60);
  CHECK(vendor["last_seen"].is_null());
  CHECK(vendor["rate"] == Json::object());
  CHECK(vendor["models"] == Json::array({{{"model", "gpt-small"},
                                          {"state", "ok"},
                                          {"reason", nullptr},
                                          {"until", nullptr},
                                          {"in_flight", 0},
                                          {"limits", Json::object()},
                                          {"pace", 1.0}}}));
  world.store->begin();
  world.store->register_vendor("main", "section", true);
  world.store->mark_proven("main");
  world.store->note_rate("main", R"({"remaining_requests":3})", world.clock.wall);
  world.store->register_vendor("gone", "section", true);
  world.store->commit();
  const Json shown = world.ok("vendor.show", {{"vendor", "main"}});
  CHECK(shown["state"] == "ok");
  CHECK(shown["rate"]["remaining_requests"] == 3);
  CHECK(shown["last_seen"] == "2026-01-01T00:00:00.000Z");
  CHECK(world.ok("vendor.show", {{"vendor", "gone"}})["api"].is_null());
  CHECK(world.fails("vendor.show", {{"vendor", "otter"}}, Exit::not_found, "no_such_vendor").hint ==
        "did you mean other?");
}

TEST_CASE("cache: entries are listed, shown and removed") {
  World world;
  Names keys;
  for (const char* text : {"a", "b", "c"}) {
    world.clock.wall += 1000;
    keys.push_back(world.ok("submit", World::prompt(text))["cache_key"]);
    world.complete(world.lease());
  }
  Json page = world.ok("cache.list", {{"limit", 2}});
  REQUIRE(page["rows"].size() == 2);
  CHECK(page["rows"][0]["cache_key"] == keys[2]);
  page = world.ok("cache.list", {{"limit", 2}, {"after", page["next_after"]}});
  REQUIRE(page["rows"].size() == 1);
  CHECK(page["next_after"].is_null());
  CHECK(page["rows"][0]["cache_key"] == keys[0]);
  CHECK(page["rows"][0]["state"] == "fresh");

  const Json entry = world.ok("cache.show", {{"key", keys[0]}});
  CHECK(entry["owner"] == "tenant:default");
  CHECK(entry["tokens"] == 5);
  CHECK(entry["result_text"] == kAnswer);
  world.fails("cache.show", {{"key", std::string(64, '0')}}, Exit::not_found, "no_such_entry");
  world.fails("cache.show", {{"key", "xyz"}}, Exit::usage, "invalid_key");

  CHECK(world.ok("cache.invalidate", {{"key", keys[0]}}) ==
        Json{{"removed", 1}, {"next_after", nullptr}});
  CHECK(world.ok("cache.invalidate", {{"key", keys[0]}})["removed"] == 0);
  CHECK(world.ok("cache.invalidate", {{"older_than_ms", 500}})["removed"] == 1);
  CHECK(world.ok("cache.invalidate", {{"all", true}})["removed"] == 1);
  world.fails("cache.invalidate", Json::object(), Exit::usage, "missing_option");
}

TEST_CASE("cache.invalidate: long work goes in slices") {
  World world;
  for (int i = 0; i < 1001; ++i) {
    world.submit("prompt " + std::to_string(i));
    world.complete(world.lease());
  }
  Json slice = world.ok("cache.invalidate", {{"all", true}});
  CHECK(slice["removed"] == 1000);
  REQUIRE(slice["next_after"].is_string());
  slice = world.ok("cache.invalidate", {{"all", true}, {"after", slice["next_after"]}});
  CHECK(slice == Json{{"removed", 1}, {"next_after", nullptr}});
  world.fails("cache.invalidate", {{"all", true}, {"after", "x"}}, Exit::usage, "invalid_key");
}

TEST_CASE("cache.explain: same key, or where they differ") {
  World world;
  const auto request = [](const std::string& body) { return Json{{"request", body}}; };
  const std::string plain = R"({"model":"gpt-small","temperature":0.70,"messages":[]})";
  Json out =
      world.ok("cache.explain",
               {{"a", request(plain)},
                {"b", request(R"({"messages":[],"temperature":7e-1,"model":"gpt-small"})")}});
  CHECK(keys_of(out) == Names{"same", "key_a", "key_b", "differences"});
  CHECK(out["same"] == true);
  CHECK(out["key_a"] == out["key_b"]);
  CHECK(out["differences"].empty());

  out = world.ok("cache.explain",
                 {{"a", request(plain)},
                  {"b", request(R"({"model":"gpt-small","temperature":0.71,"messages":[]})")}});
  CHECK(out["same"] == false);
  CHECK(out["differences"] == Json::array({"/temperature"}));

  const Json submitted = world.ok("submit", {{"request", plain}, {"tenant", "t"}});
  const Json job = {{"job_id", submitted["job_id"]}};
  out = world.ok("cache.explain", {{"a", job}, {"b", request(plain)}});
  CHECK(out["differences"] == Json::array({"owner"}));
  out = world.ok("cache.explain", {{"a", job}, {"b", request(plain)}, {"tenant", "t"}});
  CHECK(out["same"] == true);
  CHECK(out["key_a"] == submitted["cache_key"]);
  out = world.ok("cache.explain",
                 {{"a", job}, {"b", request(plain)}, {"tenant", "t"}, {"scope", "today"}});
  CHECK(out["differences"] == Json::array({"scope"}));
  out = world.ok(
      "cache.explain",
      {{"a", job}, {"b", request(plain)}, {"tenant", "t"}, {"locale", "de"}, {"safety", "strict"}});
  CHECK(out["differences"] == Json::array({"locale", "safety"}));

  world.fails("cache.explain", {{"a", {{"job_id", "99"}}}, {"b", job}}, Exit::not_found,
              "no_such_job");
  world.fails("cache.explain", {{"a", job}}, Exit::usage, "invalid_option");
  world.fails("cache.explain", {{"a", job}, {"b", request("{")}}, Exit::usage, "invalid_json");
}

TEST_CASE("cache.explain: a job has the owner of its time") {
  World world;
  const Json submitted = world.ok("submit", World::prompt("q", {{"tenant", "t"}}));
  world.config.tenants["t"].name = "t";
  world.config.tenants["t"].cache_group = "house";
  const Json again = world.ok("submit", World::prompt("q", {{"tenant", "t"}}));
  CHECK(again["cache_key"] != submitted["cache_key"]);
  // The same work that is still waiting: one job, with the key that it was made with.
  CHECK(again["job_id"] == submitted["job_id"]);
  const Json out = world.ok(
      "cache.explain",
      {{"a", {{"job_id", submitted["job_id"]}}},
       {"b", {{"request", R"({"model":"gpt-small","messages":[{"role":"user","content":"q"}]})"}}},
       {"tenant", "t"}});
  CHECK(out["differences"] == Json::array({"owner"}));
}

TEST_CASE("cache: an answer kept under other rules for keys is never given") {
  World world;
  SeededRandom random(1);
  SubmitInput input;
  input.model = "gpt-small";
  input.prompt = "q";
  auto prepared = prepare_submission(world.config, input, "uid:7", world.clock.wall, random);
  REQUIRE(prepared.has_value());
  NewSubmission old = prepared->submission;
  const auto body = check_body(old.body);
  REQUIRE(body.has_value());
  KeyInputs inputs{.tenant = old.tenant, .vendor = old.vendor, .model = old.model};
  REQUIRE(derive_keys(inputs, *body).cache_key == old.keys.cache_key);
  inputs.version = "0";
  old.keys = derive_keys(inputs, *body);
  world.store->begin();
  const JobId kept = world.store->submit(old, world.clock.wall).job_id;
  world.store->commit();
  world.complete(world.lease());
  REQUIRE(world.ok("cache.list")["rows"].size() == 1);

  const Json now = world.ok("submit", World::prompt("q"));
  CHECK(now["outcome"] == "created");
  world.fails("submit", World::prompt("q", {{"only_if_cached", true}}), Exit::not_found,
              "not_cached");
  const Json out = world.ok("cache.explain", {{"a", {{"job_id", std::to_string(kept)}}},
                                              {"b", {{"job_id", now["job_id"]}}}});
  CHECK(out["same"] == false);
  CHECK(out["differences"] == Json::array({"key_version"}));
}

TEST_CASE("lock: listed with its age, broken by name") {
  World world;
  const std::string id = world.submit("hi");
  const LeasedJob lease = world.lease();
  world.clock.wall += 3000;
  const Json rows = world.ok("lock.list")["rows"];
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["owner"] == lease.token);
  CHECK(rows[0]["job_id"] == id);
  CHECK(rows[0]["age_seconds"] == 3);
  CHECK(rows[0]["expired"] == false);
  const std::string name = rows[0]["name"];
  CHECK(name.starts_with("cache:"));
  CHECK(world.ok("lock.break", {{"name", name}}) == Json{{"broken", name}});
  world.fails("lock.break", {{"name", name}}, Exit::not_found, "no_such_lock");
  world.fails("lock.break", Json::object(), Exit::usage, "missing_option");
}

TEST_CASE("db: info and check") {
  World world;
  const Json info = world.ok("db.info");
  CHECK(info["schema_version"] == kSchemaVersion);
  CHECK(info["created_at"] == "2026-01-01T00:00:00.000Z");
  CHECK(info["bytes"].get<std::int64_t>() > 0);
  CHECK(world.ok("db.check") == Json{{"ok", true}, {"problems", Json::array()}});
}

TEST_CASE("dlq: dead letters are kept with payload and attempts") {
  World world;
  const std::string id = world.submit("bad", {{"correlation_id", "c-9"}});
  world.reject(world.lease());
  const Json rows = world.ok("dlq.list")["rows"];
  REQUIRE(rows.size() == 1);
  CHECK(keys_of(rows[0]) == Names{"dlq_id", "job_id", "tenant", "model", "reason", "error_class",
                                  "http_status", "error", "attempts", "generation", "state",
                                  "dead_at", "resolved_at", "resolved_by", "note",
                                  "correlation_id"});
  CHECK(rows[0]["job_id"] == id);
  CHECK(rows[0]["reason"] == "rejected");
  CHECK(rows[0]["error"] == "not like this");
  CHECK(rows[0]["http_status"] == 400);
  CHECK(rows[0]["state"] == "open");
  CHECK(rows[0]["resolved_at"].is_null());
  CHECK(rows[0]["correlation_id"] == "c-9");

  const Json shown = world.ok("dlq.show", {{"dlq_id", rows[0]["dlq_id"]}});
  CHECK(Json::parse(shown["payload_text"].get<std::string>())["model"] == "gpt-small");
  CHECK(shown["original_payload_text"].is_null());
  REQUIRE(shown["attempt_log"].size() == 1);
  CHECK(shown["attempt_log"][0]["outcome"] == "rejected");

  CHECK(world.ok("dlq.list", {{"class", "auth"}})["rows"].empty());
  CHECK(world.ok("dlq.list", {{"class", "rejected"}})["rows"].size() == 1);
  CHECK(world.ok("dlq.list", {{"state", "discarded"}})["rows"].empty());
  CHECK(world.ok("dlq.list", {{"state", "all"}})["rows"].size() == 1);
  world.fails("dlq.list", {{"state", "shut"}}, Exit::usage, "invalid_state");
  world.fails("dlq.list", {{"reason", "bored"}}, Exit::usage, "invalid_reason");
  world.fails("dlq.list", {{"class", "bored"}}, Exit::usage, "invalid_class");
  world.fails("dlq.show", {{"dlq_id", "99"}}, Exit::not_found, "no_such_dead_letter");
}
