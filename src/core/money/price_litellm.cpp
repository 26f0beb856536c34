#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "core/base/names.h"
#include "core/money/json_object.h"
#include "core/money/price_import.h"

namespace aiq {
namespace {

constexpr std::string_view kProviderKey = "litellm_provider";
// The entry that documents the file's format.
constexpr std::string_view kSampleModel = "sample_spec";
constexpr std::size_t kModelBytesMax = 200;

struct MeterKey {
  std::string_view key, meter;
};
constexpr std::array<MeterKey, 5> kMeters = {{
    {"input_cost_per_token", "input"},
    {"output_cost_per_token", "output"},
    {"cache_read_input_token_cost", "cache_read"},
    {"cache_creation_input_token_cost", "cache_write_5m"},
    {"cache_creation_input_token_cost_above_1hr", "cache_write_1h"},
}};
constexpr std::string_view kCacheHitKey = "input_cost_per_token_cache_hit";
constexpr std::string_view kReasoningKey = "output_cost_per_reasoning_token";

// What a price is for that has no meter here, by a part of its key; the first that fits.
struct Unit {
  std::string_view part, code;
};
constexpr std::array<Unit, 12> kUnits = {{
    {"batch", "batch"},
    {"audio_token", "audio"},
    {"per_second", "per_second"},
    {"_per_image", "per_image"},
    {"_per_pixel", "per_pixel"},
    {"_per_character", "per_character"},
    {"_per_query", "per_query"},
    {"_per_request", "per_request"},
    {"_per_page", "per_page"},
    {"dbu_cost", "other_currency"},
    {"db_cost", "other_currency"},
    {"reasoning", "reasoning"},
}};

// "..._above_200k_tokens" -> {"...", 200000}; no such ending: {key, 0}.
std::pair<std::string_view, std::int64_t> split_step(std::string_view key) {
  constexpr std::string_view kAbove = "_above_";
  constexpr std::string_view kEnd = "k_tokens";
  const std::size_t at = key.rfind(kAbove);
  if (at == std::string_view::npos || !key.ends_with(kEnd)) return {key, 0};
  const std::string_view digits =
      key.substr(at + kAbove.size(), key.size() - kEnd.size() - at - kAbove.size());
  std::int64_t thousands = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), thousands);
  if (error != std::errc{} || end != digits.data() + digits.size() || thousands <= 0 ||
      thousands > 1'000'000'000)
    return {key, 0};
  return {key.substr(0, at), thousands * 1000};
}

std::string_view meter_of(std::string_view base_key) {
  for (const MeterKey& known : kMeters)
    if (known.key == base_key) return known.meter;
  return "";
}

std::string shown(std::string_view literal) {
  return is_json_string(literal) ? decode_json_string(literal) : std::string(literal);
}

// The price of one unit, or the code of what is wrong with it.
Expected<Pico, std::string> read_price(std::string_view literal, bool allow_outliers) {
  const std::string text = shown(literal);
  const auto pico = parse_price_per_unit(text);
  if (!pico) {
    switch (pico.error()) {
      case DecimalError::syntax:
        return Unexpected{std::string("not_a_number")};
      case DecimalError::not_representable:
        return Unexpected{std::string("price_not_representable")};
      case DecimalError::overflow:
        return Unexpected{std::string("amount_overflow")};
    }
  }
  if (*pico < 0) return Unexpected{std::string("negative")};
  if (*pico > kOutlierUnitPico && !allow_outliers) return Unexpected{std::string("outlier")};
  return *pico;
}

// What one model's entry says.
class ModelReader {
 public:
  ModelReader(std::string model, const LitellmOptions& options, PriceFile& file)
      : model_(std::move(model)), options_(options), file_(file) {}

  void read(const JsonObject& entry) {
    const std::string vendor = entry.text(kProviderKey).value_or("");
    if (!is_label_name(vendor)) return quarantine(kProviderKey, vendor, "invalid_name");
    if (!is_plain_text(model_, kModelBytesMax)) return quarantine("", "", "invalid_name");
    for (const auto& [key, literal] : entry.members())
      if (literal != "null") read_member(key, literal, entry);
    add_missing_steps();
    for (const auto& [series, pico] : prices_)
      file_.rows.push_back({.vendor = vendor,
                            .model = model_,
                            .meter = series.first,
                            .currency = "USD",
                            .above_tokens = series.second,
                            .unit_pico = pico,
                            .effective_from = options_.effective_from,
                            .origin = "litellm"});
    if (prices_.empty() && !quarantined_) skip("", "", "no_token_price");
  }

 private:
  using Series = std::pair<std::string, std::int64_t>;  // meter, above_tokens

  void read_member(const std::string& key, std::string_view literal, const JsonObject& entry) {
    const auto [base, above] = split_step(key);
    if (above > 0 && key.find("cost") != std::string::npos) steps_.insert(above);
    if (const std::string_view meter = meter_of(base); !meter.empty())
      return take({std::string(meter), above}, key, literal);
    if (key == kCacheHitKey && !entry.literal("cache_read_input_token_cost"))
      return take({"cache_read", 0}, key, literal);
    if (key.find("cost") == std::string::npos) return;
    skip(key, literal, unit_code(key, literal, entry));
  }

  [[nodiscard]] static std::string unit_code(const std::string& key, std::string_view literal,
                                             const JsonObject& entry) {
    if (key == kCacheHitKey) return "other_name";
    if (key == kReasoningKey) {
      // Reasoning is inside output here; where it costs the same, nothing is lost.
      const auto output = entry.literal("output_cost_per_token");
      const bool same = output && parse_same(*output, literal);
      return same ? "inside_output" : "reasoning_price_differs";
    }
    for (const Unit& unit : kUnits)
      if (key.find(unit.part) != std::string::npos) return std::string(unit.code);
    return "other_unit";
  }
  [[nodiscard]] static bool parse_same(std::string_view a, std::string_view b) {
    const auto x = parse_price_per_unit(shown(a));
    const auto y = parse_price_per_unit(shown(b));
    return x && y && *x == *y;
  }

  void take(Series series, const std::string& key, std::string_view literal) {
    const auto pico = read_price(literal, options_.allow_outliers);
    if (!pico) return quarantine(key, literal, pico.error());
    prices_[std::move(series)] = *pico;
  }

  void add_missing_steps() {
    std::set<std::string> meters;
    for (const auto& [series, pico] : prices_)
      meters.insert(series.first);
    for (const std::string& meter : meters)
      for (const std::int64_t above : steps_)
        if (prices_.try_emplace({meter, above}, std::nullopt).second)
          note(key_of(meter) + "_above_" + std::to_string(above / 1000) + "k_tokens", "",
               "no_tier_price");
  }
  [[nodiscard]] static std::string key_of(const std::string& meter) {
    for (const MeterKey& known : kMeters)
      if (known.meter == meter) return std::string(known.key);
    return meter;
  }

  void note(std::string_view key, std::string_view literal, std::string code) {
    file_.problems.push_back({model_, std::string(key), shown(literal), std::move(code)});
  }
  void quarantine(std::string_view key, std::string_view literal, std::string code) {
    ++file_.quarantined;
    quarantined_ = true;
    note(key, literal, std::move(code));
  }
  void skip(std::string_view key, std::string_view literal, std::string code) {
    ++file_.skipped;
    note(key, literal, std::move(code));
  }

  std::string model_;
  const LitellmOptions& options_;
  PriceFile& file_;
  std::map<Series, std::optional<Pico>> prices_;
  std::set<std::int64_t> steps_;
  bool quarantined_ = false;
};

}  // namespace

Expected<PriceFile, Failure> read_litellm_prices(std::string_view text,
                                                 const LitellmOptions& options) {
  const auto models = JsonObject::read(text);
  if (!models)
    return Unexpected{Failure{Exit::usage, "invalid_price_file",
                              "the file is no price book of LiteLLM: " + models.error().message +
                                  " (at byte " + std::to_string(models.error().offset) + ")",
                              "expected is one JSON object with a member per model"}};
  PriceFile file;
  for (const auto& [model, literal] : models->members()) {
    if (model == kSampleModel) continue;
    const auto entry = JsonObject::read(literal);
    if (!entry)
      return Unexpected{Failure{Exit::usage, "invalid_price_file",
                                "the entry of " + model + " is no JSON object",
                                "expected is LiteLLM's model_prices_and_context_window.json"}};
    ModelReader(model, options, file).read(*entry);
  }
  return file;
}

}  // namespace aiq
