#include "core/base/duration.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>

namespace aiq {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t size;
};

constexpr std::array<Unit, 5> kDurations{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
constexpr DurationMs kDurationMax = 36'525 * kDurations[0].size;  // 100 years

constexpr std::array<Unit, 4> kBinarySizes{
    {{"TiB", std::int64_t{1} << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}};
constexpr std::array<Unit, 3> kDecimalSizes{
    {{"GB", 1'000'000'000}, {"MB", 1'000'000}, {"kB", 1'000}}};

// Takes a whole number from the front of `text`; nullopt without digits or beyond 64 bits.
std::optional<std::int64_t> take_number(std::string_view& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

std::string_view take_letters(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && ((text[n] | 0x20) >= 'a' && (text[n] | 0x20) <= 'z'))
    ++n;
  const std::string_view letters = text.substr(0, n);
  text.remove_prefix(n);
  return letters;
}

// The magnitude without overflow for the smallest number.
std::uint64_t magnitude(std::int64_t n) {
  return n < 0 ? 0U - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
}

}  // namespace

std::optional<DurationMs> parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  DurationMs total = 0;
  std::size_t next = 0;  // units from here on are still allowed
  while (!text.empty()) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    const std::string_view name = take_letters(text);
    while (next < kDurations.size() && kDurations[next].name != name)
      ++next;
    if (next == kDurations.size()) return std::nullopt;
    const std::int64_t size = kDurations[next++].size;
    if (*number > (kDurationMax - total) / size) return std::nullopt;
    total += *number * size;
  }
  return total;
}

std::string format_duration(DurationMs ms) {
  if (ms == 0) return "0s";
  std::string out = ms < 0 ? "-" : "";
  std::uint64_t rest = magnitude(ms);
  for (const Unit& unit : kDurations) {
    const auto size = static_cast<std::uint64_t>(unit.size);
    if (rest >= size) out.append(std::to_string(rest / size)).append(unit.name);
    rest %= size;
  }
  return out;
}

std::string format_age(DurationMs ms) {
  std::string out = ms < 0 ? "-" : "";
  const std::uint64_t n = magnitude(ms);
  if (n < 1'000) return out + std::to_string(n) + "ms";
  if (n < 60'000) {
    out += std::to_string(n / 1'000);
    if (const std::uint64_t tenths = n % 1'000 / 100; tenths > 0) {
      out += "." + std::to_string(tenths);
    }
    return out + "s";
  }
  for (std::size_t i = 0;; ++i) {
    const auto size = static_cast<std::uint64_t>(kDurations[i].size);
    if (n < size) continue;
    out.append(std::to_string(n / size)).append(kDurations[i].name);
    const std::uint64_t minor = n % size / static_cast<std::uint64_t>(kDurations[i + 1].size);
    if (minor > 0) out.append(" ").append(std::to_string(minor)).append(kDurations[i + 1].name);
    return out;
  }
}

std::optional<std::int64_t> parse_size(std::string_view text) {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  if (text.empty()) return number;
  const auto scaled = [&](const auto& units) -> std::optional<std::int64_t> {
    for (const Unit& unit : units) {
      if (unit.name == text && *number <= std::numeric_limits<std::int64_t>::max() / unit.size) {
        return *number * unit.size;
      }
    }
    return std::nullopt;
  };
  const auto binary = scaled(kBinarySizes);
  return binary ? binary : scaled(kDecimalSizes);
}

std::string format_size(std::int64_t bytes) {
  for (const Unit& unit : kBinarySizes) {
    if (bytes != 0 && bytes % unit.size == 0) {
      return std::to_string(bytes / unit.size).append(unit.name);
    }
  }
  return std::to_string(bytes);
}

}  // namespace aiq
