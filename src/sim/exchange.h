#pragma once
// One request and its answer on a libmicrohttpd connection. Lives on the server's thread; only
// `wake` is called from elsewhere.

#include <microhttpd.h>

#include <atomic>
#include <cstdint>

#include "sim/http_server.h"
#include "sim/message.h"
#include "sim/plan.h"

namespace aiq::sim {

class Exchange {
 public:
  Exchange(HttpServer& server, MHD_Connection* connection, const char* method, const char* path);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void receive(std::string_view piece);
  // The request is whole, or a wait before the answer is over. MHD_NO closes the connection.
  [[nodiscard]] MHD_Result proceed();

 private:
  enum class Phase { receiving, waiting, answering };

  [[nodiscard]] bool decide();
  [[nodiscard]] bool must_wait() const;
  void wait(bool until_released, DurationMs delay);
  [[nodiscard]] MHD_Result answer();
  [[nodiscard]] MHD_Response* make_response();
  [[nodiscard]] ssize_t read_body(std::uint64_t position, char* out, std::size_t max);
  [[nodiscard]] int socket() const;
  void send_reset() const;

  HttpServer& server_;
  MHD_Connection* connection_;
  Request request_;
  Plan plan_;
  Phase phase_ = Phase::receiving;
  bool too_large_ = false;
  bool paused_ = false;                 // the delay in the middle of the body is over or running
  std::atomic<bool> abandoned_{false};  // the wait ended without a reason to answer
};

}  // namespace aiq::sim
