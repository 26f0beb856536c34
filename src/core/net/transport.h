#pragma once
// Carries HTTP exchanges. Thread-safe; callbacks run on a transfer thread.

#include <cstdint>
#include <functional>

#include "core/model/http.h"

namespace aiq {

using TransferId = std::uint64_t;

class Transport {
 public:
  virtual ~Transport() = default;
  // Sends one POST and calls `done` exactly once, on another thread; it may come before start()
  // has returned. `make` is called on the transfer thread. One call puts at most one request on the
  // wire: never a silent resend.
  virtual TransferId start(std::function<HttpRequest()> make,
                           std::function<void(HttpResult)> done) = 0;
  // Aborts; `done` follows with Failure::cancelled unless the exchange ended before.
  virtual void cancel(TransferId id) = 0;
  // Aborts all and waits until every `done` has returned. Nothing may be started afterwards.
  virtual void stop() = 0;
};

}  // namespace aiq
