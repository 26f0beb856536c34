#include "core/vendor/usage_reader.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

namespace aiq {
namespace {

using Json = nlohmann::json;

// Above this a count is no count, and sums of a few still fit.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 53;

// Reads counts and remembers whether one of them was impossible.
class CountReader {
 public:
  explicit CountReader(const Json* object) : object_(object) {}

  // Absent and null are the same: many servers send null for what they do not count.
  [[nodiscard]] std::optional<std::int64_t> read(std::string_view name) {
    const Json* value = member(name);
    if (value == nullptr) return std::nullopt;
    const auto count = as_count(*value);
    if (!count) valid_ = false;
    return count;
  }
  // A count of a sub-object.
  [[nodiscard]] std::optional<std::int64_t> read(std::string_view part, std::string_view name) {
    const Json* object = member(part);
    if (object == nullptr) return std::nullopt;
    CountReader inner(object);
    const auto count = inner.read(name);
    valid_ = valid_ && inner.valid_ && object->is_object();
    return count;
  }
  [[nodiscard]] bool valid() const { return valid_; }

 private:
  [[nodiscard]] const Json* member(std::string_view name) const {
    if (object_ == nullptr || !object_->is_object()) return nullptr;
    const auto found = object_->find(name);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
  }

  // Some servers print counts as 12.0; 12.5 is none.
  [[nodiscard]] static std::optional<std::int64_t> as_count(const Json& value) {
    std::int64_t count = -1;
    if (value.is_number_unsigned()) {
      const auto wide = value.get<std::uint64_t>();
      if (wide <= static_cast<std::uint64_t>(kMaxTokens)) count = static_cast<std::int64_t>(wide);
    } else if (value.is_number_float()) {
      const double number = value.get<double>();
      if (number >= 0 && number <= static_cast<double>(kMaxTokens) &&
          number == std::floor(number)) {
        count = static_cast<std::int64_t>(number);
      }
    }
    return count < 0 ? std::nullopt : std::optional(count);
  }

  const Json* object_;
  bool valid_ = true;
};

[[nodiscard]] const Json* usage_of(const Json& answer) {
  if (!answer.is_object()) return nullptr;
  const auto found = answer.find("usage");
  return found == answer.end() || found->is_null() ? nullptr : &*found;
}

const UsageReading kMissing{UsageState::missing, {}};
const UsageReading kInvalid{UsageState::invalid, {}};

}  // namespace

UsageReading read_openai_usage(const Json& answer) {
  const Json* usage = usage_of(answer);
  if (usage == nullptr) return kMissing;
  if (!usage->is_object()) return kInvalid;
  CountReader reader(usage);
  const bool responses = usage->contains("input_tokens");
  const auto prompt = reader.read(responses ? "input_tokens" : "prompt_tokens");
  const auto completion = reader.read(responses ? "output_tokens" : "completion_tokens");
  const auto* in_parts = responses ? "input_tokens_details" : "prompt_tokens_details";
  const auto* out_parts = responses ? "output_tokens_details" : "completion_tokens_details";
  const auto cached = reader.read(in_parts, "cached_tokens").value_or(0);
  const auto written = reader.read(in_parts, "cache_write_tokens").value_or(0);
  const auto reasoning = reader.read(out_parts, "reasoning_tokens").value_or(0);
  if (!reader.valid()) return kInvalid;
  if (!prompt && !completion) return kMissing;
  if (cached + written > prompt.value_or(0) || reasoning > completion.value_or(0)) return kInvalid;

  UsageReading reading{UsageState::ok, {}};
  reading.usage[Meter::input] = prompt.value_or(0) - cached - written;
  reading.usage[Meter::cache_read] = cached;
  reading.usage[Meter::cache_write_5m] = written;
  reading.usage[Meter::output] = completion.value_or(0);
  return reading;
}

UsageReading read_anthropic_usage(const Json& answer) {
  const Json* usage = usage_of(answer);
  if (usage == nullptr) return kMissing;
  if (!usage->is_object()) return kInvalid;
  CountReader reader(usage);
  const auto input = reader.read("input_tokens");
  const auto output = reader.read("output_tokens");
  const auto cache_read = reader.read("cache_read_input_tokens").value_or(0);
  const auto written = reader.read("cache_creation_input_tokens");
  auto for_5m = reader.read("cache_creation", "ephemeral_5m_input_tokens");
  const auto for_1h = reader.read("cache_creation", "ephemeral_1h_input_tokens");
  if (!reader.valid()) return kInvalid;
  if (!input && !output) return kMissing;
  if (!for_5m && !for_1h) {
    for_5m = written;
  } else if (written && for_5m.value_or(0) + for_1h.value_or(0) != *written) {
    return kInvalid;
  }

  UsageReading reading{UsageState::ok, {}};
  reading.usage[Meter::input] = input.value_or(0);
  reading.usage[Meter::cache_read] = cache_read;
  reading.usage[Meter::cache_write_5m] = for_5m.value_or(0);
  reading.usage[Meter::cache_write_1h] = for_1h.value_or(0);
  reading.usage[Meter::output] = output.value_or(0);
  return reading;
}

}  // namespace aiq
