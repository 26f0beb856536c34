// Pauses, holds, vendors, locks, the cache's ends, stages and transactions, over a file and in
// memory.

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

Pause pause_of(const std::string& vendor, const std::string& model, const std::string& tenant) {
  Pause pause;
  pause.vendor = vendor;
  pause.model = model;
  pause.tenant = tenant;
  pause.cause = "operator";
  pause.reason = "because";
  pause.actor = "uid:0";
  pause.created_at = kStart;
  return pause;
}

template <class Place>
AdmissionView view_of(World<Place>& world) {
  return world.write([&](Store& st) { return st.admission_view(world.now); });
}

template <class Place>
bool is_proven(World<Place>& world, const std::string& vendor) {
  for (const VendorRow& row : view_of(world).vendors) {
    if (row.vendor == vendor) return row.proven;
  }
  FAIL("no vendor " << vendor);
  return false;
}

TEST_CASE_TEMPLATE("pauses: hold exactly their scope until they end", Place, OnFile, InMemory) {
  World<Place> world;
  world.write([&](Store& st) {
    st.set_pause(pause_of("openai", "", ""));
    st.set_pause(pause_of("openai", "gpt-4o", ""));
    st.set_pause(pause_of("", "", "acme"));
    Pause timed = pause_of("", "", "");
    timed.until = kStart + kSecond;
    st.set_pause(timed);
    Pause replaced = pause_of("", "", "acme");
    replaced.reason = "again";
    st.set_pause(replaced);
  });
  CHECK(view_of(world).pauses.size() == 4);
  CHECK(world.store().list_pauses().size() == 4);
  world.now += kSecond;
  CHECK(view_of(world).pauses.size() == 3);
  CHECK(world.write([&](Store& st) { return st.clear_expired_pauses(world.now); }) == 1);
  CHECK(world.write([&](Store& st) { return st.clear_pause("", "", ""); }) == 0);
  CHECK(world.write([&](Store& st) { return st.clear_pause("openai", "", ""); }) == 2);
  const auto left = world.store().list_pauses();
  REQUIRE(left.size() == 1);
  CHECK(left[0].tenant == "acme");
  CHECK(left[0].reason == "again");
  CHECK(left[0].actor == "uid:0");
}

TEST_CASE_TEMPLATE("vendors: what was sent before the doubt does not end it", Place, OnFile,
                   InMemory) {
  World<Place> world;
  world.write([&](Store& st) { st.register_vendor("openai", "s1", true); });
  world.submit(request("one"));
  AttemptClose early = answered(world.lease_only("t1"), world.now);
  early.proves_vendor = true;
  world.write([&](Store& st) {
    st.set_pause(pause_of("openai", "", ""));
    st.clear_pause("openai", "", "");
  });
  CHECK(view_of(world).oldest_start.empty());  // nor by the time it runs
  world.now += kSecond;
  world.submit(request("two"));
  AttemptClose late = answered(world.lease_only("t2"), world.now);
  late.proves_vendor = true;
  CHECK(view_of(world).oldest_start.at("openai") == world.now);
  world.close(early);
  CHECK_FALSE(is_proven(world, "openai"));
  world.close(late);
  CHECK(is_proven(world, "openai"));
}

TEST_CASE_TEMPLATE("clock: set back, holds and retries wait no longer, dates stand", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const JobId retried = world.submit(request("retried")).job_id;
  AttemptClose c = failed(world.lease_only("t1"), world.now, kStart + 5 * kSecond);
  c.next.hold_until = kStart + 4 * kSecond;
  world.close(c);
  NewSubmission dated = request("dated");
  dated.run_at = kStart + 2 * kSecond;
  const JobId kept = world.submit(dated).job_id;

  world.now = kStart + kSecond - kHour;
  world.write([&](Store& st) { st.set_back_waits(kHour, world.now); });
  CHECK(world.job(retried).run_at == kStart + 5 * kSecond - kHour);
  CHECK(world.job(kept).run_at == kStart + 2 * kSecond);
  CHECK(view_of(world).holds.at(0).until == kStart + 4 * kSecond - kHour);
  world.now += 4 * kSecond;
  CHECK(world.write([&](Store& st) { return st.promote_due(world.now, 10); }) == 1);
  CHECK(world.lease_only("t2").job_id == retried);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("vendors: proven by an answer, doubted after start, resume and a new section",
                   Place, OnFile, InMemory) {
  World<Place> world;
  const auto enrol = [&](const char* section, bool restart) {
    world.write([&](Store& st) { st.register_vendor("openai", section, restart); });
  };
  enrol("s1", true);
  CHECK_FALSE(is_proven(world, "openai"));
  world.submit(request("one"));
  AttemptClose c = answered(world.lease_only("t1"), world.now);
  c.proves_vendor = true;
  world.close(c);
  CHECK(is_proven(world, "openai"));
  enrol("s1", false);
  CHECK(is_proven(world, "openai"));
  enrol("s2", false);
  CHECK_FALSE(is_proven(world, "openai"));
  world.write([&](Store& st) { st.mark_proven("openai"); });
  enrol("s2", true);
  CHECK_FALSE(is_proven(world, "openai"));
  world.write([&](Store& st) { st.mark_proven("openai"); });
  const auto resume = [&] {
    return world.write([&](Store& st) { return st.clear_pause("openai", "", ""); });
  };
  CHECK(resume() == 0);
  CHECK(is_proven(world, "openai"));  // it was not paused
  world.write([&](Store& st) { st.set_pause(pause_of("openai", "gpt-4o", "")); });
  CHECK(resume() == 1);
  CHECK_FALSE(is_proven(world, "openai"));

  world.write([&](Store& st) { st.note_rate("openai", R"({"limit":5})", kStart + 9); });
  const VendorRow row = view_of(world).vendors.at(0);
  CHECK(row.rate == R"({"limit":5})");
  CHECK(row.last_seen == kStart + 9);
  CHECK(row.section == "s2");
}

AttemptClose locked_out(const LeasedJob& job, UnixMs now, bool whole_vendor) {
  AttemptClose c = closing(job, now);
  c.result.outcome = Outcome::auth;
  c.result.billed = Billed::no;
  c.result.http_status = whole_vendor ? 401 : 403;
  c.result.spent_vendor = whole_vendor;
  c.result.spent_model = !whole_vendor;
  c.pause_reason = "the key was refused";
  c.next.step = NextStep::requeue;
  c.next.run_at = now;
  return c;
}

TEST_CASE_TEMPLATE("vendors: a refused key pauses them, a new one lifts it", Place, OnFile,
                   InMemory) {
  World<Place> world;
  world.write([&](Store& st) { st.register_vendor("openai", "s1", true); });
  world.submit(request("one"));
  world.close(locked_out(world.lease_only("t1"), world.now, true));
  auto pauses = view_of(world).pauses;
  REQUIRE(pauses.size() == 1);
  CHECK(pauses[0].vendor == "openai");
  CHECK(pauses[0].model.empty());
  CHECK(pauses[0].cause == "auth");
  CHECK(pauses[0].reason == "the key was refused");
  CHECK_FALSE(pauses[0].until.has_value());

  world.close(locked_out(world.lease_only("t2"), world.now, false));
  pauses = view_of(world).pauses;
  REQUIRE(pauses.size() == 2);
  CHECK(pauses[1].model == "gpt-4o");

  world.write([&](Store& st) { st.register_vendor("openai", "s1", true); });
  CHECK(view_of(world).pauses.size() == 2);
  world.write([&](Store& st) { st.register_vendor("openai", "s2", false); });
  CHECK(view_of(world).pauses.empty());
}

TEST_CASE_TEMPLATE("vendors: spent quota pauses until a person resumes", Place, OnFile, InMemory) {
  World<Place> world;
  world.write([&](Store& st) { st.register_vendor("openai", "s1", true); });
  world.submit(request("one"));
  AttemptClose c = locked_out(world.lease_only("t1"), world.now, true);
  c.result.outcome = Outcome::vendor_quota;
  world.close(c);
  CHECK(view_of(world).pauses.at(0).cause == "vendor_quota");
  world.write([&](Store& st) { st.register_vendor("openai", "s2", false); });
  CHECK(view_of(world).pauses.size() == 1);
}

TEST_CASE_TEMPLATE("vendors: an operator's pause is not replaced by the vendor's", Place, OnFile,
                   InMemory) {
  World<Place> world;
  world.write([&](Store& st) { st.register_vendor("openai", "s1", true); });
  world.submit(request("one"));
  const LeasedJob job = world.lease_only("t1");
  world.write([&](Store& st) { st.set_pause(pause_of("openai", "", "")); });
  world.close(locked_out(job, world.now, true));
  CHECK(view_of(world).pauses.at(0).cause == "operator");
  world.write([&](Store& st) { st.register_vendor("openai", "s2", false); });
  CHECK(view_of(world).pauses.size() == 1);
}

TEST_CASE_TEMPLATE("vendors: a pause with an end does not end one that waits for a person", Place,
                   OnFile, InMemory) {
  World<Place> world;
  world.write([&](Store& st) { st.register_vendor("openai", "s1", true); });
  world.submit(request("one"));
  const LeasedJob job = world.lease_only("t1");
  Pause timed = pause_of("openai", "", "");
  timed.until = kStart + kHour;
  std::string reason = "because; the key was refused";
  SUBCASE("set before") {
    world.write([&](Store& st) { st.set_pause(timed); });
    world.close(locked_out(job, world.now, true));
  }
  SUBCASE("set after") {
    world.close(locked_out(job, world.now, true));
    world.write([&](Store& st) { st.set_pause(timed); });
  }
  SUBCASE("over before") {
    world.write([&](Store& st) { st.set_pause(timed); });
    world.now = kStart + kHour;
    world.close(locked_out(job, world.now, true));
    reason = "the key was refused";
  }
  const auto pauses = view_of(world).pauses;
  REQUIRE(pauses.size() == 1);
  CHECK_FALSE(pauses[0].until.has_value());
  CHECK(pauses[0].reason == reason);
  world.now = kStart + 10 * kHour;
  CHECK(world.write([&](Store& st) { return st.clear_expired_pauses(world.now); }) == 0);
  CHECK(view_of(world).pauses.size() == 1);
}

TEST_CASE_TEMPLATE("vendors: every answer tells when they were last seen", Place, OnFile,
                   InMemory) {
  World<Place> world;
  world.write([&](Store& st) { st.register_vendor("openai", "s1", true); });
  world.submit(request("one"));
  const auto seen = [&] { return view_of(world).vendors.at(0).last_seen; };
  AttemptClose c = failed(world.lease_only("t1"), world.now, world.now);
  c.result.http_status.reset();
  world.close(c);
  CHECK_FALSE(seen().has_value());
  world.now += 2 * kSecond;
  world.close(failed(world.lease_only("t2"), world.now, world.now));
  CHECK(seen() == world.now);
  world.now += 2 * kSecond;
  world.close(answered(world.lease_only("t3"), world.now));
  CHECK(seen() == world.now);
}

TEST_CASE_TEMPLATE("holds: the newest answer that asks for a wait decides", Place, OnFile,
                   InMemory) {
  World<Place> world;
  world.submit(request("one"));
  int n = 0;
  const auto hold = [&](DurationMs wait, bool asked, UnixMs set_at) {
    AttemptClose c = failed(world.lease_only("t" + std::to_string(++n)), set_at, set_at);
    c.next.hold_until = world.now + wait;
    if (asked) c.result.retry_after_ms = wait;
    world.close(c);
    return view_of(world).holds.at(0).until - world.now;
  };
  CHECK(hold(100 * kSecond, true, world.now) == 100 * kSecond);
  CHECK(hold(kSecond, false, world.now) == 100 * kSecond);  // our default does not shorten it
  CHECK(hold(200 * kSecond, false, world.now) == 200 * kSecond);
  CHECK(hold(300 * kSecond, true, world.now - 1) == 200 * kSecond);  // an older answer
  CHECK(hold(2 * kSecond, true, world.now) == 2 * kSecond);
  const auto holds = view_of(world).holds;
  REQUIRE(holds.size() == 1);
  CHECK(holds[0].vendor == "openai");
  CHECK(holds[0].model == "gpt-4o");
  CHECK(holds[0].until == world.now + 2 * kSecond);
  // Over: for a while starts are spread, then nothing is left of it.
  world.now += 2 * kSecond;
  CHECK(view_of(world).holds.size() == 1);
  CHECK(world.store().stats(world.now).holds.empty());
  world.now += spread_ms(2 * kSecond);
  CHECK(view_of(world).holds.empty());
}

TEST_CASE_TEMPLATE("holds: those who waited are counted once it is over, and the count is kept",
                   Place, OnFile, InMemory) {
  World<Place> world;
  for (const char* text : {"one", "two", "three"})
    world.submit(request(text));
  AttemptClose c = failed(world.lease_only("t1"), world.now, world.now + 4 * kSecond);
  c.next.hold_until = world.now + 3 * kSecond;
  c.result.retry_after_ms = 3 * kSecond;
  world.close(c);
  CHECK_FALSE(view_of(world).holds.at(0).waiting.has_value());
  world.now += 3 * kSecond;
  RateHold hold = view_of(world).holds.at(0);
  CHECK(hold.waiting == 3);  // two are ready, one is due while they start
  hold.next_start = static_cast<double>(world.now) + 0.5;
  world.write([&](Store& st) { st.save_spread(hold); });
  world.submit(request("four"));
  CHECK(view_of(world).holds.at(0).waiting == 3);
  CHECK(view_of(world).holds.at(0).next_start == static_cast<double>(world.now) + 0.5);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("limits: what was taken and taught comes back as it was stored", Place, OnFile,
                   InMemory) {
  World<Place> world;
  world.submit(request("one"));
  CHECK_FALSE(world.store().rate("vendor", "openai", "tokens").has_value());
  RateRow rate{"vendor", "openai", "tokens", -2.5, kStart, "5:7 6:8", 60'000, kStart + 1};
  world.write([&](Store& st) {
    st.save_rate(rate);
    st.save_pace({"openai", "gpt-4o", 0.25, kStart});
    st.save_breaker({"openai", "gpt-4o", kStart + 9, 2, 1, "5:0:7"});
    st.save_share({"default", kStart, 3.5});
    st.save_share({"", kStart, 2.5});
    st.save_share({"other", kStart, 9});
  });
  const AdmissionView view = view_of(world);
  REQUIRE(view.rates.size() == 1);
  CHECK(view.rates[0].level == -2.5);
  CHECK(view.rates[0].recent == "5:7 6:8");
  CHECK(view.rates[0].reported == 60'000);
  CHECK(view.rates[0].reported_at == kStart + 1);
  CHECK(view.paces.at(0).share == 0.25);
  CHECK(view.breakers.at(0).open_until == kStart + 9);
  CHECK(view.breakers.at(0).streak == 2);
  CHECK(view.breakers.at(0).recent == "5:0:7");
  REQUIRE(view.shares.size() == 2);  // the clock, and the tenants that have a job ready
  CHECK(view.shares[0].tenant.empty());
  CHECK(view.shares[1].tenant == "default");
  CHECK(view.shares[1].finish == 3.5);
  rate.recent.clear();
  rate.reported.reset();
  world.write([&](Store& st) {
    st.save_rate(rate);
    st.drop_breaker("openai", "gpt-4o");
  });
  CHECK(world.store().rate("vendor", "openai", "tokens")->recent.empty());
  CHECK_FALSE(world.store().rate("vendor", "openai", "tokens")->reported.has_value());
  CHECK_FALSE(world.store().breaker("openai", "gpt-4o").has_value());
  CHECK(world.store().pace("openai", "gpt-4o")->at == kStart);

  // The clock stands at 2.5: who has had more than that is not forgotten.
  world.write([&](Store& st) {
    st.save_share({"default", kStart, 2});
    st.forget_idle(kStart + 24 * kHour);
  });
  CHECK(view_of(world).shares.size() == 2);
  CHECK(view_of(world).rates.empty());
  world.write([&](Store& st) {
    st.save_rate({"tenant", "default", "requests", 1, kStart + 23 * kHour, "", {}, {}});
    st.forget_idle(kStart + 24 * kHour);
  });
  CHECK(view_of(world).rates.size() == 1);
  world.write([&](Store& st) { st.forget_idle(kStart + 24 * kHour + 1); });
  CHECK(view_of(world).shares.size() == 1);
  CHECK(view_of(world).rates.empty());
}

TEST_CASE_TEMPLATE("limits: the shares of many tenants are read as those of few", Place, OnFile,
                   InMemory) {
  World<Place> world;
  for (int i = 0; i < 60; ++i) {
    const std::string tenant = "t" + std::to_string(i);
    world.submit(request("one", tenant));
    world.write([&](Store& st) { st.save_share({tenant, kStart + i, i / 2.0}); });
  }
  world.write([&](Store& st) { st.save_share({"idle", kStart, 7}); });
  const auto shares = view_of(world).shares;
  REQUIRE(shares.size() == 60);
  for (const ShareRow& row : shares)
    CHECK(row.finish == static_cast<double>(row.served_at - kStart) / 2.0);
}

TEST_CASE_TEMPLATE("locks: one holder until release, expiry or a break", Place, OnFile, InMemory) {
  World<Place> world;
  const auto acquire = [&](const char* owner, UnixMs now) {
    return world.write(
        [&](Store& st) { return st.acquire_lock("work", owner, now, now + kSecond); });
  };
  CHECK(acquire("a", kStart));
  CHECK_FALSE(acquire("b", kStart));
  CHECK(acquire("a", kStart + 500));
  CHECK_FALSE(acquire("b", kStart + 1'200));
  CHECK(acquire("b", kStart + 1'500));
  CHECK_FALSE(world.write([&](Store& st) { return st.release_lock("work", "a"); }));
  CHECK(world.write([&](Store& st) { return st.release_lock("work", "b"); }));
  CHECK_FALSE(world.write([&](Store& st) { return st.break_lock("work"); }));
  CHECK(acquire("c", kStart));
  CHECK(world.store().stats(kStart).locks == 1);
  CHECK(world.write([&](Store& st) { return st.break_lock("work"); }));
  CHECK(world.store().list_locks().empty());
}

TEST_CASE_TEMPLATE("locks: a live lease keeps the lock of its key past the stored time", Place,
                   OnFile, InMemory) {
  World<Place> world;
  std::vector<JobId> ids;
  for (const char* tenant : {"a", "b"}) {
    NewSubmission s = request("same", tenant);
    s.keys.cache_key = sha256_hex("shared");
    ids.push_back(world.submit(s).job_id);
  }
  auto view = view_of(world);
  REQUIRE(view.lanes.size() == 2);
  const LeaseOutcome leader = world.lease(view.lanes[0].lane.lane_id, "t1");
  REQUIRE(leader.kind == LeaseOutcome::Kind::leased);
  world.now += kHour;
  CHECK(world.lease(view.lanes[1].lane.lane_id, "t2").kind == LeaseOutcome::Kind::waits);

  CHECK(world.write([&](Store& st) { return st.break_lock("cache:" + sha256_hex("shared")); }));
  CHECK(world.job(ids[1]).wait == "ready");
  CHECK(world.lease(view.lanes[1].lane.lane_id, "t2").kind == LeaseOutcome::Kind::leased);
  // The broken one's end does not free the lock of the new leader.
  world.close(failed(*leader.job, world.now, world.now));
  CHECK(world.store().list_locks().at(0).owner == "t2");
  world.expect_sound();
}

template <class Place>
void fill_cache(World<Place>& world, int n) {
  for (int i = 0; i < n; ++i) {
    NewSubmission s = request("e" + std::to_string(i), i % 2 == 0 ? "even" : "odd");
    if (i == 0) s.labels = {{"team", "x"}};
    world.submit(s);
    world.close(answered(world.lease_only("t" + std::to_string(i)), world.now, "0123456789"));
    world.now += kSecond;
  }
}

TEST_CASE_TEMPLATE("cache: invalidates by every filter and only by a filter", Place, OnFile,
                   InMemory) {
  World<Place> world;
  fill_cache(world, 6);
  const auto remove = [&](const CacheFilter& f, int limit = 100) {
    return world.write([&](Store& st) { return st.invalidate_cache(f, "", limit).removed; });
  };
  CHECK(remove({}) == 0);
  CacheFilter f;
  f.cache_key = request("e5", "odd").keys.cache_key;
  CHECK(remove(f) == 1);
  f.cache_key = "not a key";
  CHECK(remove(f) == 0);
  f = {};
  f.label_key = "team";
  f.label_value = "x";
  CHECK(remove(f) == 1);
  f = {};
  f.tenant = "odd";
  f.created_before = kStart + 2 * kSecond;
  CHECK(remove(f) == 1);
  f.created_before.reset();
  CHECK(remove(f) == 1);
  CHECK(world.store().stats(world.now).cache.entries == 2);
  f = {};
  f.model = "other";
  CHECK(remove(f) == 0);
  f = {};
  f.all = true;
  CHECK(remove(f, 1) == 1);
  CHECK(remove(f, 1) == 1);
  CHECK(remove(f, 1) == 0);
  CHECK(world.store().stats(world.now).cache.bytes == 0);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("cache: expired entries go first, then the least recently used", Place, OnFile,
                   InMemory) {
  World<Place> world;
  fill_cache(world, 5);
  CHECK(world.submit(request("e0", "even")).outcome == SubmitReceipt::Outcome::cached);
  const auto evict = [&](UnixMs now, std::int64_t bytes, int limit) {
    return world.write([&](Store& st) { return st.evict_cache(now, bytes, limit); });
  };
  CHECK(evict(world.now, 50, 100) == 0);
  CHECK(evict(world.now, 35, 1) == 1);
  CHECK(evict(world.now, 35, 100) == 1);
  CHECK(world.store().cache_entry(request("e0", "even").keys.cache_key).has_value());
  CHECK_FALSE(world.store().cache_entry(request("e1", "odd").keys.cache_key).has_value());
  const auto entries = world.store().list_cache({});
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].cache_key == request("e0", "even").keys.cache_key);
  CHECK(world.store().list_cache({1, 1}).at(0).cache_key == entries[1].cache_key);
  CHECK(evict(kStart + 2 * kHour, 1'000'000, 100) == 1);  // e0 was made first
  CHECK(evict(kStart + 3 * kHour, 1'000'000, 100) == 2);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("stages: are seen when published, and go when they were not", Place, OnFile,
                   InMemory) {
  World<Place> world;
  const auto stage = world.write([&](Store& st) { return st.stage_begin("import", kStart); });
  world.write([&](Store& st) { st.stage_append(stage, {"a", "b"}); });
  world.write([&](Store& st) { st.stage_append(stage, {"c"}); });
  const auto rows = [&](std::int64_t after, int limit) {
    return world.write([&](Store& st) { return st.stage_rows(stage, after, limit); });
  };
  CHECK(rows(0, 10).empty());
  world.write([&](Store& st) { st.stage_publish(stage, kStart); });
  const auto first = rows(0, 2);
  REQUIRE(first.size() == 2);
  CHECK(first[1].second == "b");
  const auto rest = rows(first[1].first, 2);
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].second == "c");

  const auto lost = world.write([&](Store& st) { return st.stage_begin("import", kStart); });
  world.write([&](Store& st) { st.stage_append(lost, {"x", "y", "z"}); });
  int slices = 1;
  while (!world.write([&](Store& st) { return st.drop_unpublished_stages(2); }))
    ++slices;
  CHECK(slices == 2);
  CHECK(rows(0, 10).size() == 3);
  while (!world.write([&](Store& st) { return st.stage_drop(stage, 2); })) {
  }
  CHECK(rows(0, 10).empty());
  world.expect_sound();
}

TEST_CASE_TEMPLATE("transactions: a rollback leaves no trace, in rows or in counts", Place, OnFile,
                   InMemory) {
  World<Place> world;
  world.submit(request("kept"));
  Store& store = world.store();
  store.begin();
  const JobId undone = store.submit(request("undone", "new-tenant"), world.now).job_id;
  store.rollback();
  CHECK_FALSE(store.job(undone).has_value());
  CHECK(world.count(JobState::queued) == 1);
  // The next new lane may get the id of the one that was undone.
  const JobId other = world.submit(request("undone", "other-tenant")).job_id;
  CHECK(world.job(other).tenant == "other-tenant");
  bool seen = false;
  for (const LaneHead& head : view_of(world).lanes) {
    if (head.job_id == other) {
      seen = true;
      CHECK(head.lane.tenant == "other-tenant");
    }
  }
  CHECK(seen);
  world.expect_sound();
}

TEST_CASE_TEMPLATE("transactions: a savepoint undoes its part only", Place, OnFile, InMemory) {
  World<Place> world;
  Store& store = world.store();
  store.begin();
  store.submit(request("a"), world.now);
  store.savepoint();
  store.submit(request("b"), world.now);
  store.savepoint();
  store.submit(request("c"), world.now);
  CHECK(world.count(JobState::queued) == 3);  // a read inside sees what was written
  store.rollback_to();
  store.release();
  store.savepoint();
  store.submit(request("d", "lane-that-goes"), world.now);
  store.rollback_to();
  store.submit(request("e"), world.now);
  store.commit();
  CHECK(world.count(JobState::queued) == 3);
  CHECK(store.list_jobs({}, {}).size() == 3);
  world.expect_sound();
}

}  // namespace
}  // namespace aiq::test
