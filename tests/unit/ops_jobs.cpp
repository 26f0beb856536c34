#include "ops_world.h"

using namespace ops_world;

namespace {

const Names kJobKeys = {
    "job_id",     "kind",      "status",         "tenant",     "vendor",      "model",
    "endpoint",   "priority",  "labels",         "batch_id",   "custom_id",   "idempotency_key",
    "client_key", "cache_key", "correlation_id", "generation", "attempts",    "max_attempts",
    "created_at", "run_at",    "deadline",       "started_at", "finished_at", "result_source",
    "stale",      "truncated", "error",          "usage",      "cost"};

Names ids_of(const Json& page) {
  Names out;
  for (const Json& row : page["rows"])
    out.push_back(row["job_id"]);
  return out;
}

std::string submission_of(World& world, const std::string& text) {
  return world.ok("submit", World::prompt(text))["submission_id"];
}

}  // namespace

TEST_CASE("list: newest first, page by page") {
  World world;
  Names ids;
  for (int i = 0; i < 5; ++i)
    ids.insert(ids.begin(), world.submit("prompt " + std::to_string(i)));
  Json page = world.ok("list", {{"limit", 2}});
  CHECK(ids_of(page) == Names{ids[0], ids[1]});
  CHECK(keys_of(page["rows"][0]) == kJobKeys);
  page = world.ok("list", {{"limit", 2}, {"after", page["next_after"]}});
  CHECK(ids_of(page) == Names{ids[2], ids[3]});
  page = world.ok("list", {{"limit", 2}, {"after", page["next_after"]}});
  CHECK(ids_of(page) == Names{ids[4]});
  CHECK(page["next_after"].is_null());
}

TEST_CASE("list: filters") {
  World world;
  const std::string one = world.submit("a", {{"labels", {{"team", "x=y"}}}, {"tenant", "t1"}});
  world.clock.wall += 1000;
  const std::string two = world.submit("b", {{"correlation_id", "c"}, {"model", "claude-small"}});
  CHECK(ids_of(world.ok("list", {{"label", "team=x=y"}})) == Names{one});
  CHECK(ids_of(world.ok("list", {{"tenant", "t1"}})) == Names{one});
  CHECK(ids_of(world.ok("list", {{"correlation_id", "c"}})) == Names{two});
  CHECK(ids_of(world.ok("list", {{"vendor", "other"}})) == Names{two});
  CHECK(ids_of(world.ok("list", {{"model", "gpt-small"}})) == Names{one});
  CHECK(ids_of(world.ok("list", {{"since", "2026-01-01T00:00:01Z"}})) == Names{two});
  CHECK(ids_of(world.ok("list", {{"until", "2026-01-01T00:00:01Z"}})) == Names{one});
  CHECK(ids_of(world.ok("list", {{"status", "completed"}})).empty());
  world.fails("list", {{"status", "done"}}, Exit::usage, "invalid_status");
  world.fails("list", {{"label", "team"}}, Exit::usage, "invalid_option");
  world.fails("list", {{"limit", 1001}}, Exit::usage, "invalid_option");
  world.fails("list", {{"after", "x"}}, Exit::usage, "invalid_id");
}

TEST_CASE("show: all of a job, what is unknown is null") {
  World world;
  const std::string id = world.submit("hi");
  Json job = world.ok("show", {{"job_id", id}});
  Names keys = kJobKeys;
  keys.push_back("attempt_log");
  CHECK(keys_of(job) == keys);
  CHECK(job["kind"] == "request");
  CHECK(job["status"] == "queued");
  CHECK(job["created_at"] == "2026-01-01T00:00:00.000Z");
  for (const char* name : {"batch_id", "custom_id", "client_key", "deadline", "started_at",
                           "finished_at", "result_source", "error", "usage", "cost"}) {
    CAPTURE(name);
    CHECK(job[name].is_null());
  }
  CHECK(job["attempt_log"].empty());

  world.complete(world.lease());
  job = world.ok("show", {{"job_id", id}, {"result", true}});
  CHECK(job["status"] == "completed");
  CHECK(job["result_source"] == "vendor");
  CHECK(job["attempts"] == 1);
  CHECK(job["usage"] == Json{{"input", 3},
                             {"cache_read", 0},
                             {"cache_write_5m", 0},
                             {"cache_write_1h", 0},
                             {"output", 2}});
  CHECK(job["result_text"] == kAnswer);
  REQUIRE(job["attempt_log"].size() == 1);
  const Json& attempt = job["attempt_log"][0];
  Names log = keys_of(attempt);
  log.resize(14);
  CHECK(log == Names{"generation", "attempt", "outcome", "billed", "counts", "started_at",
                     "ended_at", "http_status", "vendor_request_id", "connect_ms", "first_byte_ms",
                     "total_ms", "retry_after_ms", "worker"});
  CHECK(attempt["outcome"] == "completed");
  CHECK(attempt["billed"] == "yes");
  CHECK(attempt["total_ms"] == 40);
  CHECK(attempt["connect_ms"].is_null());
  CHECK(attempt["worker"] == "pid:1");
  world.fails("show", {{"job_id", "99"}}, Exit::not_found, "no_such_job");
  world.fails("show", {{"job_id", "-1"}}, Exit::usage, "invalid_id");
  world.fails("show", Json::object(), Exit::usage, "missing_option");
}

TEST_CASE("show: an open attempt has no outcome yet, a dead letter has its error") {
  World world;
  const std::string id = world.submit("bad");
  const LeasedJob lease = world.lease();
  Json job = world.ok("show", {{"job_id", id}});
  CHECK(job["status"] == "processing");
  CHECK(job["attempt_log"][0]["outcome"].is_null());
  CHECK(job["attempt_log"][0]["billed"].is_null());
  world.reject(lease);
  job = world.ok("show", {{"job_id", id}, {"result", true}});
  CHECK(job["status"] == "dead_lettered");
  CHECK(job["error"] == Json{{"class", "rejected"},
                             {"code", "invalid_value"},
                             {"message", "not like this"},
                             {"http_status", 400}});
  CHECK(job["result_text"].is_null());
  CHECK(job["usage"].is_null());
}

TEST_CASE("result: the body as received, and its text") {
  World world;
  const std::string id = world.submit("hi");
  Failure none = world.fails("result", {{"job_id", id}}, Exit::no, "no_result");
  CHECK(none.message.find("queued") != std::string::npos);
  // Spaces and number forms are the vendor's; they stay.
  const std::string body =
      " {\"x\" : 1.50e0,\"choices\":[{\"message\":{\"content\":\"Hello\"}}]}\n";
  world.complete(world.lease(), body);
  const Json result = world.ok("result", {{"job_id", id}});
  CHECK(keys_of(result) ==
        Names{"job_id", "status", "endpoint", "body", "text", "result_source", "stale"});
  CHECK(result["body"] == body);
  CHECK(result["text"] == "Hello");
  CHECK(result["result_source"] == "vendor");
  const std::string again = world.submit("hi");
  CHECK(world.ok("result", {{"job_id", again}})["result_source"] == "cache");
  world.fails("result", {{"job_id", "99"}}, Exit::not_found, "no_such_job");

  const std::string bad = world.submit("bad");
  world.reject(world.lease());
  none = world.fails("result", {{"job_id", bad}}, Exit::no, "no_result");
  CHECK(none.message.find("not like this") != std::string::npos);
}

TEST_CASE("cancel: a job id withdraws all its submissions") {
  World world;
  const std::string id = world.submit("hi");
  world.submit("hi");
  const Json out = world.ok("cancel", {{"ids", {id}}});
  CHECK(out["rows"] ==
        Json::array({{{"job_id", id}, {"outcome", "cancelled"}, {"status", "cancelled"}}}));
  CHECK(world.ok("cancel", {{"ids", {id}}})["rows"][0]["outcome"] == "already_final");
}

TEST_CASE("cancel: a submission leaves the job to the others, force does not") {
  World world;
  const std::string id = world.submit("hi");
  const std::string second = submission_of(world, "hi");
  const std::string third = submission_of(world, "hi");
  Json row = world.ok("cancel", {{"ids", {second}}})["rows"][0];
  CHECK(row == Json{{"job_id", id}, {"outcome", "withdrawn"}, {"status", "queued"}});
  row = world.ok("cancel", {{"ids", {third}}, {"force", true}})["rows"][0];
  CHECK(row == Json{{"job_id", id}, {"outcome", "cancelled"}, {"status", "cancelled"}});
}

TEST_CASE("cancel: one unknown id, and nothing is cancelled") {
  World world;
  const std::string id = world.submit("hi");
  world.fails("cancel", {{"ids", {id, "99"}}}, Exit::not_found, "no_such_job");
  world.fails("cancel", {{"ids", {id, "s99"}}}, Exit::not_found, "no_such_submission");
  CHECK(world.ok("show", {{"job_id", id}})["status"] == "queued");
  world.fails("cancel", {{"ids", Json::array()}}, Exit::usage, "missing_option");
  for (const char* wrong : {"", "s", "x1", "1x", "0", "S1", "s-1"}) {
    CAPTURE(wrong);
    world.fails("cancel", {{"ids", {wrong}}}, Exit::usage, "invalid_id");
  }
}

TEST_CASE("cancel: a refusal undoes itself alone in a transaction with others") {
  World world;
  const std::string id = world.submit("hi");
  const OpEnv env{world.config, world.clock, world.random, "uid:7"};
  const auto refused = find_op("cancel")->prepare(env, {{"ids", {id, "s99"}}});
  const auto other = find_op("pause")->prepare(env, {{"vendor", "main"}});
  REQUIRE(refused.has_value());
  REQUIRE(other.has_value());
  world.store->begin();
  CHECK((*other)(*world.store).has_value());
  CHECK_FALSE((*refused)(*world.store).has_value());
  world.store->commit();
  CHECK(world.ok("show", {{"job_id", id}})["status"] == "queued");
  CHECK(world.ok("stats")["pauses"].size() == 1);
}

TEST_CASE("cancel: a running request is named for its abort") {
  World world;
  const std::string id = world.submit("hi");
  const LeasedJob lease = world.lease();
  world.ok("cancel", {{"ids", {id}}});
  REQUIRE(world.last.lost_leases.size() == 1);
  CHECK(world.last.lost_leases[0].first == lease.job_id);
  CHECK(world.last.lost_leases[0].second == lease.token);
}
