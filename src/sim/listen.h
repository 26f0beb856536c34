#pragma once
// The listening socket. Loopback only: a simulator that answers strangers would be a hazard.

#include <string>

#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/base/file.h"

namespace aiq::sim {

struct Listener {
  Fd fd;
  std::string url;  // "http://127.0.0.1:8080", with the port that was chosen
};

// "127.0.0.1:0", "[::1]:8080", "localhost:8080"; port 0 = any free one. Failure: usage for what is
// not an address or not loopback, busy when the port can't be had.
[[nodiscard]] Expected<Listener, Failure> listen_on(const std::string& address);

}  // namespace aiq::sim
