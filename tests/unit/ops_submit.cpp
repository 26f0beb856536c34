#include <set>

#include "ops_world.h"

using namespace ops_world;

TEST_CASE("submit: a new request is created, an equal one joins it") {
  World world;
  const Json first = world.ok("submit", World::prompt("hi"));
  CHECK(keys_of(first) == Names{"job_id", "submission_id", "outcome", "status", "stale",
                                "idempotency_key", "cache_key", "correlation_id"});
  CHECK(first["outcome"] == "created");
  CHECK(first["status"] == "queued");
  CHECK(first["stale"] == false);
  CHECK(first["job_id"].is_string());
  const Json second = world.ok("submit", World::prompt("hi"));
  CHECK(second["outcome"] == "existing");
  CHECK(second["job_id"] == first["job_id"]);
  CHECK(second["submission_id"] != first["submission_id"]);
  CHECK(second["correlation_id"] == first["correlation_id"]);
  CHECK(second["idempotency_key"] == first["idempotency_key"]);
}

TEST_CASE("submit: an answer comes from the cache, later a stale one") {
  World world;
  world.submit("hi");
  world.complete(world.lease());
  Json again = world.ok("submit", World::prompt("hi"));
  CHECK(again["outcome"] == "cached");
  CHECK(again["status"] == "completed");
  CHECK(again["stale"] == false);
  world.clock.wall += 90LL * 60 * 1000;
  again = world.ok("submit", World::prompt("hi"));
  CHECK(again["outcome"] == "cached");
  CHECK(again["stale"] == true);
  world.fails("submit", World::prompt("hi", {{"only_if_cached", true}, {"max_age_ms", 1000}}),
              Exit::not_found, "not_cached");
  CHECK(world.ok("submit", World::prompt("hi", {{"no_cache", true}}))["outcome"] == "created");
}

TEST_CASE("submit: only_if_cached without an entry is exit 3 and writes nothing") {
  World world;
  world.fails("submit", World::prompt("hi", {{"only_if_cached", true}}), Exit::not_found,
              "not_cached");
  CHECK(world.ok("list")["rows"].empty());
}

TEST_CASE("submit: a client key keeps its request") {
  World world;
  const Json key = {{"idempotency_key", "K"}};
  const Json first = world.ok("submit", World::prompt("hi", key));
  const Json again = world.ok("submit", World::prompt("hi", key));
  CHECK(again["outcome"] == "existing");
  CHECK(again["job_id"] == first["job_id"]);
  world.fails("submit", World::prompt("other", key), Exit::conflict, "key_conflict");
  CHECK(world.ok("list")["rows"].size() == 1);
  Json elsewhere = key;
  elsewhere["tenant"] = "t";
  CHECK(world.ok("submit", World::prompt("other", elsewhere))["outcome"] == "created");
}

TEST_CASE("submit: a request that was rejected before is not asked again unless told to") {
  World world;
  const std::string id = world.submit("bad");
  world.reject(world.lease());
  const Json again = world.ok("submit", World::prompt("bad"));
  CHECK(again["outcome"] == "existing");
  CHECK(again["status"] == "dead_lettered");
  CHECK(again["job_id"] == id);
  REQUIRE(again["warnings"].size() == 1);
  CHECK(again["warnings"][0].get<std::string>().find("--resubmit") != std::string::npos);
  CHECK(world.ok("submit", World::prompt("bad", {{"resubmit", true}}))["outcome"] == "created");
}

TEST_CASE("submit: a bypassing request has no derived key") {
  World world;
  const Json bypass = {{"bypass_cache", true}};
  const Json first = world.ok("submit", World::prompt("hi", bypass));
  const Json second = world.ok("submit", World::prompt("hi", bypass));
  CHECK(first["idempotency_key"].is_null());
  CHECK(second["outcome"] == "created");
  CHECK(world.ok("show", {{"job_id", first["job_id"]}})["idempotency_key"].is_null());
}

TEST_CASE("submit: what the input says reaches the job") {
  World world;
  const std::string id = world.submit("hi", {{"priority", 5},
                                             {"labels", {{"team", "a"}, {"run", "7"}}},
                                             {"correlation_id", "c-1"},
                                             {"run_at", "2026-01-01T01:00:00Z"},
                                             {"deadline", "2026-01-02T00:00:00+01:00"},
                                             {"max_attempts", 2},
                                             {"idempotency_key", "K"}});
  const Json job = world.ok("show", {{"job_id", id}});
  CHECK(job["priority"] == 5);
  CHECK(job["labels"] == Json{{"run", "7"}, {"team", "a"}});
  CHECK(job["correlation_id"] == "c-1");
  CHECK(job["run_at"] == "2026-01-01T01:00:00.000Z");
  CHECK(job["deadline"] == "2026-01-01T23:00:00.000Z");
  CHECK(job["max_attempts"] == 2);
  CHECK(job["client_key"] == "K");
}

TEST_CASE("submit: the input is checked member by member") {
  World world;
  struct Row {
    Json more;
    const char* code;
  };
  const Row rows[] = {
      {{{"promt", "x"}}, "unknown_option"},
      {{{"priority", "5"}}, "invalid_option"},
      {{{"priority", 1.5}}, "invalid_option"},
      {{{"priority", 101}}, "invalid_option"},
      {{{"no_cache", 1}}, "invalid_option"},
      {{{"run_at", "tomorrow"}}, "invalid_option"},
      {{{"ttl_ms", -1}}, "invalid_option"},
      {{{"max_attempts", 18446744073709551615ULL}}, "invalid_option"},
      {{{"labels", {"a"}}}, "invalid_option"},
      {{{"labels", {{"a", 1}}}}, "invalid_option"},
      {{{"endpoint", "fax"}}, "invalid_endpoint"},
      {{{"tenant", 7}}, "invalid_option"},
      {{{"model", "nobody-knows"}, {"vendor", "nobody"}}, "unknown_vendor"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.more.dump());
    world.fails("submit", World::prompt("x", row.more), Exit::usage, row.code);
  }
  world.fails("submit", Json::array(), Exit::usage, "invalid_input");
  CHECK(world.ok("list")["rows"].empty());
}

TEST_CASE("submit.preview: tells what a submit would do and writes nothing") {
  World world;
  Json preview = world.ok("submit.preview", World::prompt("hi", {{"max_tokens", 9}}));
  CHECK(keys_of(preview) == Names{"outcome", "job_id", "stale", "idempotency_key", "cache_key",
                                  "estimated_tokens", "estimated_cost", "currency", "vendor",
                                  "model", "endpoint"});
  CHECK(preview["outcome"] == "created");
  CHECK(preview["job_id"].is_null());
  CHECK(preview["estimated_tokens"]["input"] > 0);
  CHECK(preview["estimated_tokens"]["output"] == 9);
  CHECK(preview["estimated_cost"].is_null());
  CHECK(preview["vendor"] == "main");
  CHECK(preview["endpoint"] == "chat");
  CHECK(world.ok("list")["rows"].empty());

  preview = world.ok("submit.preview", World::prompt("hi"));
  CHECK(preview["estimated_tokens"]["output"].is_null());
  const Json real = world.ok("submit", World::prompt("hi"));
  CHECK(preview["idempotency_key"] == real["idempotency_key"]);
  CHECK(preview["cache_key"] == real["cache_key"]);
  preview = world.ok("submit.preview", World::prompt("hi"));
  CHECK(preview["outcome"] == "existing");
  CHECK(preview["job_id"] == real["job_id"]);
  world.complete(world.lease());
  CHECK(world.ok("submit.preview", World::prompt("hi"))["outcome"] == "cached");
  world.fails("submit.preview", World::prompt("new", {{"only_if_cached", true}}), Exit::not_found,
              "not_cached");
}

TEST_CASE("registry: every operation has its name once and either reads or writes") {
  std::set<std::string_view> names;
  for (const Op& op : all_ops()) {
    CAPTURE(op.name);
    CHECK(names.insert(op.name).second);
    CHECK(find_op(op.name) == &op);
    CHECK((op.read == nullptr) != (op.prepare == nullptr));
  }
  for (const char* name : {"submit", "cancel", "dlq.replay", "batch.append", "cost.aggregate"})
    CHECK(names.contains(name));
  CHECK(find_op("drop") == nullptr);
}

TEST_CASE("registry: what reads the whole file is not for the daemon") {
  Names local;
  for (const Op& op : all_ops())
    if (op.local_only) local.emplace_back(op.name);
  CHECK(local == Names{"db.info", "db.check", "cost.summary", "repair.plan"});
  const Failure failure = local_only(*find_op("db.check"));
  CHECK(failure.exit == Exit::usage);
  CHECK(failure.code == "local_only");
  CHECK(failure.hint.starts_with("`aiq db check`"));
}

TEST_CASE("limits: no limit on a request still bounds what is read") {
  CHECK(request_bytes_bound(0) == 1 << 30);
  CHECK(request_bytes_bound(5) == 5);
}

TEST_CASE("failures of the store: each kind has its exit code") {
  using Kind = StoreError::Kind;
  CHECK(failure_of(StoreError(Kind::busy, "x")).exit == Exit::busy);
  for (const Kind kind :
       {Kind::full, Kind::io, Kind::corrupt, Kind::readonly, Kind::version, Kind::missing}) {
    const Failure failure = failure_of(StoreError(kind, "what happened"));
    CHECK(failure.exit == Exit::storage);
    CHECK(failure.message == "what happened");
    CHECK_FALSE(failure.hint.empty());
  }
}
