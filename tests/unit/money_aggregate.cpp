#include "core/money/aggregate.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/random.h"
#include "money_world.h"

using namespace money_world;

namespace {

std::vector<RunRow> runs(World& world, const std::string& outcome) {
  return world.store->ledger().list_runs({.outcome = outcome}, Page{.after = 0, .limit = 1000});
}

// Owner of a process that is no more.
AggregateCall of_the_dead(World& world, const std::string& id) {
  AggregateCall out = world.call(id);
  out.owner = "1:1:" + id;
  return out;
}

Int128 total(World& world) {
  Int128 out = 0;
  for (const SummaryRow& row : world.summaries())
    out += row.service_total;
  return out;
}

}  // namespace

TEST_CASE("aggregation: posts once, replays ever after") {
  World world;
  for (int i = 0; i < 3; ++i)
    CHECK(world.deliver(event("E" + std::to_string(i))) == AddUsage::accepted);
  const AggregateTotals first = world.aggregate();
  CHECK(first.posted == 3);
  CHECK(first.replayed == 0);
  for (int i = 0; i < 4; ++i) {
    const AggregateTotals again = world.aggregate();
    CHECK(again.posted == 0);
    CHECK(again.replayed == 3);
  }
  CHECK(total(world) == 3 * 150'000'000);
  CHECK(world.faults() == "");
}

TEST_CASE("aggregation: a large hour is posted in steps and summed up at the end") {
  World world;
  constexpr int kEvents = 2 * kAggregateSlice + 7;
  for (int i = 0; i < kEvents; ++i)
    (void)world.deliver(event("E" + std::to_string(i)));
  AggregateState state;
  const AggregateCall call = world.call();
  int steps = 0;
  while (state.phase != AggregateState::Phase::done) {
    state = world.step(call, state);
    ++steps;
    if (state.unit)
      CHECK(world.store->ledger().lock_owner(aggregate_lock({"acme", kMarch}), world.now) ==
            call.owner);
  }
  CHECK(steps >= 4);
  CHECK(state.totals.posted == kEvents);
  CHECK(state.totals.periods == 1);
  REQUIRE(runs(world, "done").size() == 1);
  CHECK(runs(world, "done")[0].counts.posted == kEvents);
  CHECK_FALSE(world.store->ledger().lock_owner(aggregate_lock({"acme", kMarch}), world.now));
  CHECK(world.faults() == "");
}

TEST_CASE("aggregation: what a dead process left is completed by the next") {
  World world;
  constexpr int kEvents = kAggregateSlice + 100;
  for (int i = 0; i < kEvents; ++i)
    (void)world.deliver(event("E" + std::to_string(i)));
  AggregateState state;
  const AggregateCall dead = of_the_dead(world, "dead");
  while (!state.unit)
    state = world.step(dead, state);
  CHECK(world.ledger().size() == kAggregateSlice);
  CHECK(world.summaries().empty());

  const AggregateTotals next = world.aggregate();
  CHECK(next.posted == 100);
  CHECK(next.replayed == kAggregateSlice);
  CHECK(next.busy == 0);
  REQUIRE(runs(world, "abandoned").size() == 1);
  CHECK(runs(world, "abandoned")[0].counts.posted == kAggregateSlice);
  CHECK(runs(world, "done")[0].retry_count == 1);
  CHECK(world.ledger().size() == kEvents);
  CHECK(world.faults() == "");
}

TEST_CASE("aggregation: with everything posted and no summary, the next process sums up") {
  World world;
  constexpr int kEvents = 2 * kAggregateSlice;
  for (int i = 0; i < kEvents; ++i)
    (void)world.deliver(event("E" + std::to_string(i)));
  AggregateState state;
  const AggregateCall dead = of_the_dead(world, "dead");
  while (!state.unit)
    state = world.step(dead, state);
  // The rest is posted by a process that did not see the first: only the run stays open.
  const AggregateCall other = of_the_dead(world, "other");
  AggregateState second;
  second.phase = AggregateState::Phase::units;
  while (second.phase != AggregateState::Phase::done)
    second = world.step(other, second);
  REQUIRE(world.sql("DELETE FROM tenant_cost_summary") == "");
  (void)world.aggregate();
  CHECK(total(world) == Int128{kEvents} * 150'000'000);
  CHECK(world.faults() == "");
}

TEST_CASE("aggregation: a unit of a living process is busy") {
  World world;
  for (int i = 0; i < kAggregateSlice + 1; ++i)
    (void)world.deliver(event("E" + std::to_string(i)));
  (void)world.deliver(event("B", "bolt"));
  AggregateState mine;
  const AggregateCall me = world.call("me");
  while (!mine.unit)
    mine = world.step(me, mine);
  const AggregateTotals other = world.aggregate(world.call("other"));
  CHECK(other.busy == 1);
  CHECK(other.posted == 1);  // bolt's
  while (mine.phase != AggregateState::Phase::done)
    mine = world.step(me, mine);
  CHECK(mine.totals.posted == kAggregateSlice + 1);
  CHECK(runs(world, "busy").size() == 1);
  CHECK(world.faults() == "");
}

TEST_CASE("aggregation: a step that is rolled back and run again posts once") {
  World world;
  (void)world.deliver(event("E"));
  AggregateState state = world.step(world.call(), {});
  state = world.step(world.call(), state);
  world.store->begin();
  (void)aggregate_step(*world.store, world.config, world.call(), state, world.now);
  world.store->rollback();
  state = world.step(world.call(), state);
  state = world.step(world.call(), state);
  CHECK(world.ledger().size() == 1);
  CHECK(world.faults() == "");
}

TEST_CASE("aggregation: a freeze in the middle of a run stops it there") {
  World world;
  constexpr int kEvents = 3 * kAggregateSlice;
  for (int i = 0; i < kEvents; ++i)
    (void)world.deliver(event("E" + std::to_string(i)));
  (void)world.deliver(event("B", "bolt"));
  AggregateState state;
  while (!state.unit)
    state = world.step(world.call(), state);
  (void)world.write([&](Store& s) {
    return s.ledger().freeze({.tenant = "acme",
                              .from = kMarch,
                              .to = kMarch + kHourMs,
                              .origin = "operator",
                              .until = std::nullopt,
                              .reason = "r",
                              .actor = "a",
                              .created_at = world.now});
  });
  while (state.phase != AggregateState::Phase::done)
    state = world.step(world.call(), state);
  CHECK(state.totals.posted == kAggregateSlice + 1);  // with bolt's
  CHECK(state.totals.frozen == 1);
  CHECK(runs(world, "frozen").size() == 1);
  CHECK(world.ledger().size() == kAggregateSlice + 1);
  CHECK(world.aggregate().posted == 0);
  (void)world.write([&](Store& s) {
    return s.ledger().lift_freezes("acme", kMarch, kMarch + kHourMs, "a", world.now);
  });
  // The daemon's turn finds what the freeze held.
  AggregateCall turn = world.call();
  turn.fresh_only = true;
  CHECK(world.aggregate(turn).posted == kEvents - kAggregateSlice);
  CHECK(world.aggregate().posted == 0);
  CHECK(world.ledger().size() == kEvents + 1);
  CHECK(world.faults() == "");
}

TEST_CASE("aggregation: an event without a price waits and is not 0") {
  World world;
  UsageEvent unpriced = event("U");
  unpriced.unit_pico.reset();
  unpriced.currency.clear();
  (void)world.deliver(unpriced);
  (void)world.deliver(event("E"));
  const AggregateTotals done = world.aggregate();
  CHECK(done.posted == 1);
  CHECK(done.unpriced == 1);
  CHECK(world.store->ledger().count_pending({}).at(Pending::unpriced) == 1);
  // The daemon's turns leave it alone until a price comes.
  AggregateCall turn = world.call();
  turn.fresh_only = true;
  (void)world.aggregate(turn);
  const std::size_t before = runs(world, "").size();
  (void)world.aggregate(turn);
  CHECK(runs(world, "").size() == before);
}

TEST_CASE("aggregation: contents of summaries do not depend on the order of events") {
  constexpr std::uint64_t kSeed = 42;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  std::vector<UsageEvent> events;
  for (int i = 0; i < 60; ++i)
    events.push_back(event("E" + std::to_string(i), i % 2 == 0 ? "acme" : "bolt",
                           kMarch + (i % 3) * kHourMs, 1 + i));
  std::vector<std::string> first;
  for (int round = 0; round < 4; ++round) {
    World world;
    for (std::size_t i = events.size(); i > 1; --i)
      std::swap(events[i - 1], events[random.below(i)]);
    for (const UsageEvent& each : events) {
      (void)world.deliver(each);
      if (random.below(10) == 0) (void)world.aggregate();
    }
    (void)world.aggregate();
    std::vector<std::string> hashes;
    for (const SummaryRow& row : world.summaries())
      hashes.push_back(row.content_hash);
    REQUIRE(hashes.size() == 6);
    if (round == 0) first = hashes;
    CHECK(hashes == first);
  }
}
