#pragma once
// HTTP/1.1 over libmicrohttpd: one polling thread, which alone uses the simulator and the journal.
// Delays and holds suspend their connection, so any number of them cost no thread.

#include <atomic>
#include <functional>
#include <memory>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/file.h"
#include "sim/journal.h"
#include "sim/simulator.h"
#include "sim/waiting_room.h"

struct MHD_Daemon;

namespace aiq::sim {

class Exchange;

class HttpServer {
 public:
  struct Parts {
    Clock& clock;
    Simulator& simulator;
    Journal* journal = nullptr;  // none: no journal
    // Called on the server's thread when a line could not be written; the request it was about
    // gets no answer, since an answer without its line would be a false proof.
    std::function<void()> journal_failed;
  };

  explicit HttpServer(Parts parts);
  // Ends every exchange, waiting ones without an answer, and all threads.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves from a listening, non-blocking socket, which it duplicates. False when no thread, memory
  // or descriptor was to be had.
  [[nodiscard]] bool start(const Fd& listener);

 private:
  friend class Exchange;

  Parts parts_;
  WaitingRoom room_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace aiq::sim
