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

TEST_CASE("admission: the smallest rank goes first, then the smallest job id") {
  const Config config = two_vendors();
  auto view = proven_view({head(1, "t", "a", "m", 30), head(2, "u", "b", "m", 10)});
  CHECK(order(config, view) == std::vector<LaneId>{2, 2, 1, 1});
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
  view.holds[0].until = kNow;
  CHECK(order(config, view) == std::vector<LaneId>{1, 1});
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
