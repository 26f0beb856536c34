#include <doctest/doctest.h>

#include "support/engine_world.h"

using namespace aiq;
using namespace aiq::test;

TEST_CASE("attempt: a submitted job goes out once and is completed with its answer and usage") {
  EngineWorld world;
  world.start();
  const JobId id = world.submit("hello");
  REQUIRE(world.transport.wait_sent(1));
  CHECK(world.job(id).status == JobState::processing);
  CHECK(world.transport.request(0).url == "http://127.0.0.1:9/v1/chat/completions");

  world.transport.answer(0, chat_answer("hi"));
  world.settle();
  const JobRow job = world.job(id);
  CHECK(job.status == JobState::completed);
  CHECK(job.result_source == "vendor");
  REQUIRE(job.usage);
  CHECK((*job.usage)[Meter::input] == 10);
  CHECK((*job.usage)[Meter::output] == 4);
  CHECK(world.runner.running() == 0);
  CHECK(world.transport.sent() == 1);
  const auto attempts = world.attempts(id);
  REQUIRE(attempts.size() == 1);
  CHECK(attempts[0].outcome == Outcome::completed);
  CHECK(attempts[0].billed == Billed::yes);
}

TEST_CASE("attempt: a failure is tried again when its backoff is over, not before") {
  EngineWorld world;
  world.start();
  const JobId id = world.submit("hello");
  REQUIRE(world.transport.wait_sent(1));
  world.transport.answer(0, status_answer(500, "{}"));
  world.settle();
  const JobRow waiting = world.job(id);
  CHECK(waiting.status == JobState::retrying);
  if (waiting.run_at > world.clock.wall_ms()) {
    CHECK(world.transport.sent() == 1);
    CHECK(world.dispatcher.next_wake() == waiting.run_at);
    world.clock.set_wall(waiting.run_at);
  }
  world.dispatcher.wake();
  REQUIRE(world.transport.wait_sent(2));
  world.transport.answer(1, chat_answer("hi"));
  world.settle();
  CHECK(world.job(id).status == JobState::completed);
  const auto attempts = world.attempts(id);
  REQUIRE(attempts.size() == 2);
  CHECK(attempts[0].outcome == Outcome::server_error);
  CHECK(attempts[0].billed == Billed::no);
  CHECK(attempts[0].counts);
}

TEST_CASE("attempt: a cancelled job stays cancelled, and its late answer's usage is kept") {
  EngineWorld world;
  world.start();
  const JobId id = world.submit("hello");
  REQUIRE(world.transport.wait_sent(1));
  const auto outcome = world.writer.run(WritePriority::control, [&](Store& store) {
    return store.cancel(id, world.clock.wall_ms());
  });
  CHECK(outcome.kind == Store::CancelOutcome::Kind::cancelled);
  REQUIRE_FALSE(outcome.lost_token.empty());
  world.runner.abort_lost(outcome.lost_token);
  CHECK(world.transport.wait_cancelled(0));

  world.transport.answer(0, chat_answer("too late"));
  world.settle();
  const JobRow job = world.job(id);
  CHECK(job.status == JobState::cancelled);
  CHECK(job.result_source.empty());
  REQUIRE(job.usage);
  CHECK((*job.usage)[Meter::output] == 4);
  const auto attempts = world.attempts(id);
  REQUIRE(attempts.size() == 1);
  CHECK(attempts[0].outcome == Outcome::cancelled);
  CHECK(attempts[0].billed == Billed::yes);
  CHECK_FALSE(attempts[0].counts);
}

TEST_CASE("attempt: what is given back at shutdown is queued and uses no attempt") {
  EngineWorld world;
  world.start();
  const JobId id = world.submit("hello");
  REQUIRE(world.transport.wait_sent(1));
  world.dispatcher.set_leasing(false);
  world.runner.release_all();
  REQUIRE(world.transport.wait_cancelled(0));
  world.transport.answer(0, failed(HttpResult::Failure::cancelled, true));
  world.settle();
  CHECK(world.job(id).status == JobState::queued);
  const auto attempts = world.attempts(id);
  REQUIRE(attempts.size() == 1);
  CHECK(attempts[0].outcome == Outcome::released);
  CHECK(attempts[0].billed == Billed::maybe);
  CHECK_FALSE(attempts[0].counts);
}

TEST_CASE("attempt: the idempotency number stays after an unknown bill and rises after an answer") {
  EngineWorld world;
  world.start();
  const JobId id = world.submit("hello");
  const auto key = [&](std::size_t call) {
    return *find_header(world.transport.request(call).headers, "idempotency-key");
  };
  const auto next = [&](std::size_t call, HttpResult result) {
    world.transport.answer(call, std::move(result));
    world.settle();
    world.clock.advance(120'000);
    world.dispatcher.wake();
    REQUIRE(world.transport.wait_sent(call + 2));
  };
  const std::string prefix = "aiq-" + std::to_string(id) + ".1.";
  REQUIRE(world.transport.wait_sent(1));
  CHECK(key(0) == prefix + "1");
  next(0, failed(HttpResult::Failure::broken, true));
  CHECK(key(1) == prefix + "1");
  next(1, status_answer(503, "{}"));
  CHECK(key(2) == prefix + "2");
  next(2, failed(HttpResult::Failure::first_byte_timeout, true));
  CHECK(key(3) == prefix + "2");
  world.transport.answer(3, chat_answer("done"));
  world.settle();
  CHECK(world.job(id).status == JobState::completed);
}

TEST_CASE("attempt: equal jobs of one cache group wait for the one that runs") {
  EngineWorld world([](Config& config) {
    for (const char* name : {"t1", "t2", "t3"}) {
      config.tenants[name].name = name;
      config.tenants[name].cache_group = "g";
    }
  });
  world.start();
  std::vector<JobId> ids;
  for (const char* tenant : {"t1", "t2", "t3"}) {
    ids.push_back(world.submit("same", [&](SubmitInput& in) { in.tenant = tenant; }));
  }
  REQUIRE(world.transport.wait_sent(1));
  world.settle();
  CHECK(world.transport.sent() == 1);

  SUBCASE("and are served from the cache when it is done") {
    world.transport.answer(0, chat_answer("one"));
    world.settle();
    for (const JobId id : ids)
      CHECK(world.job(id).status == JobState::completed);
    CHECK(world.transport.sent() == 1);
    CHECK(world.job(ids[1]).result_source == "cache");
    CHECK_FALSE(world.job(ids[1]).usage);
  }
  SUBCASE("and one of them leads when it failed") {
    world.transport.answer(0, status_answer(400, "{}"));
    REQUIRE(world.transport.wait_sent(2));
    world.settle();
    CHECK(world.transport.sent() == 2);
    world.transport.answer(1, chat_answer("two"));
    world.settle();
    int completed = 0;
    for (const JobId id : ids)
      completed += world.job(id).status == JobState::completed ? 1 : 0;
    CHECK(completed == 2);
  }
}

TEST_CASE("attempt: a refused credential stops the vendor after one request") {
  EngineWorld world;
  world.start();
  std::vector<JobId> ids;
  for (int i = 0; i < 5; ++i)
    ids.push_back(world.submit("prompt " + std::to_string(i)));
  REQUIRE(world.transport.wait_sent(1));
  world.settle();
  CHECK(world.transport.sent() == 1);  // unproven: one at a time
  world.transport.answer(0, status_answer(401, R"({"error":{"message":"bad key"}})"));
  world.settle();
  CHECK(world.transport.sent() == 1);
  for (const JobId id : ids)
    CHECK(world.job(id).status == JobState::queued);

  world.writer.run(WritePriority::control,
                   [](Store& store) { return store.clear_pause("v", "", ""); });
  world.dispatcher.wake();
  REQUIRE(world.transport.wait_sent(2));
  world.transport.answer(1, chat_answer("ok"));
  CHECK(world.transport.wait_sent(6));  // proven: the rest at once
}

TEST_CASE("recovery: what a dead process left is closed as unknown, within its limits") {
  EngineWorld world([](Config& config) {
    config.retry.crash_limit = 2;
    config.retry.base_ms = 1;
  });
  const JobId id = world.submit("hello");
  const auto lease = [&] {
    return world.writer.run(WritePriority::control, [&](Store& store) {
      const UnixMs now = world.clock.wall_ms();
      (void)store.promote_due(now, 10);
      const auto view = store.admission_view(now);
      REQUIRE(view.lanes.size() == 1);
      return store.lease({.lane_id = view.lanes[0].lane.lane_id,
                          .token = world.random.token(),
                          .now = now,
                          .lease_until = now + 60'000,
                          .worker = "dead"});
    });
  };
  REQUIRE(lease().kind == LeaseOutcome::Kind::leased);
  auto report = recover(world.writer, *world.runtime.get(), world.clock, world.random);
  CHECK(report.attempts == 1);
  CHECK(report.dead_lettered == 0);
  CHECK(report.locks == 1);
  CHECK(world.job(id).status == JobState::retrying);
  CHECK(world.attempts(id).at(0).outcome == Outcome::unknown);
  CHECK(world.attempts(id).at(0).billed == Billed::maybe);

  world.clock.advance(60'000);
  REQUIRE(lease().kind == LeaseOutcome::Kind::leased);
  report = recover(world.writer, *world.runtime.get(), world.clock, world.random);
  CHECK(report.dead_lettered == 1);
  CHECK(world.job(id).status == JobState::dead_lettered);
  CHECK(recover(world.writer, *world.runtime.get(), world.clock, world.random).attempts == 0);
}
