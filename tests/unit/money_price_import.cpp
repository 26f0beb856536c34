// Price books of others.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/base/file.h"
#include "core/money/price_import.h"

namespace aiq {
namespace {

constexpr UnixMs kFrom = 1'772'323'200'000;  // 2026-03-01T00:00:00Z

PriceFile litellm(std::string_view text, bool allow_outliers = false) {
  auto file =
      read_litellm_prices(text, {.effective_from = kFrom, .allow_outliers = allow_outliers});
  REQUIRE(file.has_value());
  return *std::move(file);
}

// "meter/above" -> price per million, "none" for known to have none.
std::map<std::string, std::string> prices_of(const PriceFile& file, std::string_view model) {
  std::map<std::string, std::string> out;
  for (const PriceRow& row : file.rows) {
    if (row.model != model) continue;
    const std::string series =
        row.meter + (row.above_tokens == 0 ? "" : "/" + std::to_string(row.above_tokens));
    out[series] = row.unit_pico ? format_price_per_million(*row.unit_pico) : "none";
  }
  return out;
}

std::vector<std::string> codes_of(const PriceFile& file, std::string_view key) {
  std::vector<std::string> out;
  for (const PriceProblem& problem : file.problems)
    if (problem.key == key) out.push_back(problem.code);
  return out;
}

using Prices = std::map<std::string, std::string>;
using Codes = std::vector<std::string>;

TEST_CASE("price import: takes the prices of tokens, exactly, and names what else there is") {
  const PriceFile file = litellm(R"({
    "sample_spec": {"input_cost_per_token": 9},
    "gpt-4o": {"litellm_provider": "openai", "mode": "chat", "max_tokens": 16384,
      "input_cost_per_token": 2.5e-06, "output_cost_per_token": 0.00001,
      "cache_read_input_token_cost": 1.25E-6, "input_cost_per_token_batches": 1.25e-06,
      "cache_creation_input_token_cost": 3.75e-06,
      "cache_creation_input_token_cost_above_1hr": 6e-06,
      "input_cost_per_audio_token": 1e-4, "search_context_cost_per_query": {"low": 0.1}},
    "dall-e": {"litellm_provider": "openai", "input_cost_per_pixel": 1e-8}})");
  CHECK(prices_of(file, "gpt-4o") == Prices{{"input", "2.50"},
                                            {"output", "10.00"},
                                            {"cache_read", "1.25"},
                                            {"cache_write_5m", "3.75"},
                                            {"cache_write_1h", "6.00"}});
  CHECK(file.rows.size() == 5);
  const PriceRow& row = file.rows.front();
  CHECK(row.vendor == "openai");
  CHECK(row.currency == "USD");
  CHECK(row.effective_from == kFrom);
  CHECK(row.origin == "litellm");
  CHECK(codes_of(file, "input_cost_per_token_batches") == Codes{"batch"});
  CHECK(codes_of(file, "input_cost_per_audio_token") == Codes{"audio"});
  CHECK(codes_of(file, "search_context_cost_per_query") == Codes{"per_query"});
  CHECK(codes_of(file, "input_cost_per_pixel") == Codes{"per_pixel"});
  CHECK(codes_of(file, "") == Codes{"no_token_price"});
  CHECK(file.skipped == 5);
  CHECK(file.quarantined == 0);
}

TEST_CASE("price import: a price of 0 is one, no price is none") {
  const PriceFile file = litellm(R"({"embed": {"litellm_provider": "openai",
    "input_cost_per_token": 2e-08, "output_cost_per_token": 0.0,
    "cache_read_input_token_cost": null}})");
  CHECK(prices_of(file, "embed") == Prices{{"input", "0.02"}, {"output", "0.00"}});
}

TEST_CASE("price import: what looks wrong is kept out, and only outliers can be let in") {
  constexpr const char* kText = R"({
    "a": {"litellm_provider": "v", "input_cost_per_token": 0.0006, "output_cost_per_token": 2e-4},
    "b": {"litellm_provider": "v", "input_cost_per_token": -1e-6, "output_cost_per_token": 1e-13},
    "c": {"litellm_provider": "v", "input_cost_per_token": "cheap", "output_cost_per_token": 1e99},
    "d": {"litellm_provider": "", "input_cost_per_token": 1e-6}})";
  const PriceFile file = litellm(kText);
  CHECK(prices_of(file, "a") == Prices{{"output", "200.00"}});
  CHECK(file.rows.size() == 1);
  CHECK(file.quarantined == 6);
  CHECK(codes_of(file, "input_cost_per_token") == Codes{"outlier", "negative", "not_a_number"});
  CHECK(codes_of(file, "output_cost_per_token") ==
        Codes{"price_not_representable", "amount_overflow"});
  CHECK(codes_of(file, "litellm_provider") == Codes{"invalid_name"});

  const PriceFile all = litellm(kText, true);
  CHECK(prices_of(all, "a") == Prices{{"input", "600.00"}, {"output", "200.00"}});
  CHECK(all.rows.size() == 2);
  CHECK(all.quarantined == 5);
}

TEST_CASE("price import: above a threshold a meter without its own price has none") {
  const PriceFile file = litellm(R"({"gemini": {"litellm_provider": "g",
    "input_cost_per_token": 1e-06, "input_cost_per_token_above_128k_tokens": 2e-06,
    "output_cost_per_token": 4e-06,
    "output_cost_per_token_above_200k_tokens": 9e-03}})");
  CHECK(prices_of(file, "gemini") == Prices{{"input", "1.00"},
                                            {"input/128000", "2.00"},
                                            {"input/200000", "none"},
                                            {"output", "4.00"},
                                            {"output/128000", "none"},
                                            {"output/200000", "none"}});
  CHECK(codes_of(file, "output_cost_per_token_above_128k_tokens") == Codes{"no_tier_price"});
  CHECK(codes_of(file, "output_cost_per_token_above_200k_tokens") ==
        Codes{"outlier", "no_tier_price"});
}

TEST_CASE("price import: other names of a meter") {
  const PriceFile file = litellm(R"({
    "deepseek": {"litellm_provider": "v", "input_cost_per_token": 1e-06,
      "input_cost_per_token_cache_hit": 1e-07},
    "both": {"litellm_provider": "v", "input_cost_per_token_cache_hit": 3e-07,
      "cache_read_input_token_cost": 2e-07},
    "thinks": {"litellm_provider": "v", "output_cost_per_token": 6e-07,
      "output_cost_per_reasoning_token": 3.5e-06},
    "same": {"litellm_provider": "v", "output_cost_per_token": 2.5e-06,
      "output_cost_per_reasoning_token": 0.0000025}})");
  CHECK(prices_of(file, "deepseek")["cache_read"] == "0.10");
  CHECK(prices_of(file, "both")["cache_read"] == "0.20");
  CHECK(codes_of(file, "input_cost_per_token_cache_hit") == Codes{"other_name"});
  CHECK(codes_of(file, "output_cost_per_reasoning_token") ==
        Codes{"reasoning_price_differs", "inside_output"});
}

TEST_CASE("price import: a file that is none is refused") {
  const LitellmOptions options;
  CHECK_FALSE(read_litellm_prices("[]", options).has_value());
  CHECK_FALSE(read_litellm_prices("{", options).has_value());
  CHECK_FALSE(read_litellm_prices(R"({"a": 1})", options).has_value());
  CHECK_FALSE(read_litellm_prices(R"({"a": {}, "a": {}})", options).has_value());
  CHECK_FALSE(read_litellm_prices(
                  R"({"a": {"input_cost_per_token": 1, "input_cost_per_token": 2}})", options)
                  .has_value());
}

TEST_CASE("price import: rows of another book, the last of each time") {
  constexpr const char* kText =
      R"({"price_id":"3","vendor":"v","model":"m","meter":"input","currency":"EUR","above_tokens":128000,"price_per_million":null,"effective_from":"2026-03-01T00:00:00.000Z"}
{"price_id":"2","vendor":"v","model":"m","meter":"input","currency":"EUR","price_per_million":"2.50","effective_from":"2026-03-01T00:00:00Z"}

{"price_id":"1","vendor":"v","model":"m","meter":"input","currency":"EUR","price_per_million":"9","effective_from":"2026-03-01T00:00:00Z"}
)";
  const auto file = read_aiq_prices(kText, std::nullopt);
  REQUIRE(file.has_value());
  CHECK(prices_of(*file, "m") == Prices{{"input", "2.50"}, {"input/128000", "none"}});
  CHECK(file->rows.front().effective_from == kFrom);
  CHECK(file->rows.front().currency == "EUR");
  CHECK(file->rows.front().origin == "aiq");
  const auto moved = read_aiq_prices(kText, kFrom + 1);
  REQUIRE(moved.has_value());
  CHECK(moved->rows.front().effective_from == kFrom + 1);
}

TEST_CASE("price import: a bad row of another book refuses the book, by its line") {
  const std::string good =
      R"({"vendor":"v","model":"m","meter":"input","currency":"USD","price_per_million":"1","effective_from":"2026-03-01T00:00:00Z"})";
  REQUIRE(read_aiq_prices(good, std::nullopt).has_value());
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"1\"", "\"1.0000001\""},
                                                        {"\"1\"", "-1"},
                                                        {"\"1\"", "\"x\""},
                                                        {"\"price_per_million\":\"1\",", ""},
                                                        {"USD", "usd"},
                                                        {"\"input\"", "\"In\""},
                                                        {"\"v\"", "\"a b\""},
                                                        {"2026-03-01", "2026-13-01"},
                                                        {"\"meter\"", "\"model\""}}) {
    CAPTURE(to);
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    const auto file = read_aiq_prices(good + "\n" + bad, std::nullopt);
    REQUIRE_FALSE(file.has_value());
    CHECK(file.error().exit == Exit::usage);
    CHECK(file.error().message.find("line 2") != std::string::npos);
  }
}

// The whole file of LiteLLM, where there is one.
TEST_CASE("price import: LiteLLM's own file") {
  const char* folder = std::getenv("AIQ_SHARED");
  const std::string path = (folder != nullptr ? std::string(folder) : AIQ_SOURCE_DIR "/../shared") +
                           "/data/litellm_model_prices.json";
  const auto text = read_file(path, 64 << 20);
  if (!text) {
    MESSAGE("not tested: " << text.error().message);
    return;
  }
  const PriceFile file = litellm(*text);
  CHECK(file.rows.size() > 3000);
  CHECK(prices_of(file, "gpt-4o-mini") ==
        Prices{{"input", "0.15"}, {"output", "0.60"}, {"cache_read", "0.075"}});
  CHECK(prices_of(file, "gemini-1.5-flash")["input/128000"] == "1.00");
  CHECK(prices_of(file, "o1-pro").count("output") == 0);
  CHECK(std::all_of(file.rows.begin(), file.rows.end(), [](const PriceRow& row) {
    return !row.unit_pico || (*row.unit_pico >= 0 && *row.unit_pico <= kOutlierUnitPico);
  }));
}

}  // namespace
}  // namespace aiq
