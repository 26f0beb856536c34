#include "core/base/random.h"

#include <doctest/doctest.h>

#include <array>
#include <set>
#include <thread>
#include <utility>
#include <vector>

using namespace aiq;

TEST_CASE("random: a seed gives the published SplitMix64 stream") {
  // First outputs for seed 1234567 of the reference implementation (S. Vigna, splitmix64.c).
  SeededRandom random(1234567);
  CHECK(random.next() == 6457827717110365317U);
  CHECK(random.next() == 3203168211198807973U);
  CHECK(random.next() == 9817491932198370423U);
}

TEST_CASE("random: unit stays in [0, 1) at both ends of the bits") {
  struct Fixed final : Random {
    std::uint64_t bits = 0;
    std::uint64_t next() override { return bits; }
  } fixed;
  CHECK(fixed.unit() == 0.0);
  fixed.bits = ~std::uint64_t{0};
  CHECK(fixed.unit() < 1.0);
  CHECK(fixed.unit() > 0.9999999999999998);
}

TEST_CASE("random: below draws every value about equally often") {
  SeededRandom random(42);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70'000; ++i)
    ++seen.at(random.below(seen.size()));
  for (const int count : seen) {
    CHECK(count > 9'500);
    CHECK(count < 10'500);
  }
  CHECK(random.below(1) == 0);
}

TEST_CASE("random: below draws again what would make small values likelier") {
  struct Script final : Random {
    std::vector<std::uint64_t> values;
    std::size_t at = 0;
    std::uint64_t next() override { return values.at(at++); }
  } script;
  const std::uint64_t bound = (std::uint64_t{1} << 63U) + 1;  // 2^64 mod bound = 2^63 - 1
  script.values = {0, (std::uint64_t{1} << 63U) - 2, (std::uint64_t{1} << 63U) - 1};
  CHECK(script.below(bound) == (std::uint64_t{1} << 63U) - 1);
  CHECK(script.at == 3);
}

TEST_CASE("random: tokens are 32 lower-case hex digits, in the order of the bits") {
  struct Script final : Random {
    std::uint64_t value = 0x0123456789ABCDEFU;
    std::uint64_t next() override { return std::exchange(value, 0xFEDCBA9876543210U); }
  } script;
  CHECK(script.token() == "0123456789abcdeffedcba9876543210");
}

TEST_CASE("random: the system's tokens never repeat, over threads too") {
  std::array<std::vector<std::string>, 4> made;
  {
    std::vector<std::jthread> threads;
    for (auto& list : made) {
      threads.emplace_back([&list] {
        for (int i = 0; i < 1'000; ++i)
          list.push_back(system_random().token());
      });
    }
  }
  std::set<std::string> all;
  for (const auto& list : made)
    all.insert(list.begin(), list.end());
  CHECK(all.size() == 4'000);
}
