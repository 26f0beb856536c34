#include "core/engine/admission.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace aiq;

namespace {

constexpr UnixMs kNow = 1'000'000;

Config two_vendors() {
  Config config;
  for (const char* name : {"a", "b"}) {
    VendorConfig vendor;
    vendor.name = name;
    vendor.api = "openai";
    vendor.max_in_flight = 2;
    config.vendors[name] = vendor;
  }
  return config;
}

LaneHead head(LaneId id, const char* tenant, const char* vendor, const char* model,
              std::int64_t rank, int in_flight = 0) {
  return {.lane = {.lane_id = id, .tenant = tenant, .vendor = vendor, .model = model},
          .rank = rank,
          .job_id = 100 + id,
          .in_flight = in_flight};
}

AdmissionView proven_view(std::vector<LaneHead> lanes) {
  AdmissionView view;
  view.lanes = std::move(lanes);
  view.vendors = {{.vendor = "a", .proven = true}, {.vendor = "b", .proven = true}};
  return view;
}

// Lanes in the order in which they may start, each lane offering the same head again and again.
std::vector<LaneId> order(const Config& config, const AdmissionView& view, std::size_t most = 50) {
  Admission admission(config, view, kNow);
  std::vector<LaneId> lanes;
  while (lanes.size() < most) {
    const auto lane = admission.next();
    if (!lane) break;
    lanes.push_back(*lane);
    for (const LaneHead& each : view.lanes) {
      if (each.lane.lane_id == *lane) admission.started(each);
    }
  }
  return lanes;
}

}  // namespace

TEST_CASE("admission: of a tenant the smallest rank goes first, then the smallest job id") {
  const Config config = two_vendors();
  auto view = proven_view({head(1, "t", "a", "m", 30), head(2, "t", "b", "m", 10)});
  CHECK(order(config, view) == std::vector<LaneId>{2, 2, 1, 1});
  // Between tenants of equal priority in turn, whoever came first.
  view = proven_view({head(1, "t", "a", "m", 30), head(2, "u", "b", "m", 10)});
  CHECK(order(config, view) == std::vector<LaneId>{2, 1, 2, 1});
  view = proven_view({head(2, "u", "a", "m", 10), head(1, "t", "a", "n", 10)});
  CHECK(order(config, view, 1) == std::vector<LaneId>{1});
}

TEST_CASE("admission: no more than the places of process, vendor, model and tenant") {
  struct Row {
    const char* what;
    void (*limit)(Config&);
    std::size_t started;
  };
  const Row rows[] = {
      {"vendor", [](Config& c) { c.vendors["a"].max_in_flight = 3; }, 3},
      {"vendor without a limit", [](Config& c) { c.vendors["a"].max_in_flight = 0; }, 50},
      {"model", [](Config& c) { c.models["m"].max_in_flight = 1; }, 1},
      {"tenant", [](Config& c) { c.tenants["t"].max_in_flight = 1; }, 1},
      {"process",
       [](Config& c) {
         c.vendors["a"].max_in_flight = 0;
         c.daemon.max_in_flight = 7;
       },
       7},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    Config config = two_vendors();
    row.limit(config);
    CHECK(order(config, proven_view({head(1, "t", "a", "m", 1)})).size() == row.started);
  }
}

TEST_CASE("admission: live leases of other lanes take places too") {
  const Config config = two_vendors();
  auto view = proven_view({head(1, "t", "a", "m", 1)});
  view.running = {head(9, "other", "a", "other", 0, 1)};
  CHECK(order(config, view).size() == 1);
  view.running = {head(9, "other", "a", "other", 0, 2)};
  CHECK(order(config, view).empty());
}

TEST_CASE("admission: an unproven vendor gets one request at a time") {
  const Config config = two_vendors();
  auto view = proven_view({head(1, "t", "a", "m", 1), head(2, "t", "b", "m", 2)});
  view.vendors = {{.vendor = "a", .proven = false}, {.vendor = "b", .proven = true}};
  CHECK(order(config, view) == std::vector<LaneId>{1, 2, 2});

  view.running = {head(1, "t", "a", "m", 0, 1)};
  view.oldest_start = {{"a", kNow - kProofAfterMs + 1}};
  {
    Admission admission(config, view, kNow);
    CHECK(admission.proven_by_time().empty());
    CHECK(admission.next_opening() == kNow + 1);
  }
  view.oldest_start = {{"a", kNow - kProofAfterMs}};
  Admission admission(config, view, kNow);
  CHECK(admission.proven_by_time() == std::vector<std::string>{"a"});
  CHECK(admission.next() == 1);
}

TEST_CASE("admission: a pause closes what it names and nothing else") {
  struct Row {
    Pause pause;
    std::vector<LaneId> open;
  };
  const Row rows[] = {
      {{.vendor = "a"}, {3}},
      {{.vendor = "a", .model = "m"}, {2, 3}},
      {{.model = "m"}, {2}},
      {{.tenant = "t"}, {2, 3}},
      {{}, {}},
      {{.vendor = "a", .until = kNow}, {1, 2, 3}},
      {{.vendor = "a", .until = kNow + 5}, {3}},
  };
  Config config = two_vendors();
  config.vendors["a"].max_in_flight = 2;
  config.vendors["b"].max_in_flight = 1;
  config.models["m"].max_in_flight = 0;
  for (const Row& row : rows) {
    CAPTURE(row.pause.vendor);
    CAPTURE(row.pause.model);
    CAPTURE(row.pause.tenant);
    const std::vector<LaneHead> lanes = {head(1, "t", "a", "m", 1), head(2, "u", "a", "n", 2),
                                         head(3, "u", "b", "m", 3)};
    auto view = proven_view(lanes);
    view.pauses = {row.pause};
    Admission admission(config, view, kNow);
    std::vector<LaneId> open;
    while (const auto lane = admission.next()) {
      open.push_back(*lane);
      admission.started(std::nullopt);
    }
    CHECK(open == row.open);
    if (row.pause.until && *row.pause.until > kNow) {
      CHECK(admission.next_opening() == row.pause.until);
    } else {
      CHECK_FALSE(admission.next_opening());
    }
  }
}

TEST_CASE("admission: a wait that a vendor asked for holds its vendor and model only") {
  const Config config = two_vendors();
  auto view = proven_view({head(1, "t", "a", "m", 1), head(2, "t", "a", "n", 2)});
  view.holds = {{.vendor = "a", .model = "m", .until = kNow + 250}};
  CHECK(order(config, view) == std::vector<LaneId>{2, 2});
  Admission admission(config, view, kNow);
  CHECK(admission.next_opening() == kNow + 250);
  view.holds.clear();  // as when it is long over
  CHECK(order(config, view) == std::vector<LaneId>{1, 1});
}

TEST_CASE("admission: when a wait is over, those who waited start one after the other") {
  Config config = two_vendors();
  config.vendors["a"].max_in_flight = 100;
  auto view = proven_view({head(1, "t", "a", "m", 1)});
  view.holds = {
      {.vendor = "a", .model = "m", .until = kNow, .set_at = kNow - 6'000, .waiting = 20}};
  std::vector<UnixMs> starts;
  for (UnixMs now = kNow; now < kNow + 2'000; ++now) {
    Admission admission(config, view, now);
    if (now >= kNow + view.holds[0].spread()) break;
    while (admission.next()) {
      starts.push_back(now);
      admission.started(view.lanes[0]);
    }
    for (const RateHold& spread : admission.changes().spreads)
      view.holds[0] = spread;
    REQUIRE(admission.next_opening().value() <= now + 101);
  }
  // A third of the wait, 2 s, in 20 steps.
  REQUIRE(starts.size() == 20);
  for (std::size_t i = 1; i < starts.size(); ++i)
    CHECK(starts[i] - starts[i - 1] == 100);
}

TEST_CASE("admission: limits per minute of vendor, model and tenant hold together") {
  struct Row {
    const char* what;
    void (*limit)(Config&);
  };
  const Row rows[] = {
      {"vendor", [](Config& c) { c.vendors["a"].rpm = 100; }},
      {"model", [](Config& c) { c.models["m"].rpm = 100; }},
      {"tenant", [](Config& c) { c.tenants["t"].rpm = 100; }},
      {"tokens of the vendor", [](Config& c) { c.vendors["a"].tpm = 1'000; }},
      {"tokens of the model", [](Config& c) { c.models["m"].tpm = 1'000; }},
      {"tokens of the tenant", [](Config& c) { c.tenants["t"].tpm = 1'000; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    Config config = two_vendors();
    config.vendors["a"].max_in_flight = 0;
    row.limit(config);
    auto view = proven_view({head(1, "t", "a", "m", 1)});
    view.lanes[0].prompt_tokens = 4;
    view.lanes[0].output_tokens = 6;
    CHECK(order(config, view).size() == 4);  // 4 % of 100, of 1,000
    Admission admission(config, view, kNow);
    while (admission.next())
      admission.started(view.lanes[0]);
    REQUIRE(admission.changes().rates.size() == 1);
    CHECK(admission.next_opening().value() == kNow + 636);  // 61 s / 96
    view.rates = admission.changes().rates;
    CHECK(order(config, view).empty());
    Admission later(config, view, kNow + 636);
    CHECK(later.next() == 1);
    const auto blocks = Admission(config, view, kNow).explain(view.lanes[0]);
    REQUIRE(blocks.size() == 1);
    CHECK(blocks[0].code == "rate_limited");
    CHECK(blocks[0].until == kNow + 636);
  }
}

TEST_CASE("admission: who waits for a limit is not overtaken by smaller ones") {
  Config config = two_vendors();
  config.vendors["a"].tpm = 1'000;
  config.vendors["a"].max_in_flight = 0;
  auto view = proven_view({head(1, "t", "a", "m", 1), head(2, "t", "a", "n", 2)});
  view.lanes[0].prompt_tokens = 30;
  view.lanes[1].prompt_tokens = 1;
  CHECK(order(config, view) == std::vector<LaneId>{1});
}

TEST_CASE("admission: a vendor that told a smaller limit, or refused, gets less") {
  Config config = two_vendors();
  config.vendors["a"].max_in_flight = 100;
  auto view = proven_view({head(1, "t", "a", "m", 1)});
  view.rates = {{.scope = "model",
                 .name = "a m",
                 .unit = "requests",
                 .level = 100,
                 .at = kNow,
                 .reported = 50,
                 .reported_at = kNow}};
  CHECK(order(config, view).size() == 2);  // 4 % of 50, though nothing is configured
  view.rates[0].reported_at = kNow - kReportedForMs;
  CHECK(order(config, view).size() == 50);
  view.rates.clear();
  view.paces = {{.vendor = "a", .model = "m", .share = 0.25, .at = kNow}};
  CHECK(order(config, view).size() == 25);
  view.paces[0].at = kNow - 60'000;  // half the way back
  CHECK(order(config, view, 200).size() == 75);
}

TEST_CASE("admission: an open breaker closes its vendor and model, then lets probes through") {
  Config config = two_vendors();
  config.vendors["a"].max_in_flight = 100;
  auto view = proven_view({head(1, "t", "a", "m", 1), head(2, "t", "a", "n", 2)});
  view.breakers = {{.vendor = "a", .model = "m", .open_until = kNow + 900}};
  CHECK(order(config, view, 3) == std::vector<LaneId>{2, 2, 2});
  Admission admission(config, view, kNow);
  CHECK(admission.next_opening() == kNow + 900);
  CHECK(admission.explain(view.lanes[0]).at(0).code == "breaker_open");
  view.breakers[0].open_until = kNow;
  CHECK(order(config, view, 4) == std::vector<LaneId>{1, 1, 2, 2});
}

TEST_CASE("admission: a vendor without a section and a disabled tenant start nothing") {
  Config config = two_vendors();
  config.tenants["off"].disabled = true;
  const auto view = proven_view({head(1, "t", "gone", "m", 1), head(2, "off", "a", "m", 2)});
  CHECK(order(config, view).empty());
}

TEST_CASE("admission: a head that leaves without a lease takes no place") {
  Config config = two_vendors();
  config.vendors["a"].max_in_flight = 1;
  const auto view = proven_view({head(1, "t", "a", "m", 1)});
  Admission admission(config, view, kNow);
  for (int i = 0; i < 5; ++i) {
    REQUIRE(admission.next() == 1);
    admission.passed(view.lanes[0]);
  }
  REQUIRE(admission.next() == 1);
  admission.started(view.lanes[0]);
  CHECK_FALSE(admission.next());
}
