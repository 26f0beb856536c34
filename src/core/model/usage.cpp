#include "core/model/usage.h"

namespace aiq {
namespace {

constexpr std::array<std::string_view, kMeterCount> kMeterNames = {
    "input", "cache_read", "cache_write_5m", "cache_write_1h", "output"};

}  // namespace

std::string_view to_string(Meter meter) {
  return kMeterNames.at(static_cast<std::size_t>(meter));
}

}  // namespace aiq
