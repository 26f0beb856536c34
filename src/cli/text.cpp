#include "cli/text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/json_text.h"

namespace aiq::cli {
namespace {

struct Range {
  char32_t first, last;
};

// Characters that sit on the one before them (the common blocks of category Mn and Cf).
constexpr Range kZeroWidth[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},   {0x064B, 0x065F},
    {0x06D6, 0x06DC}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},   {0x1AB0, 0x1AFF},
    {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},   {0x20D0, 0x20FF},
    {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF},
};

// East Asian wide and fullwidth characters, and emoji.
constexpr Range kDoubleWidth[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE4F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F3FA},
    {0x1F400, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};

template <std::size_t N>
bool in(const Range (&ranges)[N], char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](Range r) { return c >= r.first && c <= r.last; });
}

std::size_t width_of(char32_t c) {
  if (c < 0x300) return 1;
  if (in(kZeroWidth, c)) return 0;
  return in(kDoubleWidth, c) ? 2 : 1;
}

struct Character {
  std::string_view bytes;
  char32_t code = 0xFFFD;
  std::size_t width = 1;
  bool valid = false;
};

Character next_character(std::string_view text) {
  const int length = utf8_length(text.data(), text.data() + text.size());
  if (length == 0) return {.bytes = text.substr(0, 1)};
  const auto lead = static_cast<unsigned char>(text[0]);
  constexpr std::array<unsigned, 5> kLeadBits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = lead & kLeadBits[static_cast<std::size_t>(length)];
  for (int i = 1; i < length; ++i) {
    code = (code << 6U) | (static_cast<unsigned char>(text[static_cast<std::size_t>(i)]) & 0x3FU);
  }
  return {.bytes = text.substr(0, static_cast<std::size_t>(length)),
          .code = code,
          .width = width_of(code),
          .valid = true};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_control(char32_t c) {
  // The bidirectional overrides can make a line read as another one.
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character c = next_character(text);
    width += c.width;
    text.remove_prefix(c.bytes.size());
  }
  return width;
}

std::string cut(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::size_t used = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    const Character c = next_character(text.substr(end));
    if (used + c.width > width - 1) break;
    used += c.width;
    end += c.bytes.size();
  }
  // Half a number would read as another number.
  if (end < text.size() && is_digit(text[end])) {
    while (end > 0 && is_digit(text[end - 1]))
      --end;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = next_character(text);
    if (!c.valid) {
      append_utf8(out, 0xFFFD);
    } else if (is_control(c.code)) {
      out += ' ';
    } else {
      out += c.bytes;
    }
    text.remove_prefix(c.bytes.size());
  }
  return out;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::size_t used = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    const std::size_t word_width = display_width(word);
    if (used > 0 && used + 1 + word_width > width) {
      lines.emplace_back();
      used = 0;
    }
    if (used > 0) lines.back() += ' ';
    lines.back() += word;
    used += word_width + (used > 0 ? 1 : 0);
  }
  return lines;
}

std::string short_age(DurationMs age_ms) {
  const std::int64_t seconds = std::max<std::int64_t>(age_ms, 0) / 1000;
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 2 * 86400) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

std::string without_fraction(std::string_view rfc3339) {
  const std::size_t dot = rfc3339.find('.');
  const bool plain = rfc3339.size() == 24 && dot == 19 && rfc3339.back() == 'Z';
  return plain ? std::string(rfc3339.substr(0, dot)) + "Z" : std::string(rfc3339);
}

std::string counted(std::int64_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string human_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> buffer{};
  const bool whole =
      unit == 0 || value >= 10 || value == static_cast<double>(static_cast<int>(value));
  std::snprintf(buffer.data(), buffer.size(), whole ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return buffer.data();
}

}  // namespace aiq::cli
