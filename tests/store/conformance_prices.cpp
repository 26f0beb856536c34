// What the price book promises, over a file and in memory.

#include <algorithm>
#include <random>

#include "core/store/price_book.h"
#include "store/store_fixture.h"

namespace aiq::test {
namespace {

PriceRow price(UnixMs from, std::optional<Pico> unit_pico, const std::string& meter = "input") {
  PriceRow row;
  row.vendor = "openai";
  row.model = "gpt-4o";
  row.meter = meter;
  row.currency = "USD";
  row.unit_pico = unit_pico;
  row.effective_from = from;
  row.origin = "set";
  row.actor = "uid:0";
  row.created_at = kStart;
  return row;
}

template <class Place>
struct Book {
  Place place;
  PriceBook& book = place.store->prices();

  Book() { place.store->begin(); }
  std::optional<Price> at(UnixMs at, std::optional<std::int64_t> context = std::nullopt,
                          const std::string& vendor = "openai") {
    return book.price_at(vendor, "gpt-4o", "input", at, context);
  }
};

TEST_CASE_TEMPLATE("prices: each holds from its time until the next one", Place, OnFile, InMemory) {
  Book<Place> b;
  REQUIRE(b.book.add(price(kStart, 2'500'000)).has_value());
  REQUIRE(b.book.add(price(kStart + kHour, 2'000'000)).has_value());
  CHECK_FALSE(b.at(kStart - 1).has_value());
  CHECK(b.at(kStart)->unit_pico == 2'500'000);
  CHECK(b.at(kStart + kHour - 1)->unit_pico == 2'500'000);
  CHECK(b.at(kStart + kHour)->unit_pico == 2'000'000);
  CHECK(b.at(kStart + kHour)->currency == "USD");
  CHECK_FALSE(b.book.price_at("openai", "gpt-4o", "output", kStart, {}).has_value());
  CHECK_FALSE(b.book.price_at("openai", "gpt-4", "input", kStart, {}).has_value());
  CHECK_FALSE(b.book.price_at("azure", "gpt-4o", "input", kStart, {}).has_value());
}

TEST_CASE_TEMPLATE("prices: a later row with the same time corrects, the same price adds nothing",
                   Place, OnFile, InMemory) {
  Book<Place> b;
  REQUIRE(b.book.add(price(kStart, 2'500'000)).has_value());
  CHECK_FALSE(b.book.add(price(kStart, 2'500'000)).has_value());
  CHECK(b.book.holds(price(kStart + kHour, 2'500'000)));
  CHECK_FALSE(b.book.holds(price(kStart + kHour, 2'400'000)));
  CHECK_FALSE(b.book.holds(price(kStart - 1, 2'500'000)));
  REQUIRE(b.book.add(price(kStart, 2'400'000)).has_value());
  CHECK(b.at(kStart)->unit_pico == 2'400'000);
  CHECK(b.book.list({}, Page{}).size() == 2);
  // It holds on, whatever is put before it later.
  REQUIRE(b.book.add(price(kStart + 2 * kHour, 2'400'000)).has_value());
  REQUIRE(b.book.add(price(kStart + kHour, 9)).has_value());
  CHECK(b.at(kStart + 2 * kHour)->unit_pico == 2'400'000);
}

TEST_CASE_TEMPLATE("prices: no price is not a price of 0", Place, OnFile, InMemory) {
  Book<Place> b;
  REQUIRE(b.book.add(price(kStart, 0)).has_value());
  REQUIRE(b.at(kStart).has_value());
  CHECK(b.at(kStart)->unit_pico == 0);
  REQUIRE(b.book.add(price(kStart + kHour, std::nullopt)).has_value());
  CHECK_FALSE(b.at(kStart + kHour).has_value());
  CHECK_FALSE(b.book.add(price(kStart + kHour, std::nullopt)).has_value());
}

TEST_CASE_TEMPLATE("prices: a step holds for requests with more prompt tokens than it names", Place,
                   OnFile, InMemory) {
  Book<Place> b;
  PriceRow step = price(kStart, 5'000'000);
  step.above_tokens = 128'000;
  PriceRow unpriced = price(kStart, std::nullopt);
  unpriced.above_tokens = 200'000;
  REQUIRE(b.book.add(price(kStart, 2'500'000)).has_value());
  REQUIRE(b.book.add(step).has_value());
  REQUIRE(b.book.add(unpriced).has_value());
  CHECK(b.at(kStart, std::nullopt)->unit_pico == 2'500'000);
  CHECK(b.at(kStart, 0)->unit_pico == 2'500'000);
  CHECK(b.at(kStart, 128'000)->unit_pico == 2'500'000);
  CHECK(b.at(kStart, 128'001)->unit_pico == 5'000'000);
  CHECK(b.at(kStart, 200'000)->unit_pico == 5'000'000);
  CHECK_FALSE(b.at(kStart, 200'001).has_value());
}

TEST_CASE_TEMPLATE("prices: an event without a vendor has a price where all vendors agree", Place,
                   OnFile, InMemory) {
  Book<Place> b;
  REQUIRE(b.book.add(price(kStart, 2'500'000)).has_value());
  CHECK(b.at(kStart, {}, "")->unit_pico == 2'500'000);
  PriceRow other = price(kStart + 1, 2'500'000);
  other.vendor = "azure";
  REQUIRE(b.book.add(other).has_value());
  CHECK(b.at(kStart + 1, {}, "")->unit_pico == 2'500'000);
  other.unit_pico = 2'600'000;
  other.effective_from = kStart + 2;
  REQUIRE(b.book.add(other).has_value());
  CHECK_FALSE(b.at(kStart + 2, {}, "").has_value());
  CHECK(b.at(kStart + 1, {}, "")->unit_pico == 2'500'000);
}

TEST_CASE_TEMPLATE("prices: the list is filtered, paged, and shows what holds at a time", Place,
                   OnFile, InMemory) {
  Book<Place> b;
  const auto first = b.book.add(price(kStart, 1));
  const auto second = b.book.add(price(kStart + kHour, 2));
  const auto third = b.book.add(price(kStart, 3, "output"));
  REQUIRE(third.has_value());
  const auto ids = [&](const PriceFilter& filter, const Page& page = {}) {
    std::vector<PriceId> out;
    for (const PriceRow& row : b.book.list(filter, page))
      out.push_back(row.price_id);
    return out;
  };
  CHECK(ids({}) == std::vector<PriceId>{*third, *second, *first});
  CHECK(ids({}, Page{.after = *third, .limit = 1}) == std::vector<PriceId>{*second});
  CHECK(ids({.at = kStart}) == std::vector<PriceId>{*third, *first});
  CHECK(ids({.at = kStart + kHour}) == std::vector<PriceId>{*third, *second});
  CHECK(ids({.meter = "input", .at = kStart + kHour}) == std::vector<PriceId>{*second});
  CHECK(ids({.vendor = "azure"}).empty());
}

// The order in which rows with different times are added doesn't matter.
TEST_CASE("prices: the price of a time does not depend on the order of the rows (law)") {
  const std::uint64_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    std::vector<PriceRow> rows;
    for (int i = 0; i < 12; ++i)
      rows.push_back(price(kStart + i * kHour, static_cast<Pico>(random() % 4)));
    Book<InMemory> ordered;
    for (const PriceRow& row : rows)
      (void)ordered.book.add(row);
    std::shuffle(rows.begin(), rows.end(), random);
    Book<InMemory> shuffled;
    for (const PriceRow& row : rows)
      (void)shuffled.book.add(row);
    for (int i = -1; i < 13; ++i) {
      const auto a = ordered.at(kStart + i * kHour);
      const auto b = shuffled.at(kStart + i * kHour);
      REQUIRE(a.has_value() == b.has_value());
      if (a) REQUIRE(a->unit_pico == b->unit_pico);
    }
  }
}

TEST_CASE_TEMPLATE("prices: a model of a vendor may stand under VENDOR/MODEL", Place, OnFile,
                   InMemory) {
  Book<Place> b;
  PriceRow row = price(kStart, 50'000);
  row.vendor = "groq";
  row.model = "groq/gpt-4o";
  REQUIRE(b.book.add(row).has_value());
  CHECK(b.at(kStart, std::nullopt, "groq")->unit_pico == 50'000);
  CHECK_FALSE(b.at(kStart, std::nullopt, "openai").has_value());
  // An event that names no vendor has the name that it has.
  CHECK_FALSE(b.at(kStart, std::nullopt, "").has_value());
  CHECK(b.book.price_at("", "groq/gpt-4o", "input", kStart, {})->unit_pico == 50'000);
  CHECK(b.book.name_of("groq", "gpt-4o") == "groq/gpt-4o");
  CHECK_FALSE(b.book.name_of("openai", "gpt-4o").has_value());
  // The plain name is asked first, and a step without a price is an answer.
  row.model = "gpt-4o";
  row.unit_pico = std::nullopt;
  REQUIRE(b.book.add(row).has_value());
  CHECK_FALSE(b.at(kStart, std::nullopt, "groq").has_value());
  CHECK(b.book.name_of("groq", "gpt-4o") == "gpt-4o");
}

}  // namespace
}  // namespace aiq::test
