// What cancel and withdraw promise, over a file and in memory.

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

using Cancel = Store::CancelOutcome::Kind;

TEST_CASE_TEMPLATE("cancel: stops work in every live state and nothing after", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId waiting = world.submit(request("waiting")).job_id;
  auto outcome = world.write([&](Store& st) { return st.cancel(waiting, world.now); });
  CHECK(outcome.kind == Cancel::cancelled);
  CHECK(outcome.lost_token.empty());
  CHECK(world.state(waiting) == JobState::cancelled);

  const JobId running = world.submit(request("running")).job_id;
  const LeasedJob job = world.lease_only("t1");
  outcome = world.write([&](Store& st) { return st.cancel(running, world.now); });
  CHECK(outcome.kind == Cancel::cancelled);
  CHECK(outcome.lost_token == "t1");
  CHECK(world.store().list_locks().empty());
  const auto attempts = world.store().attempts_of(running);
  CHECK(attempts.at(0).outcome == Outcome::cancelled);
  CHECK(attempts.at(0).billed == Billed::maybe);
  CHECK_FALSE(attempts.at(0).counts);

  // The answer that comes all the same is kept beside.
  const CloseOutcome late = world.close(answered(job, world.now, "late"));
  CHECK_FALSE(late.held);
  CHECK(late.status == JobState::cancelled);
  CHECK(world.store().attempts_of(running).at(0).billed == Billed::yes);
  CHECK(world.state(running) == JobState::cancelled);

  outcome = world.write([&](Store& st) { return st.cancel(running, world.now); });
  CHECK(outcome.kind == Cancel::already_final);
  CHECK(outcome.status == JobState::cancelled);
  CHECK(world.write([&](Store& st) { return st.cancel(999, world.now); }).kind ==
        Cancel::not_found);
  CHECK(world.count(JobState::cancelled) == 2);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("cancel: a request that was not sent is known later to have cost nothing", Place,
                   OnFile, InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  AttemptClose late = closing(world.lease_only("t1"), world.now);
  world.write([&](Store& st) { return st.cancel(id, world.now); });
  late.result.outcome = Outcome::cancelled;
  late.next.step = NextStep::requeue;
  Billed expected = Billed::no;
  SUBCASE("not sent") {
    late.result.billed = Billed::no;
  }
  SUBCASE("sent") {
    late.result.billed = Billed::maybe;
    expected = Billed::maybe;
  }
  CHECK_FALSE(world.close(late).held);
  const AttemptRow row = world.store().attempts_of(id).at(0);
  CHECK(row.outcome == Outcome::cancelled);
  CHECK(row.billed == expected);
}

TEST_CASE_TEMPLATE("withdraw: the job goes on while somebody wants it", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission low = request("one");
  low.run_at = kStart + kHour;
  low.priority = -1;
  low.deadline = kStart + 5 * kHour;
  NewSubmission high = request("one");
  high.priority = 8;
  const SubmitReceipt a = world.submit(low);
  const SubmitReceipt b = world.submit(high);
  CHECK(world.job(a.job_id).wait == "ready");

  auto outcome = world.write([&](Store& st) { return st.withdraw(b.submission_id, world.now); });
  CHECK(outcome.kind == Cancel::withdrawn);
  CHECK(outcome.job_id == a.job_id);
  JobRow row = world.job(a.job_id);
  CHECK(row.priority == -1);
  CHECK(row.run_at == kStart + kHour);
  CHECK(row.deadline == kStart + 5 * kHour);
  CHECK(row.wait == "time");

  outcome = world.write([&](Store& st) { return st.withdraw(b.submission_id, world.now); });
  CHECK(outcome.kind == Cancel::withdrawn);  // again: nothing more happens
  outcome = world.write([&](Store& st) { return st.withdraw(a.submission_id, world.now); });
  CHECK(outcome.kind == Cancel::cancelled);
  outcome = world.write([&](Store& st) { return st.withdraw(a.submission_id, world.now); });
  CHECK(outcome.kind == Cancel::already_final);
  CHECK(world.write([&](Store& st) { return st.withdraw(999, world.now); }).kind ==
        Cancel::not_found);
  world.expect_sound();
}

}  // namespace
}  // namespace aiq::test
