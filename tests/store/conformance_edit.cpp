// What edit_dead_letter and letter_payload promise, over a file and in memory.

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

using Edit = Store::EditOutcome;

DeadLetterEdit edit_of(std::int64_t dlq_id, const std::string& text, UnixMs now) {
  const NewSubmission to = request(text);
  DeadLetterEdit edit;
  edit.dlq_id = dlq_id;
  edit.now = now;
  edit.vendor = to.vendor;
  edit.model = to.model;
  edit.body = to.body;
  edit.keys = to.keys;
  edit.cache_owner = to.cache_owner;
  edit.actor = "uid:7";
  return edit;
}

// The letter of a job that the vendor refused.
template <class W>
DeadLetter dead(W& world, const NewSubmission& s) {
  const JobId id = world.submit(s).job_id;
  world.close(refused(world.lease_only("t-" + s.body), world.now));
  const auto letters = world.store().list_dead_letters({}, {});
  REQUIRE_FALSE(letters.empty());
  REQUIRE(letters[0].job_id == id);
  return letters[0];
}

TEST_CASE_TEMPLATE("edit: the new request stands, the old one is kept", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission asked = request("old");
  asked.scope = "today";
  asked.locale = "de";
  asked.safety = "strict";
  const DeadLetter letter = dead(world, asked);
  auto payload = world.store().letter_payload(letter.dlq_id);
  REQUIRE(payload.has_value());
  CHECK(payload->body == asked.body);
  CHECK_FALSE(payload->original.has_value());
  CHECK(payload->scope == "today");
  CHECK(payload->locale == "de");
  CHECK(payload->safety == "strict");

  DeadLetterEdit edit = edit_of(letter.dlq_id, "new", world.now + 5);
  edit.vendor = "anthropic";
  edit.model = "claude";
  edit.endpoint = Endpoint::messages;
  CHECK(world.write([&](Store& st) { return st.edit_dead_letter(edit); }) == Edit::edited);
  payload = world.store().letter_payload(letter.dlq_id);
  CHECK(payload->body == edit.body);
  CHECK(payload->original == asked.body);
  CHECK(payload->vendor == "anthropic");
  CHECK(payload->model == "claude");
  CHECK(payload->endpoint == Endpoint::messages);

  const JobRow job = world.job(letter.job_id);
  CHECK(job.status == JobState::dead_lettered);
  CHECK(job.vendor == "anthropic");
  CHECK(job.model == "claude");
  CHECK(job.tenant == "default");
  CHECK(job.endpoint == Endpoint::messages);
  CHECK(job.idempotency_key == edit.keys.idempotency_key);
  CHECK(job.cache_key == edit.keys.cache_key);
  CHECK(job.generation == 1);
  // The letter still says what failed, and where.
  CHECK(world.store().dead_letter(letter.dlq_id)->model == "gpt-4o");

  // A second edit keeps both; what failed stays the first.
  const DeadLetterEdit again = edit_of(letter.dlq_id, "newer", world.now + 6);
  CHECK(world.write([&](Store& st) { return st.edit_dead_letter(again); }) == Edit::edited);
  payload = world.store().letter_payload(letter.dlq_id);
  CHECK(payload->body == again.body);
  CHECK(payload->original == asked.body);
  CHECK(payload->vendor == "openai");
  CHECK_FALSE(world.store().letter_payload(letter.dlq_id + 1).has_value());
  CHECK(world.write([&](Store& st) { return st.edit_dead_letter(edit_of(99, "x", 1)); }) ==
        Edit::not_found);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("edit: each letter has the request of its own generation and of the next", Place,
                   OnFile, InMemory) {
  World<Place> world;
  const DeadLetter first = dead(world, request("one"));
  const auto replay = [&](std::int64_t dlq_id) {
    return world
        .write([&](Store& st) {
          return st.replay({.dlq_id = dlq_id, .now = world.now, .run_at = world.now, .actor = "a"});
        })
        .kind;
  };
  const auto edit = [&](std::int64_t dlq_id, const std::string& text) {
    return world.write(
        [&](Store& st) { return st.edit_dead_letter(edit_of(dlq_id, text, world.now)); });
  };
  const auto fail_again = [&](const std::string& token, const std::string& text) {
    const LeasedJob job = world.lease_only(token);
    CHECK(job.body == request(text).body);
    world.close(refused(job, world.now));
    return world.store().list_dead_letters({}, {}).at(0).dlq_id;
  };
  // Generation 1 failed as "one"; mended to "two", which fails in generation 2; replayed as it is;
  // generation 3 fails too, and is mended to "three".
  CHECK(edit(first.dlq_id, "two") == Edit::edited);
  CHECK(replay(first.dlq_id) == ReplayOutcome::Kind::replayed);
  CHECK(edit(first.dlq_id, "late") == Edit::already_resolved);
  const std::int64_t second = fail_again("g2", "two");
  CHECK(replay(second) == ReplayOutcome::Kind::replayed);
  const std::int64_t third = fail_again("g3", "two");
  CHECK(edit(third, "three") == Edit::edited);

  const auto expect = [&](std::int64_t dlq_id, const std::string& sent,
                          const std::optional<std::string>& failed_as) {
    const auto payload = world.store().letter_payload(dlq_id);
    REQUIRE(payload.has_value());
    CHECK(payload->body == request(sent).body);
    CHECK(payload->original.has_value() == failed_as.has_value());
    if (failed_as) CHECK(payload->original == request(*failed_as).body);
  };
  expect(first.dlq_id, "two", "one");
  expect(second, "two", std::nullopt);
  expect(third, "three", "two");
  world.expect_sound();
}

TEST_CASE_TEMPLATE("edit: what the job did not want of the cache it does not get", Place, OnFile,
                   InMemory) {
  World<Place> world;
  NewSubmission bypassing = request("bypassing");
  bypassing.cache.read = bypassing.cache.store = bypassing.cache.coalesce = false;
  const DeadLetter letter = dead(world, bypassing);
  CHECK(world.write([&](Store& st) {
    return st.edit_dead_letter(edit_of(letter.dlq_id, "new", world.now));
  }) == Edit::edited);
  CHECK(world.job(letter.job_id).idempotency_key.empty());
  // A submit of the same is a job of its own.
  CHECK(world.submit(request("new")).outcome == SubmitReceipt::Outcome::created);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("edit: an equal submit is answered by neither request", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const DeadLetter letter = dead(world, request("old"));
  CHECK(world.submit(request("old")).rejected_before);
  CHECK(world.write([&](Store& st) {
    return st.edit_dead_letter(edit_of(letter.dlq_id, "new", world.now));
  }) == Edit::edited);
  // What was refused is not what the letter's job asks now, and what it asks was not refused.
  const SubmitReceipt old = world.submit(request("old"));
  CHECK(old.outcome == SubmitReceipt::Outcome::created);
  CHECK(old.job_id != letter.job_id);
  CHECK(world.submit(request("new")).outcome == SubmitReceipt::Outcome::created);
  world.expect_sound();
}

}  // namespace
}  // namespace aiq::test
