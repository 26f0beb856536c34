#include "core/base/json_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/json_canonical.h"

namespace aiq {
namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101U;
constexpr std::uint64_t kHighs = 0x8080808080808080U;

unsigned byte_at(const char* p) {
  return static_cast<unsigned char>(*p);
}

bool is_continuation(const char* p) {
  return (byte_at(p) & 0xC0U) == 0x80U;
}

// Not zero if a byte of `word` is zero. A borrow may mark a byte above a zero byte as well, which
// does no harm: a marked word is looked at byte by byte.
std::uint64_t zero_bytes(std::uint64_t word) {
  return (word - kOnes) & ~word & kHighs;
}

bool has_special(const char* p) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  const std::uint64_t below_space = (word - kOnes * 0x20U) & ~word & kHighs;
  return ((word & kHighs) | below_space | zero_bytes(word ^ (kOnes * '"')) |
          zero_bytes(word ^ (kOnes * '\\'))) != 0;
}

}  // namespace

int utf8_length(const char* p, const char* end) {
  const unsigned lead = byte_at(p);
  if (lead < 0x80U) return 1;
  if (lead < 0xC2U || lead > 0xF4U) return 0;
  const int length = lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
  if (end - p < length) return 0;
  for (int i = 1; i < length; ++i) {
    if (!is_continuation(p + i)) return 0;
  }
  // The second byte excludes overlong forms (E0, F0), surrogates (ED) and what is beyond U+10FFFF.
  const unsigned second = byte_at(p + 1);
  if ((lead == 0xE0U && second < 0xA0U) || (lead == 0xEDU && second > 0x9FU) ||
      (lead == 0xF0U && second < 0x90U) || (lead == 0xF4U && second > 0x8FU)) {
    return 0;
  }
  return length;
}

const char* find_special(const char* p, const char* end) {
  while (p < end) {
    if (end - p >= 8 && !has_special(p)) {
      p += 8;
      continue;
    }
    const unsigned c = byte_at(p);
    if (c < 0x20U || c == '"' || c == '\\') return p;
    const int length = utf8_length(p, end);
    if (length == 0) return p;
    p += length;
  }
  return end;
}

void append_escape(std::string& out, unsigned char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '\\';
  switch (c) {
    case '"':
    case '\\':
      out += static_cast<char>(c);
      break;
    case '\b':
      out += 'b';
      break;
    case '\t':
      out += 't';
      break;
    case '\n':
      out += 'n';
      break;
    case '\f':
      out += 'f';
      break;
    case '\r':
      out += 'r';
      break;
    default:
      out += "u00";
      out += kHex[c >> 4U];
      out += kHex[c & 0xFU];
  }
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
  const auto tail = [&](unsigned shift) { put(0x80U | ((code_point >> shift) & 0x3FU)); };
  if (code_point < 0x80U) {
    put(code_point);
  } else if (code_point < 0x800U) {
    put(0xC0U | (code_point >> 6U));
    tail(0);
  } else if (code_point < 0x10000U) {
    put(0xE0U | (code_point >> 12U));
    tail(6);
    tail(0);
  } else {
    put(0xF0U | (code_point >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool utf16_less(std::string_view a, std::string_view b) {
  const std::size_t common = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i < common && a[i] == b[i])
    ++i;
  if (i == common) return a.size() < b.size();
  const auto x = static_cast<unsigned char>(a[i]);
  const auto y = static_cast<unsigned char>(b[i]);
  // 0xF0 and up begin a character beyond U+FFFF, 0xEE and 0xEF one of U+E000..U+FFFF.
  if (x >= 0xEEU && y >= 0xEEU && (x >= 0xF0U) != (y >= 0xF0U)) return x >= 0xF0U;
  return x < y;
}

bool is_valid_utf8(std::string_view bytes) {
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  while (p < end) {
    std::uint64_t word = kHighs;
    if (end - p >= 8) std::memcpy(&word, p, sizeof word);
    if ((word & kHighs) == 0) {
      p += 8;
      continue;
    }
    const int length = utf8_length(p, end);
    if (length == 0) return false;
    p += length;
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  out += '"';
  while (p < end) {
    const char* const special = find_special(p, end);
    out.append(p, special);
    p = special;
    if (p == end) break;
    if (byte_at(p) < 0x80U) {
      append_escape(out, static_cast<unsigned char>(*p));
    } else {
      append_utf8(out, 0xFFFDU);
    }
    ++p;
  }
  out += '"';
}

}  // namespace aiq
