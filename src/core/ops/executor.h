#pragma once
// How `aiq` gets an operation done: in this process, or by the daemon.
//
//   read:  the file, opened read-only; by the daemon when the file may not be opened, or first by
//          the daemon for operations whose answer depends on the configuration. A daemon that does
//          not answer within a second is not waited for, with a warning. No database yet: the
//          answer of an empty one, with a warning.
//   write: the daemon's socket, then the owner lock and the file, again and again every 50 ms for
//          `busy_timeout_ms`, then Failure busy (exit 7).

#include <memory>
#include <optional>
#include <string>

#include "core/ops/op.h"

namespace aiq {

struct ExecutorConfig {
  std::string db_path;
  std::string socket_path;
  DurationMs busy_timeout_ms = 10'000;
  std::string actor;
  std::string program = "aiq";  // written into the lock file while this process owns the database
};

// What GET /healthz of the daemon says.
struct DaemonStatus {
  bool answers = true;  // false: it listens, and says nothing; of the rest only `pid` is known then
  bool ready = false;   // false: recovering or failing, see reasons
  std::vector<std::string> reasons;
  std::int64_t pid = 0, in_flight = 0, uptime_seconds = 0;
  std::string version, config_fingerprint;
};

class Executor {
 public:
  Executor(const Config& config, ExecutorConfig settings, Clock& clock, Random& random);
  ~Executor();
  [[nodiscard]] Expected<Json, Failure> run(std::string_view op, const Json& in);
  // nullopt: nobody listens on the socket. Waits a second at most for what it says, and for a while
  // not at all once it said nothing.
  [[nodiscard]] std::optional<DaemonStatus> daemon();
  // Where the last run() was carried out.
  enum class Where { none, file, daemon };
  [[nodiscard]] Where where() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The protocol on the socket (HTTP/1.1 over a Unix stream socket):
//   POST /v1/ops/NAME   body: input JSON; headers X-Aiq-Protocol: 1, X-Aiq-Config: fingerprint
//     200 output JSON | 4xx/5xx {"error":{"exit","code","message","hint"}}
//     X-Aiq-Timeout-Ms: the caller waits that long; later the operation is not carried out
//     409 with code "version_mismatch" when X-Aiq-Protocol differs: exit 7, "restart aiqd"
//     503 with Retry-After while the daemon is not ready
//   GET /healthz        200 | 503, JSON of DaemonStatus
// The answer carries X-Aiq-Config of the daemon; `aiq` warns when its own differs.
inline constexpr std::string_view kProtocolVersion = "1";
inline constexpr std::string_view kProtocolHeader = "X-Aiq-Protocol";
inline constexpr std::string_view kConfigHeader = "X-Aiq-Config";
inline constexpr std::string_view kTimeoutHeader = "X-Aiq-Timeout-Ms";

}  // namespace aiq
