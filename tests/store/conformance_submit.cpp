// What submit() promises, over a file and in memory.

#include "core/store/price_book.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

using Kind = SubmitReceipt::Outcome;

TEST_CASE_TEMPLATE("submit: a new request becomes a queued job that can be read", Place, OnFile,
                   InMemory) {
  World<Place> world;
  NewSubmission s = request("one");
  s.labels = {{"team", "a\"b"}, {"run", "7"}};
  s.priority = 3;
  s.client_key = "k1";
  s.deadline = kStart + kHour;
  const SubmitReceipt receipt = world.submit(s);
  CHECK(receipt.outcome == Kind::created);
  CHECK(receipt.status == JobState::queued);
  CHECK(receipt.correlation_id == "c-one");
  CHECK_FALSE(receipt.refresh_job.has_value());

  const JobRow row = world.job(receipt.job_id);
  CHECK(row.kind == JobKind::request);
  CHECK(row.status == JobState::queued);
  CHECK(row.wait == "ready");
  CHECK(row.tenant == "default");
  CHECK(row.vendor == "openai");
  CHECK(row.model == "gpt-4o");
  CHECK(row.labels == s.labels);
  CHECK(row.priority == 3);
  CHECK(row.idempotency_key == s.keys.idempotency_key);
  CHECK(row.cache_key == s.keys.cache_key);
  CHECK(row.client_key == "k1");
  CHECK(row.created_at == kStart);
  CHECK(row.deadline == kStart + kHour);
  CHECK_FALSE(row.usage.has_value());
  CHECK(world.store().request_body(receipt.job_id) == s.body);
  CHECK(world.count(JobState::queued) == 1);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("submit: one that is due later waits for its time", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("later");
  s.run_at = kStart + kHour;
  const JobId id = world.submit(s).job_id;
  CHECK(world.job(id).wait == "time");
  auto view = world.write([&](Store& st) { return st.admission_view(world.now); });
  CHECK(view.lanes.empty());
  CHECK(view.next_due == kStart + kHour);

  CHECK(world.write([&](Store& st) { return st.promote_due(kStart + kHour - 1, 10); }) == 0);
  CHECK(world.write([&](Store& st) { return st.promote_due(kStart + kHour, 10); }) == 1);
  CHECK(world.job(id).wait == "ready");
  view = world.write([&](Store& st) { return st.admission_view(kStart + kHour); });
  REQUIRE(view.lanes.size() == 1);
  CHECK(view.lanes[0].job_id == id);
  CHECK_FALSE(view.next_due.has_value());
}

TEST_CASE_TEMPLATE("submit: a client key names one submission for ever", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("one");
  s.client_key = "k";
  const SubmitReceipt first = world.submit(s);
  const SubmitReceipt again = world.submit(s);
  CHECK(again.outcome == Kind::existing);
  CHECK(again.job_id == first.job_id);
  CHECK(again.submission_id == first.submission_id);
  CHECK(again.correlation_id == "c-one");

  NewSubmission other = request("two");
  other.client_key = "k";
  const SubmitReceipt conflict = world.submit(other);
  CHECK(conflict.outcome == Kind::key_conflict);
  CHECK(world.store().list_jobs({}, {}).size() == 1);

  // The same key of another tenant is another key.
  NewSubmission foreign = request("two", "acme");
  foreign.client_key = "k";
  CHECK(world.submit(foreign).outcome == Kind::created);

  // Whatever became of the job.
  world.write([&](Store& st) { return st.cancel(first.job_id, world.now); });
  const SubmitReceipt late = world.submit(s);
  CHECK(late.outcome == Kind::existing);
  CHECK(late.status == JobState::cancelled);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("submit: equal live work is one job with the wishes of all", Place, OnFile,
                   InMemory) {
  World<Place> world;
  NewSubmission a = request("one");
  a.run_at = kStart + kHour;
  a.deadline = kStart + 2 * kHour;
  NewSubmission b = a;
  b.priority = 5;
  b.run_at = kStart + kHour / 2;
  b.deadline = kStart + 3 * kHour;
  b.correlation_id = "c-other";
  const SubmitReceipt first = world.submit(a);
  const SubmitReceipt second = world.submit(b);
  CHECK(second.outcome == Kind::existing);
  CHECK(second.job_id == first.job_id);
  CHECK(second.submission_id != first.submission_id);
  CHECK(second.correlation_id == "c-one");
  JobRow row = world.job(first.job_id);
  CHECK(row.priority == 5);
  CHECK(row.run_at == kStart + kHour / 2);
  CHECK(row.deadline == kStart + 3 * kHour);
  CHECK(row.wait == "time");

  NewSubmission c = request("one");
  c.priority = -5;
  CHECK(world.submit(c).outcome == Kind::existing);
  row = world.job(first.job_id);
  CHECK(row.priority == 5);
  CHECK(row.run_at == kStart);
  CHECK_FALSE(row.deadline.has_value());
  CHECK(row.wait == "ready");
  CHECK(world.count(JobState::queued) == 1);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("submit: a wish does not shorten the wait of a retry", Place, OnFile, InMemory) {
  World<Place> world;
  const JobId id = world.submit(request("one")).job_id;
  const LeasedJob job = world.lease_only("t1");
  world.close(failed(job, world.now, world.now + 30 * kSecond));
  NewSubmission again = request("one");
  again.priority = 9;
  CHECK(world.submit(again).outcome == Kind::existing);
  CHECK(world.job(id).run_at == world.now + 30 * kSecond);
  CHECK(world.job(id).priority == 9);
  CHECK(world.job(id).wait == "time");
}

TEST_CASE_TEMPLATE("submit: bypassing work is never shared", Place, OnFile, InMemory) {
  World<Place> world;
  NewSubmission s = request("one");
  s.cache.read = s.cache.store = s.cache.coalesce = false;
  const SubmitReceipt a = world.submit(s);
  const SubmitReceipt b = world.submit(s);
  CHECK(a.outcome == Kind::created);
  CHECK(b.outcome == Kind::created);
  CHECK(a.job_id != b.job_id);
  CHECK(world.job(a.job_id).idempotency_key.empty());
  CHECK(world.store().stats(world.now).cache.misses == 0);
}

TEST_CASE_TEMPLATE("submit: a hit avoids what its answer would cost by the prices of its time",
                   Place, OnFile, InMemory) {
  World<Place> world;
  const auto set_price = [&](const std::string& meter, Pico unit_pico) {
    PriceRow row;
    row.vendor = "in the book";
    row.model = request("one").model;
    row.meter = meter;
    row.currency = "USD";
    row.unit_pico = unit_pico;
    row.effective_from = world.now;
    row.origin = "set";
    row.actor = "uid:0";
    row.created_at = world.now;
    world.write([&](Store& store) { REQUIRE(store.prices().add(row).has_value()); });
  };
  const auto avoided = [&] { return world.store().stats(world.now).cache.avoided_cost; };
  (void)world.submit(request("one"));
  AttemptClose close = answered(world.lease_only("t1"), world.now);  // input 10, output 5
  close.price_vendor = "in the book";
  world.close(close);

  (void)world.submit(request("one"));
  CHECK(avoided().empty());
  set_price("input", 2'500'000);
  (void)world.submit(request("one"));
  CHECK(avoided().empty());  // a part of it has no price
  set_price("output", 180'000'000'000);
  (void)world.submit(request("one"));
  CHECK(avoided() == std::map<std::string, Int128>{{"USD", 900'025'000'000}});
  (void)world.submit(request("one"));
  CHECK(avoided() == std::map<std::string, Int128>{{"USD", 1'800'050'000'000}});
}

TEST_CASE_TEMPLATE("submit: a fresh entry answers at once and is counted", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId paid = world.submit(request("one")).job_id;
  world.close(answered(world.lease_only("t1"), world.now, "the answer"));
  world.now += 60 * kSecond;

  NewSubmission s = request("one");
  s.client_key = "k";
  const SubmitReceipt receipt = world.submit(s);
  CHECK(receipt.outcome == Kind::cached);
  CHECK(receipt.status == JobState::completed);
  CHECK_FALSE(receipt.stale);
  CHECK(receipt.job_id != paid);
  const JobRow row = world.job(receipt.job_id);
  CHECK(row.result_source == "cache");
  CHECK(row.result_id == world.job(paid).result_id);
  CHECK(row.finished_at == world.now);
  CHECK_FALSE(row.usage.has_value());
  CHECK(world.store().result_body(*row.result_id) == "the answer");
  CHECK(world.store().attempts_of(receipt.job_id).empty());

  const SubmitReceipt again = world.submit(s);
  CHECK(again.outcome == Kind::existing);
  CHECK(again.job_id == receipt.job_id);

  const CacheStats stats = world.store().stats(world.now).cache;
  CHECK(stats.entries == 1);
  CHECK(stats.bytes == 10);
  CHECK(stats.hits == 1);
  CHECK(stats.misses == 1);
  CHECK(stats.stale_hits == 0);
  CHECK(stats.avoided_tokens == 15);
  const auto entry = world.store().cache_entry(request("one").keys.cache_key);
  REQUIRE(entry.has_value());
  CHECK(entry->hits == 1);
  CHECK(entry->last_used_at == world.now);
  CHECK(entry->job_id == paid);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("submit: cache controls decide what an entry may answer", Place, OnFile,
                   InMemory) {
  World<Place> world;
  NewSubmission only = request("one");
  only.cache.only_if_cached = true;
  CHECK(world.submit(only).outcome == Kind::not_cached);
  CHECK(world.store().list_jobs({}, {}).empty());

  world.submit(request("one"));
  CHECK(world.submit(only).outcome == Kind::not_cached);
  world.close(answered(world.lease_only("t1"), world.now));
  world.now += 60 * kSecond;
  CHECK(world.submit(only).outcome == Kind::cached);

  NewSubmission young = request("one");
  young.cache.max_age = 59 * kSecond;
  CHECK(world.submit(young).outcome == Kind::created);
  young.cache.max_age = 60 * kSecond;
  CHECK(world.submit(young).outcome == Kind::cached);

  NewSubmission no_cache = request("one");
  no_cache.cache.read = false;
  CHECK(world.submit(no_cache).outcome == Kind::existing);  // the live job of `young`
  world.expect_sound();
}

TEST_CASE_TEMPLATE("submit: a stale entry answers and starts one refresh", Place, OnFile,
                   InMemory) {
  World<Place> world;
  world.submit(request("one"));
  world.close(answered(world.lease_only("t1"), world.now, "old"));
  world.now += kHour;  // its soft TTL

  NewSubmission no_store = request("one");
  no_store.cache.store = false;
  const SubmitReceipt quiet = world.submit(no_store);
  CHECK(quiet.stale);
  CHECK_FALSE(quiet.refresh_job.has_value());
  NewSubmission no_life = request("one");
  no_life.soft_ttl_ms = no_life.hard_ttl_ms = 0;
  CHECK_FALSE(world.submit(no_life).refresh_job.has_value());

  const SubmitReceipt first = world.submit(request("one"));
  CHECK(first.outcome == Kind::cached);
  CHECK(first.stale);
  CHECK(world.job(first.job_id).stale);
  REQUIRE(first.refresh_job.has_value());
  const JobRow refresh = world.job(*first.refresh_job);
  CHECK(refresh.kind == JobKind::refresh);
  CHECK(refresh.status == JobState::queued);
  CHECK(refresh.priority == kPriorityMin);
  CHECK(refresh.idempotency_key.empty());
  CHECK_FALSE(world.submit(request("one")).refresh_job.has_value());
  CHECK(world.store().stats(world.now).cache.stale_hits == 4);

  const LeasedJob job = world.lease_only("t2");
  CHECK(job.job_id == *first.refresh_job);
  CHECK(job.kind == JobKind::refresh);
  CHECK(job.body == request("one").body);
  world.close(answered(job, world.now, "new"));
  const SubmitReceipt renewed = world.submit(request("one"));
  CHECK_FALSE(renewed.stale);
  CHECK(world.store().result_body(*world.job(renewed.job_id).result_id) == "new");
  CHECK(world.store().stats(world.now).cache.entries == 1);

  world.now += 2 * kHour;  // its hard TTL
  CHECK(world.submit(request("one")).outcome == Kind::created);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("submit: a refresh that failed for good is not tried with every stale answer",
                   Place, OnFile, InMemory) {
  World<Place> world;
  world.submit(request("one"));
  world.close(answered(world.lease_only("t1"), world.now, "old"));
  world.now += kHour;  // its soft TTL
  NewSubmission s = request("one");
  s.soft_ttl_ms = 60 * kSecond;
  REQUIRE(world.submit(s).refresh_job.has_value());
  world.now += kSecond;
  world.close(refused(world.lease_only("t2"), world.now));
  CHECK(world.store().cache_entry(s.keys.cache_key)->soft_until == world.now + 60 * kSecond);

  world.now += 59 * kSecond;
  SubmitReceipt receipt = world.submit(s);
  CHECK(receipt.outcome == Kind::cached);
  CHECK_FALSE(receipt.stale);
  CHECK_FALSE(receipt.refresh_job.has_value());
  world.now += kSecond;
  receipt = world.submit(s);
  CHECK(receipt.stale);
  CHECK(receipt.refresh_job.has_value());

  // Never past the end of the entry.
  world.now = kStart + 2 * kHour - kSecond;
  world.close(refused(world.lease_only("t3"), world.now));
  CHECK(world.store().cache_entry(s.keys.cache_key)->soft_until == kStart + 2 * kHour);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("submit: what the vendor refused is not sent again unless asked", Place, OnFile,
                   InMemory) {
  World<Place> world;
  NewSubmission s = request("bad");
  s.client_key = "k";
  const JobId id = world.submit(s).job_id;
  CHECK(world.close(refused(world.lease_only("t1"), world.now)).status == JobState::dead_lettered);

  const SubmitReceipt again = world.submit(request("bad"));
  CHECK(again.outcome == Kind::existing);
  CHECK(again.job_id == id);
  CHECK(again.status == JobState::dead_lettered);
  CHECK(again.rejected_before);
  CHECK(world.submit(s).rejected_before);  // by its client key

  NewSubmission anyway = request("bad");
  anyway.resubmit = true;
  const SubmitReceipt fresh = world.submit(anyway);
  CHECK(fresh.outcome == Kind::created);
  CHECK(fresh.job_id != id);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("preview: says what submit would do and writes nothing", Place, OnFile,
                   InMemory) {
  World<Place> world;
  Store& store = world.store();
  NewSubmission s = request("one");
  s.client_key = "k";
  CHECK(store.preview(s, world.now).outcome == Kind::created);
  CHECK(store.list_jobs({}, {}).empty());
  const JobId id = world.submit(s).job_id;
  CHECK(store.preview(s, world.now).outcome == Kind::existing);
  CHECK(store.preview(s, world.now).job_id == id);
  CHECK(store.preview(request("one"), world.now).job_id == id);
  NewSubmission other = request("two");
  other.client_key = "k";
  CHECK(store.preview(other, world.now).outcome == Kind::key_conflict);
  other.client_key.clear();
  other.cache.only_if_cached = true;
  CHECK(store.preview(other, world.now).outcome == Kind::not_cached);
  world.close(answered(world.lease_only("t1"), world.now));
  CHECK(store.preview(request("one"), world.now).outcome == Kind::cached);
  CHECK_FALSE(store.preview(request("one"), world.now).stale);
  CHECK(store.preview(request("one"), world.now + kHour).stale);
  CHECK(store.stats(world.now).cache.hits == 0);
}

}  // namespace
}  // namespace aiq::test
