#pragma once
// Metered use of a vendor. Meters are disjoint: no token is in two of them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace aiq {

enum class Meter : std::uint8_t {
  input,           // uncached prompt tokens
  cache_read,      // prompt tokens read from the vendor's cache
  cache_write_5m,  // prompt tokens written to it for 5 minutes
  cache_write_1h,  // and for an hour
  output,          // generated tokens, reasoning included
};
inline constexpr int kMeterCount = 5;
[[nodiscard]] std::string_view to_string(Meter meter);

struct Usage {
  std::array<std::int64_t, kMeterCount> units{};  // tokens, each >= 0, by Meter

  [[nodiscard]] std::int64_t& operator[](Meter m) { return units[static_cast<std::size_t>(m)]; }
  [[nodiscard]] std::int64_t operator[](Meter m) const {
    return units[static_cast<std::size_t>(m)];
  }
  // Tokens of the prompt, however the vendor had them.
  [[nodiscard]] std::int64_t prompt() const {
    return (*this)[Meter::input] + (*this)[Meter::cache_read] + (*this)[Meter::cache_write_5m] +
           (*this)[Meter::cache_write_1h];
  }
  bool operator==(const Usage&) const = default;
};

}  // namespace aiq
