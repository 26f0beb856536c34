#pragma once
// A database in memory and the operations on it, as a client sees them.

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/ops/op.h"

namespace ops_world {

using namespace aiq;

// Times that a test moves itself.
class TestClock final : public Clock {
 public:
  [[nodiscard]] UnixMs wall_ms() const override { return wall; }
  [[nodiscard]] MonoMs mono_ms() const override { return wall - 1'000'000; }
  UnixMs wall = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
};

constexpr const char* kConfig = R"(
[cache]
soft_ttl = "1h"
hard_ttl = "2h"
jitter = 0.0
[vendors.main]
api = "openai"
base_url = "http://127.0.0.1:1/v1"
auth = "none"
max_in_flight = 9
rpm = 60
[vendors.other]
api = "anthropic"
base_url = "http://127.0.0.1:1"
auth = "none"
[models.gpt-small]
vendor = "main"
[models.claude-small]
vendor = "other"
)";

constexpr const char* kAnswer =
    R"({"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}})";

struct World {
  Config config = parse_config(kConfig, "test.toml");
  TestClock clock;
  SeededRandom random{7};
  std::unique_ptr<Store> store = open_store(":memory:", StoreOptions{}, clock.wall, false);
  OpResult last;  // of the last writing operation

  Expected<Json, Failure> run(std::string_view name, const Json& in) {
    const OpEnv env{config, clock, random, "uid:7"};
    const Op* op = find_op(name);
    REQUIRE(op != nullptr);
    if (op->read != nullptr) return op->read(env, *store, in);
    auto result = run_write(*op, env, *store, in);
    if (!result) return Unexpected{result.error()};
    last = *result;
    return last.out;
  }

  Json ok(std::string_view name, const Json& in = Json::object()) {
    auto out = run(name, in);
    REQUIRE_MESSAGE(out.has_value(), out.error().code << ": " << out.error().message);
    return *out;
  }

  Failure fails(std::string_view name, const Json& in, Exit exit, const std::string& code) {
    auto out = run(name, in);
    REQUIRE_FALSE(out.has_value());
    CHECK_MESSAGE(out.error().code == code, out.error().message);
    CHECK(out.error().exit == exit);
    CHECK_FALSE(out.error().message.empty());
    return out.error();
  }

  static Json prompt(const std::string& text, Json more = Json::object()) {
    Json in = {{"model", "gpt-small"}, {"prompt", text}};
    in.update(more);
    return in;
  }
  std::string submit(const std::string& text, const Json& more = Json::object()) {
    return ok("submit", prompt(text, more))["job_id"];
  }

  // Leases the first ready job of all lanes.
  LeasedJob lease() {
    store->begin();
    const AdmissionView view = store->admission_view(clock.wall);
    REQUIRE_FALSE(view.lanes.empty());
    LeaseOutcome out = store->lease({.lane_id = view.lanes[0].lane.lane_id,
                                     .token = random.token(),
                                     .now = clock.wall,
                                     .lease_until = clock.wall + 60'000,
                                     .worker = "pid:1"});
    store->commit();
    REQUIRE(out.job.has_value());
    return *out.job;
  }

  void close(const LeasedJob& job, const AttemptResult& result) {
    AttemptClose close;
    close.attempt_id = job.attempt_id;
    close.job_id = job.job_id;
    close.token = job.token;
    close.now = clock.wall;
    close.result = result;
    close.next =
        decide_next({.outcome = result.outcome,
                     .billed = result.billed,
                     .retryable = result.retryable,
                     .retry_after_ms = result.retry_after_ms,
                     .started_at = job.started_at},
                    job.counters, config.retry, job.max_attempts, job.deadline, clock.wall, random);
    store->begin();
    CHECK(store->close_attempt(close).held);
    store->commit();
  }

  void complete(const LeasedJob& job, const std::string& body = kAnswer) {
    AttemptResult result;
    result.outcome = Outcome::completed;
    result.billed = Billed::yes;
    result.http_status = 200;
    result.vendor_request_id = "req-1";
    result.total_ms = 40;
    result.usage_state = UsageState::ok;
    result.usage[Meter::input] = 3;
    result.usage[Meter::output] = 2;
    result.body = body;
    close(job, result);
  }

  void reject(const LeasedJob& job) {
    AttemptResult result;
    result.outcome = Outcome::rejected;
    result.billed = Billed::no;
    result.retryable = false;
    result.http_status = 400;
    result.error_code = "invalid_value";
    result.error_message = "not like this";
    close(job, result);
  }
};

inline std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.items())
    out.push_back(key);
  return out;
}

using Names = std::vector<std::string>;

}  // namespace ops_world
