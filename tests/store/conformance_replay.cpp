// What replay, discard and the groups of dead letters promise, over a file and in memory.

#include <algorithm>

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

using Replay = ReplayOutcome::Kind;
using Discard = Store::DiscardOutcome;

template <class W>
std::int64_t dead(W& world, const NewSubmission& s) {
  const JobId id = world.submit(s).job_id;
  world.close(refused(world.lease_only("t-" + std::to_string(id)), world.now));
  return world.store().list_dead_letters({}, {}).at(0).dlq_id;
}

template <class W>
ReplayOutcome replay(W& world, ReplayRequest r) {
  r.now = world.now;
  r.actor = "uid:7";
  const ReplayOutcome would = world.store().preview_replay(r.dlq_id);
  const ReplayOutcome is = world.write([&](Store& st) { return st.replay(r); });
  CHECK(would.kind == is.kind);
  CHECK(would.job_id == is.job_id);
  CHECK(would.generation == is.generation);
  CHECK(would.duplicate_of == is.duplicate_of);
  return is;
}

TEST_CASE_TEMPLATE("replay: the same job, its next generation, once", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("one");
  s.deadline = kStart + kHour;
  s.priority = 5;
  const std::int64_t letter = dead(world, s);
  const JobId id = world.store().dead_letter(letter)->job_id;
  world.now += 2 * kHour;  // past the deadline that it had
  const ReplayOutcome done = replay(world, {.dlq_id = letter, .note = "again"});
  CHECK(done.kind == Replay::replayed);
  CHECK(done.job_id == id);
  CHECK(done.generation == 2);
  const JobRow job = world.job(id);
  CHECK(job.status == JobState::queued);
  CHECK(job.wait == "ready");
  CHECK(job.generation == 2);
  CHECK(job.attempts == 0);
  CHECK(job.priority == 5);
  CHECK(job.run_at == world.now);
  CHECK_FALSE(job.deadline.has_value());
  CHECK_FALSE(job.started_at.has_value());
  CHECK_FALSE(job.finished_at.has_value());
  CHECK(job.error_class.empty());
  const DeadLetter row = *world.store().dead_letter(letter);
  CHECK(row.state == "replayed");
  CHECK(row.resolved_at == world.now);
  CHECK(row.resolved_by == "uid:7");
  CHECK(row.note == "again");
  CHECK(row.generation == 1);

  CHECK(replay(world, {.dlq_id = letter}).kind == Replay::already_resolved);
  CHECK(replay(world, {.dlq_id = letter + 1}).kind == Replay::not_found);
  CHECK(world.job(id).generation == 2);

  // Its attempts begin at 1 again, and a second failure is a second letter.
  const LeasedJob leased = world.lease_only("g2");
  CHECK(leased.generation == 2);
  CHECK(leased.attempt == 1);
  CHECK(leased.counters.counted == 0);
  world.close(refused(leased, world.now));
  const auto letters = world.store().list_dead_letters({.state = ""}, {});
  REQUIRE(letters.size() == 2);
  CHECK(letters[0].generation == 2);
  CHECK(letters[0].job_id == id);
  CHECK(world.store().attempts_of(id).size() == 2);
  CHECK(world.store().stats(world.now).dlq_open == 1);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("replay: due times and a deadline of its own", Place, OnFile, InMemory) {
  World<Place> world;
  const std::int64_t letter = dead(world, request("one"));
  const UnixMs due = world.now + kHour;
  const ReplayOutcome done =
      replay(world, {.dlq_id = letter, .run_at = due, .deadline = due + kHour});
  JobRow job = world.job(done.job_id);
  CHECK(job.wait == "time");
  CHECK(job.run_at == due);
  CHECK(job.deadline == due + kHour);
  CHECK(world.write([&](Store& st) { return st.promote_due(due - 1, 10); }) == 0);
  CHECK(world.write([&](Store& st) { return st.promote_due(due, 10); }) == 1);
  CHECK(world.write([&](Store& st) { return st.expire_deadlines(due + kHour, 10); }) ==
        std::vector<JobId>{done.job_id});
  CHECK(world.store().list_dead_letters({}, {}).at(0).reason == "deadline");
  world.expect_sound();
}

TEST_CASE_TEMPLATE("replay: a job whose key is live stays where it is", Place, OnFile, InMemory) {
  World<Place> world;
  const std::int64_t letter = dead(world, request("one"));
  NewSubmission same = request("one");
  same.resubmit = true;
  const JobId live = world.submit(same).job_id;
  const ReplayOutcome skipped = replay(world, {.dlq_id = letter});
  CHECK(skipped.kind == Replay::duplicate);
  CHECK(skipped.duplicate_of == live);
  CHECK(skipped.generation == 1);
  CHECK(world.store().dead_letter(letter)->state == "open");
  CHECK(world.state(skipped.job_id) == JobState::dead_lettered);

  // Two letters of one key: the first takes it.
  world.close(refused(world.lease_only("t2"), world.now));
  const std::int64_t other = world.store().list_dead_letters({}, {}).at(0).dlq_id;
  CHECK(replay(world, {.dlq_id = letter}).kind == Replay::replayed);
  CHECK(replay(world, {.dlq_id = other}).kind == Replay::duplicate);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("replay: of two refreshes of an entry one is live", Place, OnFile, InMemory) {
  World<Place> world;
  world.submit(request("hot"));
  world.close(answered(world.lease_only("t1"), world.now));
  world.now += kHour + 1;
  REQUIRE(world.submit(request("hot")).refresh_job.has_value());
  world.close(refused(world.lease_only("t2"), world.now));
  const std::int64_t letter = world.store().list_dead_letters({}, {}).at(0).dlq_id;
  // The failed refresh lets the entry rest for a soft TTL, at most to its hard end.
  NewSubmission again = request("hot");
  again.cache.max_age = 1;  // not answered by it: a job, whose answer renews it
  world.submit(again);
  world.close(answered(world.lease_only("t3"), world.now));
  world.now += kHour + 1;
  const auto refresh = world.submit(request("hot")).refresh_job;
  REQUIRE(refresh.has_value());
  const ReplayOutcome skipped = replay(world, {.dlq_id = letter});
  CHECK(skipped.kind == Replay::duplicate);
  CHECK(skipped.duplicate_of == *refresh);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("discard: final, once", Place, OnFile, InMemory) {
  World<Place> world;
  const std::int64_t letter = dead(world, request("one"));
  const JobId id = world.store().dead_letter(letter)->job_id;
  const auto discard = [&](std::int64_t dlq_id) {
    return world.write([&](Store& st) { return st.discard(dlq_id, "uid:7", "why", world.now); });
  };
  CHECK(discard(letter) == Discard::discarded);
  CHECK(discard(letter) == Discard::already_resolved);
  CHECK(discard(letter + 1) == Discard::not_found);
  CHECK(world.state(id) == JobState::failed);
  CHECK(world.count(JobState::failed) == 1);
  CHECK(world.count(JobState::dead_lettered) == 0);
  CHECK(world.store().dead_letter(letter)->note == "why");
  CHECK(replay(world, {.dlq_id = letter}).kind == Replay::already_resolved);
  // Nothing stands in the way of the same request any more.
  CHECK(world.submit(request("one")).outcome == SubmitReceipt::Outcome::created);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("dead letter groups: open ones by each property", Place, OnFile, InMemory) {
  World<Place> world;
  CHECK(world.store().dead_letter_groups().empty());
  dead(world, request("1", "acme"));
  world.now += kSecond;
  dead(world, request("2", "acme"));
  world.now += kSecond;
  const std::int64_t gone = dead(world, request("3", "bolt"));
  dead(world, request("4", "bolt"));
  world.write([&](Store& st) { return st.discard(gone, "a", "n", world.now); });
  const auto groups = world.store().dead_letter_groups();
  const auto find = [&](const std::string& by, const std::string& name) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const DeadLetterGroup& g) {
      return g.by == by && g.name == name;
    });
    REQUIRE(found != groups.end());
    return *found;
  };
  CHECK(groups.size() == 5);
  CHECK(find("tenant", "acme").count == 2);
  CHECK(find("tenant", "acme").oldest == kStart);
  CHECK(find("tenant", "acme").newest == kStart + kSecond);
  CHECK(find("tenant", "bolt").count == 1);
  CHECK(find("class", "rejected").count == 3);
  CHECK(find("reason", "rejected").count == 3);
  CHECK(find("model", "gpt-4o").oldest == kStart);
}

}  // namespace
}  // namespace aiq::test
