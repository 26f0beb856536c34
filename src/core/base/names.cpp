#include "core/base/names.h"

#include <algorithm>

#include "core/base/json_canonical.h"

namespace aiq {
namespace {

bool is_name(std::string_view name, std::size_t max_bytes, std::string_view punctuation) {
  return !name.empty() && name.size() <= max_bytes &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  punctuation.find(c) != std::string_view::npos;
         });
}

}  // namespace

bool is_tenant_name(std::string_view name) {
  return is_name(name, 64, "._-");
}

bool is_label_name(std::string_view name) {
  return is_name(name, 128, "._:/-");
}

bool is_plain_text(std::string_view text, std::size_t max_bytes) {
  if (text.size() > max_bytes || !is_valid_utf8(text)) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20U || c == 0x7FU) return false;
    // U+0080..U+009F (C2 80..C2 9F) are control characters too; U+009B starts terminal sequences.
    if (c == 0xC2U && static_cast<unsigned char>(text[i + 1]) < 0xA0U) return false;
  }
  return true;
}

}  // namespace aiq
