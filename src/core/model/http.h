#pragma once
// One HTTP exchange with a vendor, as plain values: what the vendor adapters make and read, and
// what the network layer carries.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/duration.h"

namespace aiq {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;  // names in lower case

struct HttpRequest {
  std::string url;
  HttpHeaders headers;                         // credentials included; never logged
  std::string body;                            // POST
  DurationMs connect_timeout_ms = 5'000;       // DNS, TCP and TLS together
  DurationMs first_byte_timeout_ms = 120'000;  // from the request sent to the first answer byte
  DurationMs total_timeout_ms = 600'000;       // from start to the last byte
  DurationMs max_connection_age_ms = 55'000;   // an older pooled connection is not reused
  std::int64_t max_response_bytes = 16LL * 1024 * 1024;
  std::string ca_file;  // "" = the system's
  std::string proxy;    // "" = none; the environment's proxies are never used
};

struct HttpResult {
  enum class Failure {
    none,                // a whole answer
    not_sent,            // DNS, connect or TLS failure: no byte of the request left
    connect_timeout,     // likewise, by time
    first_byte_timeout,  // sent, no byte back in time
    total_timeout,       // sent, not whole in time
    broken,              // sent, then reset or closed before the first answer byte
    cut,                 // an answer began and is not whole (length, last chunk)
    too_large,           // answer above max_response_bytes
    malformed,           // not HTTP
    cancelled,           // aborted by us
  };
  Failure failure = Failure::none;
  std::string failure_text;                 // of the library, redacted; "" when none
  int status = 0;                           // 0 = no status line seen
  HttpHeaders headers;                      // of the final answer, names in lower case, in order
  std::string body;                         // as far as received
  bool sent = false;                        // at least a byte of the request may have left
  std::optional<DurationMs> connect_ms;     // start -> connected (0 on a reused connection)
  std::optional<DurationMs> first_byte_ms;  // start -> first answer byte
  DurationMs total_ms = 0;                  // start -> end
};

// First value of a header (lower-case name), or nullptr.
[[nodiscard]] const std::string* find_header(const HttpHeaders& headers, std::string_view name);

}  // namespace aiq
