#pragma once
// The local API: HTTP/1.1 on a Unix stream socket, for `aiq` and for `curl --unix-socket`.
// The protocol stands in core/ops/executor.h. One thread of libmicrohttpd in poll mode (its
// epoll mode hung under load with 0.9.75); a request that writes is suspended until its commit,
// so that parallel submits share commits.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/engine/runtime.h"
#include "core/store/writer.h"

namespace aiq {

// A listening Unix socket at `path`; a stale one is removed (the caller owns the database, so no
// other daemon can be behind it). Mode 0600, or 0660 for `group`. Throws std::runtime_error.
[[nodiscard]] Fd listen_unix(const std::string& path, const std::string& group);

class HttpApi {
 public:
  struct Parts {
    Writer& writer;
    RuntimeHolder& runtime;
    Clock& clock;
    Random& random;
    std::string db_path;
  };
  // What is asked of the engine after a commit, and what health says.
  struct Hooks {
    std::function<void()> changed;                          // wake the dispatcher
    std::function<void(const std::string& token)> aborted;  // a lease was taken away
    std::function<std::vector<std::string>()> unhealthy;    // reasons; empty = ready
    std::function<std::int64_t()> in_flight;
  };

  HttpApi(Fd listener, Parts parts, Hooks hooks);
  ~HttpApi();  // stop()
  HttpApi(const HttpApi&) = delete;
  HttpApi& operator=(const HttpApi&) = delete;

  // Until then everything but /healthz is answered 503 with Retry-After.
  void set_ready(bool ready);
  // Accepts nothing more and waits until the answers of running requests are out (2 s at most).
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace aiq
