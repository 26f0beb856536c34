// What taking in batches promises, over a file and in memory.

#include "core/store/batches.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

NewBatch file(const std::string& name, bool atomic = false) {
  return {.tenant = "default",
          .client_key = "",
          .fingerprint = sha256_hex(name),
          .correlation_id = "c-" + name,
          .actor = "uid:1000",
          .atomic = atomic};
}

BatchLine good(std::int64_t line, const std::string& text) {
  return {.line = line,
          .custom_id = "id-" + text,
          .submission = request(text),
          .staged = "staged " + text,
          .code = "",
          .message = ""};
}

BatchLine bad(std::int64_t line) {
  return {.line = line,
          .custom_id = "",
          .submission = std::nullopt,
          .staged = "",
          .code = "invalid_json_line",
          .message = "no JSON"};
}

template <class Place>
struct Batches : World<Place> {
  BatchOpened begin(const NewBatch& batch) {
    return this->write([&](Store& st) { return st.batch_begin(batch, this->now); });
  }
  BatchRow append(std::int64_t id, std::int64_t first, std::int64_t last,
                  std::vector<BatchLine> lines) {
    const BatchSlice slice{id, first, last, std::move(lines)};
    return this->write([&](Store& st) { return st.batch_append(slice, this->now); }).value();
  }
  BatchRow finish(std::int64_t id) {
    return this->write([&](Store& st) { return st.batch_finish(id, this->now); }).value();
  }
  std::int64_t jobs() { return this->count(JobState::queued); }
};

TEST_CASE_TEMPLATE("batches: a slice goes in once, whoever brings it again", Place, OnFile,
                   InMemory) {
  Batches<Place> world;
  const auto made = world.begin(file("f"));
  CHECK(made.kind == BatchOpened::Kind::made);
  const std::int64_t id = made.batch.batch_id;
  BatchRow row = world.append(id, 1, 3, {good(1, "a"), bad(2), good(3, "b")});
  CHECK(row.read_to == 3);
  CHECK(row.created == 2);
  CHECK(row.rejected == 1);

  const auto joined = world.begin(file("f"));
  CHECK(joined.kind == BatchOpened::Kind::joined);
  CHECK(joined.batch.batch_id == id);
  CHECK(world.append(id, 1, 3, {good(1, "a"), bad(2), good(3, "b")}).lines == 3);
  // Half of it is new.
  row = world.append(id, 1, 4, {good(1, "a"), bad(2), good(3, "b"), good(4, "c")});
  CHECK(row.lines == 4);
  CHECK(world.jobs() == 3);
  // A slice that leaves lines out is not taken.
  CHECK(world.append(id, 6, 6, {good(6, "e")}).read_to == 4);

  CHECK(world.finish(id).state == BatchState::loaded);
  CHECK(world.append(id, 5, 5, {good(5, "d")}).lines == 4);
  CHECK(world.begin(file("f")).kind == BatchOpened::Kind::made);
  const auto errors = world.store().batches().errors(id, 0, 10);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].line == 2);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("batches: a custom_id stands once in a batch, equal requests share a job", Place,
                   OnFile, InMemory) {
  Batches<Place> world;
  const std::int64_t id = world.begin(file("f")).batch.batch_id;
  BatchLine twin = good(2, "b");
  twin.custom_id = "id-a";
  BatchLine same = good(3, "a");
  same.custom_id = "another";
  const BatchRow row = world.append(id, 1, 3, {good(1, "a"), twin, same});
  CHECK(row.created == 1);
  CHECK(row.existing == 1);
  CHECK(row.rejected == 1);
  CHECK(world.store().batches().errors(id, 0, 10).at(0).code == "duplicate_custom_id");
  const auto lines = world.store().batches().lines(id, 0, 10);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].job_id == lines[1].job_id);
  CHECK(lines[0].submission_id != lines[1].submission_id);

  // The job is listed once, under the first of its lines.
  const auto jobs = world.store().list_jobs({.batch_id = id}, Page{});
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].custom_id == "id-a");
  // Withdrawing one line leaves the job to the other.
  const auto out =
      world.write([&](Store& st) { return st.withdraw(lines[0].submission_id, world.now); });
  CHECK(out.kind == Store::CancelOutcome::Kind::withdrawn);
  const BatchCounts counts = world.store().batches().count(id, 0, 10);
  CHECK(counts.lines[static_cast<std::size_t>(JobState::cancelled)] == 1);
  CHECK(counts.lines[static_cast<std::size_t>(JobState::queued)] == 1);
  CHECK(counts.next_after == 0);
  CHECK(world.store().batches().count(id, 0, 1).next_after == 1);
  const auto rest = world.write([&](Store& st) {
    return st.withdraw_in(*lines[0].job_id, {.batch_id = id, .correlation_id = ""}, world.now);
  });
  CHECK(rest.kind == Store::CancelOutcome::Kind::cancelled);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("batches: staged lines become jobs together or not at all", Place, OnFile,
                   InMemory) {
  Batches<Place> world;
  const std::int64_t id = world.begin(file("f", true)).batch.batch_id;
  world.append(id, 1, 2, {good(1, "a"), good(2, "b")});
  CHECK(world.jobs() == 0);
  CHECK(world.store().batches().list(Page{}).empty());
  CHECK_FALSE(world.write([](Store& st) { return st.batch_to_load(); }).has_value());
  const BatchRow published = world.finish(id);
  CHECK(published.state == BatchState::loading);
  CHECK(world.write([](Store& st) { return st.batch_to_load(); }) == id);

  BatchRow row = world
                     .write([&](Store& st) {
                       const auto rows = st.stage_rows(*published.stage_id, 0, 10);
                       CHECK(rows.size() == 2);
                       return st.batch_load(id, {good(1, "a")}, world.now);
                     })
                     .value();
  CHECK(row.created == 1);
  row =
      world.write([&](Store& st) { return st.batch_load(id, {good(2, "b")}, world.now); }).value();
  row = world.write([&](Store& st) { return st.batch_load(id, {}, world.now); }).value();
  CHECK(row.state == BatchState::loaded);
  CHECK(world.jobs() == 2);
  world.expect_sound();

  const std::int64_t faulty = world.begin(file("g", true)).batch.batch_id;
  world.append(faulty, 1, 2, {good(1, "x"), bad(2)});
  CHECK(world.finish(faulty).state == BatchState::staging);
  CHECK_FALSE(world.write([&](Store& st) { return st.batch_drop(faulty, 1); }));
  // What is being removed is joined by nobody.
  CHECK(world.begin(file("g", true)).kind == BatchOpened::Kind::made);
  while (!world.write([&](Store& st) { return st.batch_drop(faulty, 1); })) {
  }
  CHECK_FALSE(world.store().batches().find(faulty).has_value());
  while (!world.write([](Store& st) { return st.drop_staging_batches(1); })) {
  }
  CHECK(world.store().batches().list(Page{}).size() == 1);
  CHECK(world.jobs() == 2);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("batches: a key names one file", Place, OnFile, InMemory) {
  Batches<Place> world;
  NewBatch batch = file("f");
  batch.client_key = "K";
  const std::int64_t id = world.begin(batch).batch.batch_id;
  world.finish(id);
  CHECK(world.begin(batch).batch.batch_id == id);
  batch.fingerprint = sha256_hex("g");
  CHECK(world.begin(batch).kind == BatchOpened::Kind::key_conflict);
  batch.tenant = "other";
  CHECK(world.begin(batch).kind == BatchOpened::Kind::made);
  // Without a key nobody joins one that has a key.
  CHECK(world.begin(file("g")).kind == BatchOpened::Kind::made);
}

TEST_CASE_TEMPLATE("batches: results come in order, final ones only, bounded by bytes", Place,
                   OnFile, InMemory) {
  Batches<Place> world;
  const std::int64_t id = world.begin(file("f")).batch.batch_id;
  world.append(id, 1, 3, {good(1, "a"), good(2, "b"), good(3, "c")});
  const LeasedJob one = world.lease_only("t1");
  AttemptClose close = answered(one, world.now, R"({"n":1})");
  close.result.vendor_request_id = "req-1";
  world.close(close);
  const LeasedJob two = world.lease_only("t2");
  AttemptClose no = refused(two, world.now);
  no.result.excerpt = R"({"error":{}})";
  world.close(no);

  const auto found = world.store().batches().results(id, 0, 10, 1'000);
  CHECK(found.open == 1);
  CHECK(found.next_after == 0);
  REQUIRE(found.rows.size() == 2);
  CHECK(found.rows[0].body == R"({"n":1})");
  CHECK(found.rows[0].vendor_request_id == "req-1");
  CHECK(found.rows[1].excerpt == R"({"error":{}})");
  CHECK(found.rows[1].dead_reason == "rejected");
  CHECK(found.rows[1].http_status == 400);
  const auto bounded = world.store().batches().results(id, 0, 10, 1);
  CHECK(bounded.rows.size() == 1);
  CHECK(bounded.next_after == 1);
}

}  // namespace
}  // namespace aiq::test
