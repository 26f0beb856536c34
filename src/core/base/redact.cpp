#include "core/base/redact.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/credential_scan.h"
#include "core/base/json_canonical.h"

namespace aiq {
namespace {

constexpr std::size_t kMinSecretBytes = 4;
// Below it a piece of Base64 is found by chance in larger Base64 texts, such as images.
constexpr std::size_t kMinBase64Piece = 8;

std::string json_form(std::string_view secret, bool escape_slash) {
  std::string literal;
  append_json_string(literal, secret);
  std::string out;
  for (const char c : std::string_view(literal).substr(1, literal.size() - 2)) {
    if (c == '/' && escape_slash) out += '\\';
    out += c;
  }
  return out;
}

// RFC 3986, or application/x-www-form-urlencoded, where a space is '+'.
std::string percent_form(std::string_view secret, std::string_view hex, bool form) {
  std::string out;
  for (const char c : secret) {
    const auto byte = static_cast<unsigned char>(c);
    const char lower = static_cast<char>(c | 0x20);
    if ((c >= '0' && c <= '9') || (byte < 0x80U && lower >= 'a' && lower <= 'z') || c == '-' ||
        c == '.' || c == '_' || (c == '~' && !form) || (c == '*' && form)) {
      out += c;
    } else if (c == ' ' && form) {
      out += '+';
    } else {
      out += '%';
      out += hex[byte >> 4U];
      out += hex[byte & 0xFU];
    }
  }
  return out;
}

std::string base64(std::string_view bytes, bool url_safe) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8U | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const char c = kAlphabet[(group >> (18U - 6U * k)) & 0x3FU];
      out += k > count ? '=' : url_safe && c == '+' ? '-' : url_safe && c == '/' ? '_' : c;
    }
  }
  return out;
}

void add_base64_forms(std::vector<std::string>& forms, std::string_view secret) {
  for (const bool url_safe : {false, true}) {
    std::string whole = base64(secret, url_safe);
    forms.push_back(whole);
    forms.push_back(whole.substr(0, whole.find('=')));
    // Inside a longer text ("user:secret") the secret may begin at any bit position. Only the
    // characters that depend on nothing but the secret are a fixed text.
    for (std::size_t before = 0; before < 3; ++before) {
      const std::string text = base64(std::string(before, '\0').append(secret), url_safe);
      const std::size_t first = (8 * before + 5) / 6;
      const std::size_t last = 8 * (before + secret.size()) / 6;
      if (last - first >= kMinBase64Piece) forms.push_back(text.substr(first, last - first));
    }
  }
}

std::vector<std::string> forms_of(std::string_view secret) {
  std::vector<std::string> forms{std::string(secret)};
  for (const bool escape_slash : {false, true})
    forms.push_back(json_form(secret, escape_slash));
  for (const std::string_view hex : {"0123456789ABCDEF", "0123456789abcdef"}) {
    for (const bool form : {false, true})
      forms.push_back(percent_form(secret, hex, form));
  }
  add_base64_forms(forms, secret);
  return forms;
}

// A byte that may be written as an escape: "-" as \u002d, %2D, &#45; or &#x2d;.
struct Unit {
  char byte = 0;
  std::size_t size = 0;  // bytes that it takes in the text; 0 = no escape of one byte
};

// The number at `at` in `base`, of `digits` digits at most; its end is the second.
std::pair<unsigned, std::size_t> number_at(std::string_view text, std::size_t at, int base,
                                           std::size_t digits) {
  unsigned value = 0x100;
  const char* const first = text.data() + std::min(at, text.size());
  const char* const last = first + std::min(digits, text.size() - std::min(at, text.size()));
  const auto [end, error] = std::from_chars(first, last, value, base);
  if (error != std::errc()) value = 0x100;
  return {value, static_cast<std::size_t>(end - text.data())};
}

// \uXXXX after any number of backslashes: an answer may hold JSON in a string of JSON.
Unit json_escape(std::string_view text, std::size_t at) {
  constexpr std::size_t kDeepest = 15;  // four strings in one another
  const std::size_t run = text.substr(at, kDeepest + 1).find_first_not_of('\\');
  if (run == std::string_view::npos) return {};
  const std::size_t letter = at + run;
  if (text[letter] == 'u') {
    const auto [value, end] = number_at(text, letter + 1, 16, 4);
    if (value < 0x80 && end == letter + 5) return {static_cast<char>(value), end - at};
    return {};
  }
  const bool escaped = text[letter] == '/' || text[letter] == '"';
  return escaped ? Unit{text[letter], letter + 1 - at} : Unit{};
}

Unit html_escape(std::string_view text, std::size_t at) {
  constexpr std::pair<std::string_view, char> kNames[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  const std::string_view rest = text.substr(at);
  for (const auto& [name, byte] : kNames) {
    if (rest.starts_with(name)) return {byte, name.size()};
  }
  if (!rest.starts_with("&#")) return {};
  const bool hex = rest.size() > 2 && (rest[2] == 'x' || rest[2] == 'X');
  const auto [value, end] = number_at(text, at + (hex ? 3 : 2), hex ? 16 : 10, 8);
  if (value >= 0x80 || end >= text.size() || text[end] != ';') return {};
  return {static_cast<char>(value), end + 1 - at};
}

Unit escape_at(std::string_view text, std::size_t at) {
  if (text[at] == '\\') return json_escape(text, at);
  if (text[at] == '&') return html_escape(text, at);
  if (text[at] != '%') return {};
  const auto [value, end] = number_at(text, at + 1, 16, 2);
  return value < 0x100 && end == at + 3 ? Unit{static_cast<char>(value), 3} : Unit{};
}

// The byte that stands at `at`, however it is written.
Unit unit_at(std::string_view text, std::size_t at) {
  const Unit escape = escape_at(text, at);
  return escape.size > 0 ? escape : Unit{text[at], 1};
}

// Whether any escape may be there; else the plain search finds all.
bool has_escapes(std::string_view text) {
  return text.find('%') != std::string_view::npos || text.find("\\u") != std::string_view::npos ||
         text.find("&") != std::string_view::npos;
}

// The end of `form` at `at` of `text`, any of its bytes escaped or not; `at` when it is not there.
std::size_t escaped_end(std::string_view text, std::size_t at, std::string_view form) {
  std::size_t end = at;
  for (const char byte : form) {
    if (end >= text.size()) return at;
    const Unit unit = unit_at(text, end);
    if (unit.byte == byte) {
      end += unit.size;
    } else if (text[end] == byte) {
      ++end;
    } else {
      return at;
    }
  }
  return end;
}

// All forms of all secrets, never changed once shared. One pass over a text finds them: two bytes
// at a position say whether a form can begin there.
class Forms {
 public:
  explicit Forms(std::vector<std::string> forms) : forms_(std::move(forms)) {
    std::sort(forms_.begin(), forms_.end());
    forms_.erase(std::unique(forms_.begin(), forms_.end()), forms_.end());
    for (const std::string& form : forms_) {
      starts_.set(pair_at(form, 0));
      ++first_of_[static_cast<unsigned char>(form[0]) + 1U];
    }
    for (std::size_t i = 1; i < first_of_.size(); ++i)
      first_of_[i] += first_of_[i - 1];
  }

  [[nodiscard]] const std::vector<std::string>& all() const { return forms_; }

  // The length of the longest form at `at`, or 0.
  [[nodiscard]] std::size_t match(std::string_view text, std::size_t at) const {
    if (at + 1 >= text.size() || !starts_.test(pair_at(text, at))) return 0;
    const std::string_view rest = text.substr(at);
    const std::size_t bucket = static_cast<unsigned char>(rest[0]);
    std::size_t longest = 0;
    for (std::size_t i = first_of_[bucket]; i < first_of_[bucket + 1]; ++i) {
      if (rest.starts_with(forms_[i])) longest = std::max(longest, forms_[i].size());
    }
    return longest;
  }

  // The same where bytes of the form may be escaped.
  [[nodiscard]] std::size_t match_escaped(std::string_view text, std::size_t at) const {
    const char first = unit_at(text, at).byte;
    const std::size_t bucket = static_cast<unsigned char>(first);
    std::size_t longest = 0;
    for (std::size_t i = first_of_[bucket]; i < first_of_[bucket + 1]; ++i)
      longest = std::max(longest, escaped_end(text, at, forms_[i]) - at);
    return longest;
  }

 private:
  static std::size_t pair_at(std::string_view text, std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(text[at])) << 8U |
           static_cast<unsigned char>(text[at + 1]);
  }

  std::vector<std::string> forms_;  // sorted, each of at least kMinSecretBytes
  std::bitset<65536> starts_;
  std::array<std::size_t, 257> first_of_{};  // by first byte: where its forms begin in forms_
};

struct Registry {
  std::atomic<bool> any{false};
  std::mutex mutex;
  std::shared_ptr<const Forms> forms;  // guarded by mutex, replaced as a whole
};

Registry& registry() {
  // Never destroyed: threads may still log while the process ends.
  static Registry* const instance = new Registry;
  return *instance;
}

std::shared_ptr<const Forms> registered() {
  Registry& r = registry();
  if (!r.any.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(r.mutex);
  return r.forms;
}

// The end of the secret at `begin`, over others that overlap it; `begin` if there is none.
std::size_t secret_end(const Forms& forms, std::string_view text, std::size_t begin, bool escapes) {
  const auto match = [&](std::size_t at) {
    const std::size_t plain = forms.match(text, at);
    return escapes ? std::max(plain, forms.match_escaped(text, at)) : plain;
  };
  std::size_t end = begin + match(begin);
  for (std::size_t at = begin + 1; at < end; ++at) {
    end = std::max(end, at + match(at));
  }
  return end;
}

// A secret whose first letter was read out of an escape ("\n" + "ewtoken") would leave a lone
// backslash, and break the JSON around it.
void drop_open_escape(std::string& out) {
  const std::size_t last = out.find_last_not_of('\\');
  const std::size_t backslashes = out.size() - (last == std::string::npos ? 0 : last + 1);
  if (backslashes % 2 == 1) out.pop_back();
}

std::optional<std::string> without_secrets(std::string_view text) {
  const std::shared_ptr<const Forms> forms = registered();
  if (!forms) return std::nullopt;
  const bool escapes = has_escapes(text);
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = secret_end(*forms, text, at, escapes);
    if (end == at) {
      ++at;
      continue;
    }
    out += text.substr(done, at - done);
    drop_open_escape(out);
    out += kRedacted;
    at = end;
    done = end;
  }
  if (done == 0) return std::nullopt;
  out += text.substr(done);
  return out;
}

}  // namespace

void register_secret(std::string_view secret) {
  if (secret.size() < kMinSecretBytes) return;
  std::vector<std::string> forms = forms_of(secret);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.forms) {
    const std::vector<std::string>& known = r.forms->all();
    if (std::binary_search(known.begin(), known.end(), secret)) {
      const bool complete = std::all_of(forms.begin(), forms.end(), [&](const std::string& form) {
        return std::binary_search(known.begin(), known.end(), form);
      });
      if (complete) return;
    }
    forms.insert(forms.end(), known.begin(), known.end());
  }
  r.forms = std::make_shared<const Forms>(std::move(forms));
  r.any.store(true, std::memory_order_release);
}

std::string redact(std::string_view text) {
  const std::optional<std::string> cleaned = without_secrets(text);
  return without_credentials(cleaned ? std::string_view(*cleaned) : text);
}

bool redact_secrets(std::string& text) {
  std::optional<std::string> cleaned = without_secrets(text);
  if (!cleaned) return false;
  text = std::move(*cleaned);
  return true;
}

}  // namespace aiq
