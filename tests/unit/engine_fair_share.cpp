#include "core/engine/fair_share.h"

#include <doctest/doctest.h>

#include <map>

using namespace aiq;

namespace {

constexpr UnixMs kNow = 1'800'000'000'000;
constexpr DurationMs kStep = 60'000;

LaneHead job(JobId id, int priority = 0, UnixMs run_at = kNow) {
  LaneHead head;
  head.job_id = id;
  head.priority = priority;
  head.run_at = run_at;
  head.rank = run_at - priority * kStep;
  return head;
}

// Tenants that always have a job: how often each is served in `n` turns, one decision per turn and
// the state stored in between.
std::map<std::string, int> turns(const std::map<std::string, std::int64_t>& weights, int n,
                                 std::vector<ShareRow> rows = {}) {
  std::map<std::string, int> served;
  std::map<std::string, ShareRow> stored;
  for (const ShareRow& row : rows)
    stored[row.tenant] = row;
  for (int i = 0; i < n; ++i) {
    rows.clear();
    for (const auto& [tenant, row] : stored)
      rows.push_back(row);
    FairShare share(rows, kStep, kNow + i);
    for (const auto& [tenant, weight] : weights)
      share.offer(tenant, weight, job(1, 0, kNow + i));
    const std::string first = *share.first();
    share.served(first);
    ++served[first];
    for (const ShareRow& row : share.changes())
      stored[row.tenant] = row;
  }
  return served;
}

}  // namespace

TEST_CASE("fair share: by weight") {
  auto served = turns({{"a", 3}, {"b", 1}}, 400);
  CHECK(served["a"] == 300);
  CHECK(served["b"] == 100);
  served = turns({{"a", 1}, {"b", 1}, {"c", 5}}, 700);
  CHECK(served["c"] == 500);
}

TEST_CASE("fair share: alone each gets everything, absence earns nothing") {
  CHECK(turns({{"a", 1}}, 50)["a"] == 50);
  // b was served last when the clock stood at 10; meanwhile a had a thousand turns.
  const auto served =
      turns({{"a", 1}, {"b", 1}}, 100, {{"", kNow, 1'010}, {"a", kNow, 1'011}, {"b", kNow, 10}});
  CHECK(served.at("b") <= 51);
  CHECK(served.at("a") >= 49);
}

TEST_CASE("fair share: a newcomer is served among the next") {
  std::vector<ShareRow> rows = {{"", kNow, 5'000}, {"a", kNow, 5'001}};
  FairShare share(rows, kStep, kNow);
  share.offer("a", 1, job(1));
  share.offer("b", 1, job(100));
  CHECK(*share.first() == "b");
}

TEST_CASE("fair share: priority goes before share, waiting raises it step by step") {
  const std::vector<ShareRow> rows = {
      {"", kNow, 0}, {"high", kNow, 50}, {"low", kNow - 9 * kStep, 0}};
  {
    FairShare share(rows, kStep, kNow - 1);
    share.offer("high", 1, job(1, 9, kNow - 1));
    share.offer("low", 1, job(2, 0, kNow - 10 * kStep));
    CHECK(*share.first() == "high");
  }
  FairShare share(rows, kStep, kNow);
  share.offer("high", 1, job(1, 9));
  share.offer("low", 1, job(2, 0, kNow - 10 * kStep));
  CHECK(*share.first() == "low");  // nine steps since it was served
  share.served("low");
  share.offer("low", 1, job(3, 0, kNow - 10 * kStep));
  CHECK(*share.first() == "high");
}

TEST_CASE("fair share: a tenant that had nothing to do has not waited") {
  FairShare share({{"away", kNow - 1'000 * kStep, 0}}, kStep, kNow);
  share.offer("away", 1, job(1, 0, kNow));
  share.offer("busy", 1, job(2, 1, kNow));
  CHECK(*share.first() == "busy");
}

TEST_CASE("fair share: what is withdrawn is not offered") {
  FairShare share({}, kStep, kNow);
  CHECK(share.first() == nullptr);
  share.offer("a", 1, job(1));
  share.offer("a", 1, job(2));
  share.withdraw("a");
  share.withdraw("a");
  CHECK(share.first() == nullptr);
  CHECK(share.changes().empty());
}
