#pragma once
// What a caller asks for, and the two keys derived from it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/base/expected.h"

namespace aiq {

enum class Endpoint : std::uint8_t { chat, embeddings, responses, messages };
[[nodiscard]] std::string_view to_string(Endpoint endpoint);
[[nodiscard]] std::optional<Endpoint> parse_endpoint(std::string_view name);

// How a request uses the cache.
struct CacheControl {
  bool read = true;                   // false: --no-cache, --bypass-cache
  bool store = true;                  // false: --no-store, --bypass-cache
  bool coalesce = true;               // false: --bypass-cache: no derived key, no lock
  bool only_if_cached = false;        // from the cache or not at all
  std::optional<DurationMs> max_age;  // an older entry does not answer
};

// Version of the rules below; part of every key, so that new rules never meet old keys.
inline constexpr std::string_view kKeyVersion = "1";

// Members of the outermost object that do not change an answer.
inline constexpr std::string_view kIgnoredMembers[] = {"user", "metadata", "store", "stream",
                                                       "stream_options"};
// Further ones that do not change a cached answer.
inline constexpr std::string_view kCacheIgnoredMember = "service_tier";

struct KeyInputs {
  std::string tenant;
  std::string cache_group;  // "" = the tenant alone
  std::string vendor;
  std::string model;
  Endpoint endpoint = Endpoint::chat;
  std::string locale;  // free text, "" = none
  std::string safety;  // safety profile, "" = none
  std::string scope;   // for results that may change by time, "" = none
  std::string_view version = kKeyVersion;
};

// SHA-256 as 64 lower-case hex digits.
struct RequestKeys {
  std::string
      idempotency_key;  // version, tenant, vendor, model, endpoint, request, locale, safety, scope
  std::string cache_key;  // "group:g" or "tenant:t" in the tenant's place, no service_tier
};

struct InvalidRequest {
  std::string code;     // invalid_json_line | invalid_utf8 | invalid_request
  std::string message;  // one sentence; names the byte
};

// A request body that passed validation: a JSON object, unambiguous (core/base/json_canonical.h).
struct CheckedBody {
  std::string sent;             // what goes to the vendor: as given, but "stream" is false
  bool stream_removed = false;  // the caller asked for a stream
  std::string model;            // of the body, "" = none
  std::string canonical;        // without kIgnoredMembers
  std::string cache_canonical;  // and without kCacheIgnoredMember
  std::optional<std::int64_t> output_limit;  // max_tokens, max_completion_tokens, max_output_tokens
  std::int64_t choices = 1;                  // n: answers, each up to the output limit
  std::optional<double> temperature;

  // For all choices together; nullopt: the request sets no limit.
  [[nodiscard]] std::optional<std::int64_t> output_tokens() const;
};
inline constexpr std::int64_t kChoicesMax = 1'000'000;
[[nodiscard]] Expected<CheckedBody, InvalidRequest> check_body(std::string_view body);

[[nodiscard]] RequestKeys derive_keys(const KeyInputs& inputs, const CheckedBody& body);

}  // namespace aiq
