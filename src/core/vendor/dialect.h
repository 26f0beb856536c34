#pragma once
// What the HTTP adapters share: a request from the vendor's section, and the way from an HTTP
// answer to an AttemptResult. What differs between the dialects is a Dialect.

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/vendor/usage_reader.h"
#include "core/vendor/vendor.h"

namespace aiq {

// Whether a 200 has what its endpoint is for.
enum class Content {
  absent,  // not the shape of an answer at all
  empty,
  present,
};
struct ContentReading {
  Content content = Content::absent;
  bool truncated = false;
};

struct Dialect {
  ContentReading (*read_content)(Endpoint endpoint, const nlohmann::json& answer);
  UsageReading (*read_usage)(const nlohmann::json& answer);
  RateReport (*read_rates)(const HttpHeaders& headers, UnixMs received_at);
  std::string_view request_id_header;
  bool spend_limit_in_400 = false;  // a 400 may be a spend limit, told by its message
};

[[nodiscard]] VendorReply decode_answer(const Dialect& dialect, const VendorCall& call,
                                        const HttpResult& result, UnixMs received_at);

// A POST of the call's body to base_url + `path` (before the base's query, if it has one), with
// credential, timeouts and extra headers; a configured header replaces one of ours.
[[nodiscard]] HttpRequest make_request(const VendorConfig& config, const VendorCall& call,
                                       std::string_view credential, std::string_view path,
                                       const HttpHeaders& extra = {});

// A member of an object; nullptr when it is absent or null, or `value` is no object.
[[nodiscard]] const nlohmann::json* find_member(const nlohmann::json& value, std::string_view name);
// A member that is a string, else "". The view lives as long as `value`.
[[nodiscard]] std::string_view text_member(const nlohmann::json& value, std::string_view name);
// A member that is an array; nullptr otherwise.
[[nodiscard]] const nlohmann::json* array_member(const nlohmann::json& value,
                                                 std::string_view name);
// The texts of those `parts` that have this type, joined; nullopt when there is no such part.
[[nodiscard]] std::optional<std::string> join_texts(const nlohmann::json& parts,
                                                    std::string_view type);
// Strict; nullopt for what is not JSON.
[[nodiscard]] std::optional<nlohmann::json> parse_json(std::string_view text);

}  // namespace aiq
