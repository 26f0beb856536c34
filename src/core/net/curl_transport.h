#pragma once
// Transport over libcurl: `threads` threads, each with several multi handles of at most about 250
// connections (libcurl's connection cache costs more per request the more one handle holds),
// driven by curl_multi_socket_action over one epoll per thread.

#include <memory>

#include "core/net/transport.h"

namespace aiq {

struct TransportConfig {
  int threads = 2;
  int max_in_flight = 512;  // expected upper bound; sizes the set of handles
};

// Throws std::runtime_error when threads or descriptors can't be had.
[[nodiscard]] std::unique_ptr<Transport> make_curl_transport(const TransportConfig& config);

}  // namespace aiq
