// What the ledger promises, over a file and in memory.

#include "core/store/cost_ledger.h"

#include <algorithm>
#include <limits>

#include "store/store_fixture.h"

namespace aiq::test {
namespace {

constexpr UnixMs kPeriod = kStart - kStart % kHourMs;
constexpr Pico kMax = std::numeric_limits<Pico>::max();

UsageEvent use(const std::string& id, const std::string& tenant = "acme") {
  UsageEvent out;
  out.tenant = tenant;
  out.event_id = id;
  out.model = "m";
  out.meter = "input";
  out.units = 7;
  out.unit_pico = 150'000;
  out.currency = "USD";
  out.occurred_at = kPeriod + 5;
  out.received_at = kPeriod + 9;
  return out;
}

LedgerRow posting(const std::string& ref, Pico amount, UnixMs period = kPeriod,
                  const std::string& type = "usage") {
  LedgerRow out;
  out.idempotency_key = type + "|" + ref;
  out.tenant = "acme";
  out.source_type = type;
  out.source_ref = ref;
  out.service_period = out.posting_period = out.occurred_at = period;
  out.posted_at = kStart;
  out.amount = amount;
  out.currency = "USD";
  out.payload_hash = "h";
  return out;
}

template <class Place>
struct Books {
  Place place;
  CostLedger& ledger = place.store->ledger();

  Books() { place.store->begin(); }
};

TEST_CASE_TEMPLATE("ledger: a delivery is new, the same again, or another payload", Place, OnFile,
                   InMemory) {
  Books<Place> b;
  CHECK(b.ledger.add_usage(use("E")) == AddUsage::accepted);
  UsageEvent again = use("E");
  again.received_at += 1'000;
  CHECK(b.ledger.add_usage(again) == AddUsage::duplicate);
  again.units = 8;
  CHECK(b.ledger.add_usage(again) == AddUsage::conflict);
  CHECK(b.ledger.add_usage(again) == AddUsage::conflict);
  const auto conflicts = b.ledger.list_conflicts("open", Page{});
  REQUIRE(conflicts.size() == 1);
  CHECK(conflicts[0].event.units == 8);
  CHECK(b.ledger.find_usage("acme", "E", "")->units == 7);
  // Other tenants and other sources have events of their own.
  CHECK(b.ledger.add_usage(use("E", "bolt")) == AddUsage::accepted);
  again.source = "old";
  CHECK(b.ledger.add_usage(again) == AddUsage::accepted);

  const std::int64_t id = conflicts[0].conflict_id;
  CHECK_FALSE(b.ledger.replacement("acme", "E", "").has_value());
  CHECK(b.ledger.decide_conflict(id, "replaced", "why", "ann", kStart));
  CHECK_FALSE(b.ledger.decide_conflict(id, "kept", "why", "ann", kStart));
  CHECK(b.ledger.replacement("acme", "E", "")->event.units == 8);
  CHECK(b.ledger.conflict(id)->actor == "ann");
}

TEST_CASE_TEMPLATE("ledger: an event is pending from its collection to its posting", Place, OnFile,
                   InMemory) {
  Books<Place> b;
  CHECK_FALSE(b.ledger.collect_usage(10));
  for (const char* id : {"A", "B", "C"})
    (void)b.ledger.add_usage(use(id));
  CHECK(b.ledger.uncollected_usage() == 3);
  CHECK(b.ledger.pending_units({}) == std::vector<TenantPeriod>{{"acme", kPeriod}});
  CHECK(b.ledger.collect_usage(2));
  CHECK(b.ledger.collect_usage(2));
  CHECK_FALSE(b.ledger.collect_usage(2));
  const TenantPeriod unit{"acme", kPeriod};
  CHECK(b.ledger.next_pending_unit({}, {}, false) == unit);
  CHECK_FALSE(b.ledger.next_pending_unit(unit, {}, false).has_value());
  CHECK_FALSE(b.ledger.next_pending_unit({}, {.tenant = "bolt"}, false).has_value());
  auto events = b.ledger.pending_events(unit, 0, 10);
  REQUIRE(events.size() == 3);
  b.ledger.drop_pending(unit, events[0].usage_id);
  b.ledger.mark_pending(unit, events[1].usage_id, Pending::unpriced);
  b.ledger.mark_pending(unit, events[2].usage_id, Pending::frozen);
  CHECK_FALSE(b.ledger.next_pending_unit({}, {}, true).has_value());
  CHECK(b.ledger.count_pending({}) ==
        std::map<Pending, std::int64_t>{{Pending::unpriced, 1}, {Pending::frozen, 1}});
  b.ledger.wake_pending(kStart);  // no freeze holds it, and no price is new
  CHECK(b.ledger.count_pending({}) ==
        std::map<Pending, std::int64_t>{{Pending::unpriced, 1}, {Pending::fresh, 1}});
}

TEST_CASE_TEMPLATE("ledger: a key is booked once", Place, OnFile, InMemory) {
  Books<Place> b;
  const auto first = b.ledger.append(posting("E", 5));
  REQUIRE(first.has_value());
  CHECK_FALSE(b.ledger.append(posting("E", 6)).has_value());
  LedgerRow imported = posting("E", 7);
  imported.source = "old";
  imported.given_id = "L1";
  const auto other = b.ledger.append(imported);
  REQUIRE(other.has_value());
  CHECK(b.ledger.rows_of("", "acme", "usage", "E").size() == 1);

  // Named as given first, then as an entry of our own.
  REQUIRE(b.ledger.rows_named("L1").size() == 1);
  CHECK(b.ledger.rows_named("old/L1").at(0).amount == 7);
  CHECK(b.ledger.rows_named("new/L1").empty());
  CHECK(b.ledger.rows_named(std::to_string(*first)).at(0).amount == 5);
  CHECK(b.ledger.rows_named(std::to_string(*other)).empty());
  imported.source = "older";
  REQUIRE(b.ledger.append(imported).has_value());
  CHECK(b.ledger.rows_named("L1").size() == 2);

  LedgerRow reversal = posting("R", -5, kPeriod, "reversal");
  reversal.reverses = first;
  const auto back = b.ledger.append(reversal);
  CHECK(b.ledger.reversal_of(*first)->entry_id == back);
  CHECK_FALSE(b.ledger.reversal_of(*back).has_value());
}

TEST_CASE_TEMPLATE("ledger: summaries are what the rows say, beyond 64 bits", Place, OnFile,
                   InMemory) {
  Books<Place> b;
  const TenantPeriod unit{"acme", kPeriod};
  for (int i = 0; i < 3; ++i)
    REQUIRE(b.ledger.append(posting("E" + std::to_string(i), kMax)).has_value());
  REQUIRE(b.ledger.append(posting("N", -1'234'567'890'123, kPeriod, "credit_note")).has_value());
  REQUIRE(b.ledger.append(posting("R", -5, kPeriod, "reversal")).has_value());
  LedgerRow late = posting("late", 11);
  late.posting_period = kPeriod + kHourMs;
  REQUIRE(b.ledger.append(late).has_value());

  CHECK(b.ledger.recompute(unit, kStart, false).size() == 1);
  CHECK(b.ledger.summaries(unit).empty());
  CHECK(b.ledger.recompute(unit, kStart, true).size() == 1);
  const auto rows = b.ledger.summaries(unit);
  REQUIRE(rows.size() == 1);
  const Int128 usage = Int128{3} * kMax + 11;
  CHECK((rows[0].usage == usage));
  CHECK((rows[0].credit == -1'234'567'890'123));
  CHECK((rows[0].correction == -5));
  CHECK((rows[0].service_total == usage - 1'234'567'890'123 - 5));
  CHECK((*rows[0].billed_total == rows[0].service_total - 11));
  CHECK(rows[0].ledger_rows == 6);
  CHECK(rows[0].events == 4);
  CHECK(b.ledger.recompute(unit, kStart, true).empty());
  CHECK_FALSE(b.ledger.summary_behind(rows[0]));

  CHECK(b.ledger.recompute({"acme", kPeriod + kHourMs}, kStart, true).size() == 1);
  const auto next = b.ledger.summaries({"acme", kPeriod + kHourMs});
  REQUIRE(next.size() == 1);
  CHECK((next[0].service_total == 0));
  CHECK((*next[0].billed_total == 11));

  REQUIRE(b.ledger.append(posting("more", 1)).has_value());
  CHECK(b.ledger.summary_behind(rows[0]));
}

TEST_CASE_TEMPLATE("ledger: a walk over tenant-hours meets each once", Place, OnFile, InMemory) {
  Books<Place> b;
  std::vector<TenantPeriod> all;
  for (const char* tenant : {"acme", "bolt", "cirrus"}) {
    for (int hour = 0; hour < 4; ++hour) {
      LedgerRow row =
          posting(std::string(tenant) + std::to_string(hour), 1, kPeriod + hour * kHourMs);
      row.tenant = tenant;
      REQUIRE(b.ledger.append(row).has_value());
      all.push_back({tenant, row.service_period});
      (void)b.ledger.recompute(all.back(), kStart, true);
    }
  }
  const auto walk = [&](const PeriodScope& scope) {
    std::vector<TenantPeriod> out;
    std::optional<TenantPeriod> at;
    while ((at = b.ledger.next_summary_unit(at, scope)))
      out.push_back(*at);
    return out;
  };
  CHECK(walk({}) == all);
  CHECK(walk({.tenant = "bolt"}) == std::vector<TenantPeriod>(all.begin() + 4, all.begin() + 8));
  const PeriodScope middle{.tenant = "", .from = kPeriod + kHourMs, .to = kPeriod + 3 * kHourMs};
  CHECK(walk(middle) == std::vector<TenantPeriod>{all[1], all[2], all[5], all[6], all[9], all[10]});
  CHECK(walk({.tenant = "nobody"}).empty());

  // In pages, of which none is cut inside a unit.
  std::vector<TenantPeriod> listed;
  std::optional<TenantPeriod> after;
  for (;;) {
    const auto rows = b.ledger.list_summaries({}, after, 5);
    for (const SummaryRow& row : rows)
      listed.push_back(*(after = TenantPeriod{row.tenant, row.period}));
    if (rows.size() < 5) break;
  }
  CHECK(listed == all);
}

TEST_CASE_TEMPLATE("ledger: a freeze holds from hour to hour until it is lifted", Place, OnFile,
                   InMemory) {
  Books<Place> b;
  Freeze freeze{.tenant = "acme",
                .from = kPeriod,
                .to = kPeriod + 2 * kHourMs,
                .origin = "operator",
                .until = kStart + 100,
                .reason = "r",
                .actor = "a",
                .created_at = kStart};
  REQUIRE(b.ledger.freeze(freeze) > 0);
  CHECK(b.ledger.freeze_of({"acme", kPeriod}, kStart).has_value());
  CHECK(b.ledger.freeze_of({"acme", kPeriod + kHourMs}, kStart).has_value());
  CHECK_FALSE(b.ledger.freeze_of({"acme", kPeriod + 2 * kHourMs}, kStart).has_value());
  CHECK_FALSE(b.ledger.freeze_of({"acme", kPeriod - kHourMs}, kStart).has_value());
  CHECK_FALSE(b.ledger.freeze_of({"bolt", kPeriod}, kStart).has_value());
  CHECK_FALSE(b.ledger.freeze_of({"acme", kPeriod}, kStart + 100).has_value());
  CHECK(b.ledger.lift_freezes("acme", kPeriod + 2 * kHourMs, kPeriod + 3 * kHourMs, "a", kStart) ==
        0);
  CHECK(b.ledger.lift_freezes("acme", kPeriod, kPeriod + kHourMs, "a", kStart) == 1);
  CHECK_FALSE(b.ledger.freeze_of({"acme", kPeriod}, kStart).has_value());
  CHECK(b.ledger.list_freezes(false, "", kStart, Page{}).empty());
  CHECK(b.ledger.list_freezes(true, "", kStart, Page{}).size() == 1);
  freeze.origin = "import:3";
  (void)b.ledger.freeze(freeze);
  CHECK(b.ledger.lift_origin("import:3", "a", kStart) == 1);
}

TEST_CASE_TEMPLATE("ledger: runs add up and count the ones before that failed", Place, OnFile,
                   InMemory) {
  Books<Place> b;
  const NewRun run{.call_id = "c",
                   .initiator = "command",
                   .unit = {"acme", kPeriod},
                   .now = kStart,
                   .correlation_id = "c",
                   .actor = "uid:0"};
  const OpenedRun first = b.ledger.open_run(run);
  CHECK(first.retry_count == 0);
  CHECK(b.ledger.open_runs().size() == 1);
  b.ledger.set_run(first.run_id, {.posted = 3}, "abandoned", kStart);
  b.ledger.set_run(first.run_id, {.posted = 4}, "done", kStart);  // it is closed
  CHECK(b.ledger.open_runs().empty());
  const OpenedRun second = b.ledger.open_run(run);
  CHECK(second.retry_count == 1);
  b.ledger.set_run(second.run_id, {.posted = 1, .replayed = 2, .unpriced = 4, .late = 1}, "done",
                   kStart);
  CHECK(b.ledger.open_run(run).retry_count == 0);
  const auto rows = b.ledger.list_runs({.outcome = "abandoned"}, Page{});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].events == 3);
  CHECK(b.ledger.list_runs({.outcome = "done"}, Page{}).at(0).events == 7);
}

}  // namespace
}  // namespace aiq::test
