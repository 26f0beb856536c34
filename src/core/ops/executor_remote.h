#pragma once
// The client's end of the daemon's local API: one HTTP request over the Unix socket per call.

#include <optional>
#include <string>

#include "core/ops/executor.h"

namespace aiq {

struct RemoteAnswer {
  enum class Kind {
    answered,     // carried out or refused: `out` or `failure`
    unreachable,  // nobody listens: nothing was sent
    not_ready,    // 503: not carried out; `failure` says why
    broken,       // sent, and no whole answer: it may have been carried out
  };
  Kind kind = Kind::unreachable;
  Json out;
  std::optional<Failure> failure;
  std::string config_fingerprint;  // of the daemon, "" = not told
};

// Not thread-safe.
class RemoteClient {
 public:
  explicit RemoteClient(std::string socket_path) : socket_path_(std::move(socket_path)) {}

  struct Call {
    std::string_view op;
    std::string body;                // input JSON
    std::string fingerprint;         // of the caller's configuration
    DurationMs timeout_ms = 10'000;  // for each wait: to write, and for the answer
  };
  [[nodiscard]] RemoteAnswer post(const Call& call) const;
  // nullopt: nobody listens. One that took the request and said nothing within `timeout_ms`:
  // `answers` is false.
  [[nodiscard]] std::optional<DaemonStatus> health(DurationMs timeout_ms) const;

 private:
  std::string socket_path_;
};

}  // namespace aiq
