// What leases, their ends and the single flight promise, over a file and in memory.

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

using Kind = LeaseOutcome::Kind;

TEST_CASE_TEMPLATE("lease: gives the job and writes its attempt first", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("one");
  s.max_attempts = 3;
  s.deadline = kStart + kHour;
  const JobId id = world.submit(s).job_id;
  world.now += kSecond;
  const LeasedJob job = world.lease_only("token-1");
  CHECK(job.job_id == id);
  CHECK(job.lane.tenant == "default");
  CHECK(job.lane.vendor == "openai");
  CHECK(job.lane.model == "gpt-4o");
  CHECK(job.body == s.body);
  CHECK(job.generation == 1);
  CHECK(job.attempt == 1);
  CHECK(job.max_attempts == 3);
  CHECK(job.explicit_answers == 0);
  CHECK(job.token == "token-1");
  CHECK(job.counters == AttemptCounters{});
  CHECK(job.created_at == kStart);
  CHECK(job.started_at == world.now);
  CHECK(job.deadline == s.deadline);
  CHECK(job.idempotency_key == s.keys.idempotency_key);
  CHECK(world.state(id) == JobState::processing);
  CHECK(world.job(id).started_at == world.now);

  const auto attempts = world.store().attempts_of(id);
  REQUIRE(attempts.size() == 1);
  CHECK(attempts[0].attempt_id == job.attempt_id);
  CHECK_FALSE(attempts[0].outcome.has_value());
  CHECK(attempts[0].counts);
  CHECK(attempts[0].worker == "pid:7");
  CHECK(attempts[0].usage_state.empty());
  CHECK(world.lease(job.lane.lane_id, "token-2").kind == Kind::empty);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("lease: the highest rank goes first, waiting counts", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission old = request("old");
  const JobId old_id = world.submit(old).job_id;
  world.now += 60 * kSecond;  // one step of priority
  NewSubmission normal = request("normal");
  const JobId normal_id = world.submit(normal).job_id;
  NewSubmission urgent = request("urgent");
  urgent.priority = 2;
  const JobId urgent_id = world.submit(urgent).job_id;
  CHECK(world.lease_only("t1").job_id == urgent_id);
  CHECK(world.lease_only("t2").job_id == old_id);
  CHECK(world.lease_only("t3").job_id == normal_id);
}

TEST_CASE_TEMPLATE("lease: admission sees the heads and what runs", Place, OnFile, InMemory) {
  World<Place> world;
  world.write([&](Store& st) { st.register_vendor("openai", "s1", true); });
  world.submit(request("a1", "acme"));
  const JobId a2 = world.submit(request("a2", "acme")).job_id;
  const JobId z1 = world.submit(request("z1", "zeta")).job_id;
  auto view = world.write([&](Store& st) { return st.admission_view(world.now); });
  REQUIRE(view.lanes.size() == 2);
  CHECK(view.running.empty());
  CHECK(view.oldest_start.empty());
  const LaneId acme =
      view.lanes[0].lane.tenant == "acme" ? view.lanes[0].lane.lane_id : view.lanes[1].lane.lane_id;
  REQUIRE(world.lease(acme, "t1").kind == Kind::leased);
  world.now += kSecond;
  REQUIRE(world.lease(acme, "t2").kind == Kind::leased);

  view = world.write([&](Store& st) { return st.admission_view(world.now); });
  REQUIRE(view.lanes.size() == 1);
  CHECK(view.lanes[0].job_id == z1);
  CHECK(view.lanes[0].in_flight == 0);
  REQUIRE(view.running.size() == 1);
  CHECK(view.running[0].lane.tenant == "acme");
  CHECK(view.running[0].in_flight == 2);
  REQUIRE(view.oldest_start.count("openai") == 1);
  CHECK(view.oldest_start["openai"] == kStart);

  CHECK_FALSE(world.store().lane_head(acme).has_value());
  const auto head = world.store().lane_head(view.lanes[0].lane.lane_id);
  REQUIRE(head.has_value());
  CHECK(head->job_id == z1);
  CHECK(a2 != z1);
}

TEST_CASE_TEMPLATE("lease: admission sees the next deadline of what waits", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const auto next = [&] {
    return world.write([&](Store& st) { return st.admission_view(world.now); }).next_deadline;
  };
  world.submit(request("no deadline"));
  CHECK_FALSE(next().has_value());
  NewSubmission ready = request("ready", "acme");
  ready.deadline = kStart + 2 * kHour;
  const JobId ready_id = world.submit(ready).job_id;
  CHECK(next() == kStart + 2 * kHour);
  NewSubmission later = request("later");
  later.run_at = kStart + kHour;
  later.deadline = kStart + kHour + kSecond;
  const JobId later_id = world.submit(later).job_id;
  CHECK(next() == kStart + kHour + kSecond);
  world.now = kStart + kHour + kSecond;
  CHECK(next() == world.now);  // until it is expired
  CHECK(world.write([&](Store& st) { return st.expire_deadlines(world.now, 10); }) ==
        std::vector<JobId>{later_id});
  CHECK(next() == kStart + 2 * kHour);
  world.write([&](Store& st) { return st.cancel(ready_id, world.now); });
  CHECK_FALSE(next().has_value());
}

TEST_CASE_TEMPLATE("close: an answer is stored with all that belongs to it", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  const LeasedJob job = world.lease_only("t1");
  world.now += kSecond;
  AttemptClose c = answered(job, world.now, "body");
  c.result.usage[Meter::cache_read] = 3;
  c.result.truncated = true;
  c.result.vendor_request_id = "req_1";
  c.result.connect_ms = 4;
  const CloseOutcome outcome = world.close(c);
  CHECK(outcome.held);
  CHECK(outcome.status == JobState::completed);

  const JobRow row = world.job(id);
  CHECK(row.status == JobState::completed);
  CHECK(row.wait.empty());
  CHECK(row.result_source == "vendor");
  CHECK(row.truncated);
  CHECK(row.finished_at == world.now);
  CHECK(row.error_class.empty());
  REQUIRE(row.result_id.has_value());
  CHECK(world.store().result_body(*row.result_id) == "body");
  REQUIRE(row.usage.has_value());
  CHECK((*row.usage)[Meter::input] == 10);
  CHECK((*row.usage)[Meter::cache_read] == 3);
  CHECK((*row.usage)[Meter::output] == 5);

  const auto attempts = world.store().attempts_of(id);
  REQUIRE(attempts.size() == 1);
  CHECK(attempts[0].outcome == Outcome::completed);
  CHECK(attempts[0].billed == Billed::yes);
  CHECK(attempts[0].http_status == 200);
  CHECK(attempts[0].vendor_request_id == "req_1");
  CHECK(attempts[0].connect_ms == 4);
  CHECK(attempts[0].total_ms == 120);
  CHECK(attempts[0].usage_state == "ok");
  CHECK(attempts[0].ended_at == world.now);

  const auto entry = world.store().cache_entry(request("one").keys.cache_key);
  REQUIRE(entry.has_value());
  CHECK(entry->soft_until == world.now + kHour);
  CHECK(entry->hard_until == world.now + 2 * kHour);
  CHECK(entry->tokens == 18);
  CHECK(entry->truncated);
  CHECK(world.store().list_locks().empty());
  CHECK(world.count(JobState::completed) == 1);
  CHECK(world.count(JobState::processing) == 0);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("close: what must not be kept is not kept", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("one");
  SUBCASE("no store") {
    s.cache.store = false;
  }
  SUBCASE("no lifetime") {
    s.soft_ttl_ms = s.hard_ttl_ms = 0;
  }
  world.submit(s);
  world.close(answered(world.lease_only("t1"), world.now));
  CHECK_FALSE(world.store().cache_entry(s.keys.cache_key).has_value());
  CHECK(world.store().stats(world.now).cache.entries == 0);
}

TEST_CASE_TEMPLATE("close: a failure comes back after its wait with its counters", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  AttemptClose c = failed(world.lease_only("t1"), world.now, world.now + 5 * kSecond);
  c.next.counters.maybes = 1;
  c.next.counters.uncounted = 2;
  c.next.counters.crashes = 1;
  c.next.counters.limited_since = kStart - 5;
  CHECK(world.close(c).status == JobState::retrying);
  JobRow row = world.job(id);
  CHECK(row.wait == "time");
  CHECK(row.run_at == world.now + 5 * kSecond);
  CHECK(row.error_class == "server_error");
  CHECK(row.error_code == "server_error");
  CHECK(row.error_message == "it failed");
  CHECK(row.error_status == 500);
  CHECK_FALSE(row.finished_at.has_value());

  world.now += 5 * kSecond;
  world.write([&](Store& st) { return st.promote_due(world.now, 100); });
  const LeasedJob again = world.lease_only("t2");
  CHECK(again.attempt == 2);
  CHECK(again.counters == c.next.counters);
  CHECK(again.explicit_answers == 1);
  CHECK(world.job(id).started_at == kStart);
  world.close(answered(again, world.now));
  row = world.job(id);
  CHECK(row.attempts == 2);
  CHECK(row.error_class.empty());
  CHECK_FALSE(row.error_status.has_value());
  world.expect_sound();
}

TEST_CASE_TEMPLATE("lease: only an answer of the vendor counts as one", Place, OnFile, InMemory) {
  World<Place> world;
  world.submit(request("one"));
  AttemptClose c = failed(world.lease_only("t1"), world.now, world.now);
  c.result.outcome = Outcome::network;  // refused: nothing sent, nothing answered
  c.result.http_status.reset();
  world.close(c);
  LeasedJob job = world.lease_only("t2");
  CHECK(job.explicit_answers == 0);
  c = failed(job, world.now, world.now);
  c.result.outcome = Outcome::bad_response;  // cut after its head: the bill is not known
  c.result.billed = Billed::maybe;
  c.result.http_status = 200;
  world.close(c);
  job = world.lease_only("t3");
  CHECK(job.explicit_answers == 0);
  world.close(failed(job, world.now, world.now));
  job = world.lease_only("t4");
  CHECK(job.explicit_answers == 1);
  const auto open = world.write([&](Store& st) { return st.open_leases(0, 10); });
  CHECK(open.at(0).job.explicit_answers == 1);
}

TEST_CASE_TEMPLATE("close: a release goes back to the queue", Place, OnFile, InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  AttemptClose c = closing(world.lease_only("t1"), world.now);
  c.result.outcome = Outcome::released;
  c.next.step = NextStep::requeue;
  c.next.run_at = world.now;
  CHECK(world.close(c).status == JobState::queued);
  CHECK(world.job(id).wait == "ready");
  CHECK_FALSE(world.store().attempts_of(id)[0].counts);
}

TEST_CASE_TEMPLATE("close: giving up makes a dead letter", Place, OnFile, InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  world.close(refused(world.lease_only("t1"), world.now));
  CHECK(world.state(id) == JobState::dead_lettered);
  CHECK(world.job(id).finished_at == world.now);
  const auto letters = world.store().list_dead_letters({}, {});
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].job_id == id);
  CHECK(letters[0].reason == "rejected");
  CHECK(letters[0].error_class == "rejected");
  CHECK(letters[0].http_status == 400);
  CHECK(letters[0].error_message == "it failed");
  CHECK(letters[0].attempts == 1);
  CHECK(letters[0].state == "open");
  CHECK(letters[0].dead_at == world.now);
  CHECK(letters[0].correlation_id == "c-one");
  CHECK(world.store().dead_letter(letters[0].dlq_id)->job_id == id);
  CHECK_FALSE(world.store().dead_letter(letters[0].dlq_id + 1).has_value());
  CHECK(world.store().stats(world.now).dlq_open == 1);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("close: usage is recorded whatever the outcome, once", Place, OnFile, InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  AttemptClose c = failed(world.lease_only("t1"), world.now, world.now);
  c.result.outcome = Outcome::empty_response;
  c.result.billed = Billed::yes;
  c.result.usage_state = UsageState::ok;
  c.result.usage[Meter::input] = 7;
  world.close(c);
  world.close(answered(world.lease_only("t2"), world.now));
  const JobRow row = world.job(id);
  REQUIRE(row.usage.has_value());
  CHECK((*row.usage)[Meter::input] == 17);
  CHECK((*row.usage)[Meter::output] == 5);
}

TEST_CASE_TEMPLATE("close: a lost token changes nothing but keeps what was paid", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  const LeasedJob lost = world.lease_only("t1");
  AttemptClose crash = closing(lost, world.now);
  crash.result.outcome = Outcome::unknown;
  crash.result.billed = Billed::maybe;
  crash.next.step = NextStep::retry;
  crash.next.run_at = world.now;
  world.close(crash);
  const LeasedJob holder = world.lease_only("t2");

  const AttemptClose late = answered(lost, world.now + kSecond, "late");
  const CloseOutcome outcome = world.close(late);
  CHECK_FALSE(outcome.held);
  CHECK(outcome.status == JobState::processing);
  auto attempts = world.store().attempts_of(id);
  REQUIRE(attempts.size() == 2);
  CHECK(attempts[0].outcome == Outcome::unknown);
  CHECK(attempts[0].billed == Billed::yes);
  CHECK(attempts[0].usage_state == "ok");
  CHECK(attempts[0].total_ms == 120);
  CHECK_FALSE(attempts[1].outcome.has_value());
  CHECK((*world.job(id).usage)[Meter::input] == 10);
  CHECK_FALSE(world.job(id).result_id.has_value());
  CHECK(world.store().stats(world.now).cache.entries == 0);

  CHECK_FALSE(world.close(late).held);  // told twice, kept once
  CHECK((*world.job(id).usage)[Meter::input] == 10);

  // The holder is not disturbed, and its usage is its own.
  CHECK(world.close(answered(holder, world.now)).held);
  CHECK((*world.job(id).usage)[Meter::input] == 20);
  CHECK(world.store().result_body(*world.job(id).result_id) == "{}");
  world.expect_sound();
}

TEST_CASE_TEMPLATE("close: a wrong token for an open attempt does nothing at all", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  const LeasedJob job = world.lease_only("t1");
  AttemptClose forged = answered(job, world.now);
  forged.token = "other";
  CHECK_FALSE(world.close(forged).held);
  CHECK(world.state(id) == JobState::processing);
  CHECK_FALSE(world.job(id).usage.has_value());
  CHECK_FALSE(world.store().attempts_of(id)[0].outcome.has_value());
}

TEST_CASE_TEMPLATE("deadline: a job past it is never sent", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("one");
  s.deadline = kStart + kSecond;
  const JobId id = world.submit(s).job_id;
  const auto view = world.write([&](Store& st) { return st.admission_view(world.now); });
  world.now = kStart + kSecond;
  SUBCASE("at the lease") {
    const LeaseOutcome outcome = world.lease(view.lanes.at(0).lane.lane_id, "t1");
    CHECK(outcome.kind == Kind::dead);
    CHECK(outcome.job_id == id);
    CHECK_FALSE(outcome.job.has_value());
  }
  SUBCASE("by the sweep") {
    CHECK(world.write([&](Store& st) { return st.expire_deadlines(world.now - 1, 10); }).empty());
    CHECK(world.write([&](Store& st) { return st.expire_deadlines(world.now, 10); }) ==
          std::vector<JobId>{id});
    CHECK(world.write([&](Store& st) { return st.expire_deadlines(world.now, 10); }).empty());
  }
  CHECK(world.state(id) == JobState::dead_lettered);
  CHECK(world.store().attempts_of(id).empty());
  const auto letters = world.store().list_dead_letters({}, {});
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].reason == "deadline");
  CHECK(letters[0].error_class.empty());
  CHECK(letters[0].attempts == 0);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("deadline: one that was moved while the request ran is judged as it is now",
                   Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("one");
  s.deadline = kStart + kSecond;
  const JobId id = world.submit(s).job_id;
  const LeasedJob job = world.lease_only("t1");
  AttemptClose c = failed(job, world.now, kStart + 2 * kSecond);
  c.next.step = NextStep::dead_letter;
  c.next.reason = DeadReason::deadline;
  JobState expected = JobState::retrying;
  SUBCASE("none any more") {
    s.deadline.reset();
    world.submit(s);
  }
  SUBCASE("later than the retry") {
    s.deadline = c.next.run_at + 1;
    world.submit(s);
  }
  SUBCASE("still too early") {
    s.deadline = c.next.run_at;
    world.submit(s);
    expected = JobState::dead_lettered;
  }
  SUBCASE("another reason stays") {
    s.deadline.reset();
    world.submit(s);
    c.next.reason = DeadReason::attempts_exhausted;
    expected = JobState::dead_lettered;
  }
  const CloseOutcome outcome = world.close(c);
  CHECK(outcome.held);
  CHECK(outcome.status == expected);
  const JobRow row = world.job(id);
  CHECK(row.status == expected);
  if (expected == JobState::retrying) {
    CHECK(row.wait == "time");
    CHECK(row.run_at == c.next.run_at);
    CHECK(world.store().list_dead_letters({}, {}).empty());
  } else {
    CHECK(world.store().list_dead_letters({}, {}).size() == 1);
  }
  world.expect_sound();
}

TEST_CASE_TEMPLATE("renew: extends leases and their locks, names the lost ones", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  const LeasedJob job = world.lease_only("t1");
  const UnixMs later = world.now + 600 * kSecond;
  const auto lost = world.write([&](Store& st) {
    return st.renew({{id, "t1"}, {id, "t0"}, {id + 99, "t9"}}, later);
  });
  CHECK(lost == std::vector<std::string>{"t0", "t9"});
  CHECK(world.store().list_locks().at(0).expires_at == later);
  const auto leases = world.write([&](Store& st) { return st.open_leases(0, 10); });
  REQUIRE(leases.size() == 1);
  CHECK(leases[0].lease_until == later);
  CHECK(leases[0].job.token == "t1");
  CHECK(leases[0].job.attempt_id == job.attempt_id);
  CHECK(leases[0].job.started_at == job.started_at);
  CHECK(leases[0].job.body.empty());
}

TEST_CASE_TEMPLATE("recovery: what a dead owner left is found in slices and ended", Place, OnFile,
                   InMemory) {
  World<Place> world;
  std::vector<JobId> ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(world.submit(request("r" + std::to_string(i))).job_id);
  }
  for (int i = 0; i < 5; ++i)
    world.lease_only("t" + std::to_string(i));
  world.submit(request("waits"));

  CHECK(world.write([&](Store& st) { return st.clear_locks(); }) == 5);
  JobId after = 0;
  std::vector<JobId> seen;
  for (;;) {
    const auto slice = world.write([&](Store& st) { return st.open_leases(after, 2); });
    if (slice.empty()) break;
    for (const OpenLease& lease : slice) {
      seen.push_back(lease.job.job_id);
      AttemptClose c = closing(lease.job, world.now);
      c.result.outcome = Outcome::unknown;
      c.next.step = NextStep::retry;
      c.next.run_at = world.now;
      c.next.counters.crashes = lease.job.counters.crashes + 1;
      CHECK(world.close(c).held);
      after = lease.job.job_id;
    }
  }
  CHECK(seen == ids);
  CHECK(world.count(JobState::processing) == 0);
  CHECK(world.count(JobState::retrying) == 5);
  CHECK(world.store().attempts_of(ids[0])[0].billed == Billed::maybe);
  world.expect_sound();
}

}  // namespace
}  // namespace aiq::test
