#include <doctest/doctest.h>

#include <map>

#include "cli/wait_loop.h"

using namespace aiq;
using namespace aiq::cli;

namespace {

// Jobs that end at given times, on a clock that only a pause moves.
class World final : public Clock {
 public:
  struct Job {
    MonoMs ends_at;
    const char* status;
  };
  std::map<std::string, Job> jobs;
  MonoMs daemon_from = 0, daemon_until = INT64_MAX;
  MonoMs busy_from = INT64_MAX, busy_until = INT64_MAX;  // show() fails with busy
  MonoMs now = 0;
  std::vector<std::string> ended;
  std::vector<DurationMs> pauses;
  std::size_t shows = 0;

  [[nodiscard]] UnixMs wall_ms() const override { return 0; }
  [[nodiscard]] MonoMs mono_ms() const override { return now; }

  Expected<Json, Failure> show(const std::string& id) {
    ++shows;
    if (now >= busy_from && now < busy_until)
      return Unexpected{Failure{Exit::busy, "busy", "", ""}};
    const auto job = jobs.find(id);
    if (job == jobs.end()) return Unexpected{Failure{Exit::not_found, "no_such_job", "", ""}};
    const bool over = now >= job->second.ends_at;
    return Json{{"job_id", id}, {"status", over ? job->second.status : "processing"}};
  }

  Expected<WaitEnd, Failure> wait(const WaitRequest& request) {
    const WaitWorld world{
        .show = [this](const std::string& id) { return show(id); },
        .daemon_runs = [this] { return now >= daemon_from && now < daemon_until; },
        .pause =
            [this](DurationMs ms) {
              REQUIRE(ms > 0);
              pauses.push_back(ms);
              now += ms;
            },
        .clock = *this,
    };
    const WaitEvents events{
        .ended = [this](const Json& job) { ended.push_back(job.at("job_id")); },
        .progress = [](const WaitProgress&) {},
    };
    return wait_for_jobs(world, request, events);
  }
};

}  // namespace

TEST_CASE("wait: all jobs completed, each told once in the order of their ends") {
  World world;
  world.jobs = {{"1", {900, "completed"}}, {"2", {100, "completed"}}, {"3", {0, "completed"}}};
  CHECK(*world.wait({.job_ids = {"1", "2", "3", "2"}}) == WaitEnd::completed);
  CHECK(world.ended == std::vector<std::string>{"3", "2", "1"});
}

TEST_CASE("wait: goes on after one that failed, and says no at the end") {
  World world;
  world.jobs = {{"1", {100, "dead_lettered"}}, {"2", {500, "completed"}}};
  CHECK(*world.wait({.job_ids = {"1", "2"}}) == WaitEnd::not_completed);
  CHECK(world.ended == std::vector<std::string>{"1", "2"});
}

TEST_CASE("wait any: ends with the first that completed, not with one that failed") {
  World world;
  world.jobs = {{"1", {100, "failed"}}, {"2", {500, "completed"}}, {"3", {9'000, "completed"}}};
  CHECK(*world.wait({.job_ids = {"1", "2", "3"}, .any = true}) == WaitEnd::completed);
  CHECK(world.ended == std::vector<std::string>{"1", "2"});
  CHECK(world.now < 1'000);

  World none;
  none.jobs = {{"1", {100, "failed"}}, {"2", {500, "cancelled"}}};
  CHECK(*none.wait({.job_ids = {"1", "2"}, .any = true}) == WaitEnd::not_completed);
}

TEST_CASE("wait: an unknown id is told before any waiting") {
  World world;
  world.jobs = {{"1", {5'000, "completed"}}};
  const auto end = world.wait({.job_ids = {"1", "99"}});
  REQUIRE_FALSE(end);
  CHECK(end.error().exit == Exit::not_found);
  CHECK(world.pauses.empty());
}

TEST_CASE("wait: without a daemon ends at once, unless all have ended already") {
  World world;
  world.daemon_from = INT64_MAX;
  world.jobs = {{"1", {5'000, "completed"}}, {"2", {0, "completed"}}};
  CHECK(*world.wait({.job_ids = {"1"}}) == WaitEnd::no_daemon);
  CHECK(world.pauses.empty());
  CHECK(*world.wait({.job_ids = {"2"}}) == WaitEnd::completed);
}

TEST_CASE("wait: the timeout is kept to the millisecond") {
  World world;
  world.jobs = {{"1", {50'000, "completed"}}};
  CHECK(*world.wait({.job_ids = {"1"}, .timeout_ms = 1'337}) == WaitEnd::timed_out);
  CHECK(world.now == 1'337);
}

TEST_CASE("wait: a daemon that comes back within the reconnect time is waited for") {
  World world;
  world.jobs = {{"1", {12'000, "completed"}}};
  world.daemon_until = 2'000;
  CHECK(*world.wait({.job_ids = {"1"}, .reconnect_ms = 20'000}) == WaitEnd::completed);
}

TEST_CASE("wait: a daemon that stays away ends the wait after the reconnect time") {
  World world;
  world.jobs = {{"1", {60'000, "completed"}}};
  world.daemon_until = 2'000;
  CHECK(*world.wait({.job_ids = {"1"}, .reconnect_ms = 10'000}) == WaitEnd::daemon_gone);
  CHECK(world.now >= 11'000);  // last seen between 1 s and 2 s
  CHECK(world.now <= 12'500);
}

TEST_CASE("wait: a database that is busy for a moment is no end") {
  World world;
  world.jobs = {{"1", {3'000, "completed"}}};
  world.busy_from = 500;
  world.busy_until = 2'500;
  CHECK(*world.wait({.job_ids = {"1"}}) == WaitEnd::completed);
}

TEST_CASE("wait: asks soon at first, then five times a second, never more than 200 jobs a round") {
  World world;
  WaitRequest request;
  for (int i = 0; i < 1'000; ++i) {
    request.job_ids.push_back(std::to_string(i));
    world.jobs[std::to_string(i)] = {10'000, "completed"};
  }
  CHECK(*world.wait(request) == WaitEnd::completed);
  CHECK(world.ended.size() == 1'000);
  CHECK(world.pauses.front() == 25);
  CHECK(world.pauses.back() == 200);
  CHECK(world.shows <= 1'000 + 200 * world.pauses.size());
}
