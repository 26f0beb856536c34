#include "sim/exchange.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/control.h"

namespace aiq::sim {
namespace {

constexpr std::size_t kMaxBody = std::size_t{64} << 20U;
constexpr std::size_t kBlock = 32768;

MHD_Result add_request_header(void* headers, enum MHD_ValueKind /*kind*/, const char* name,
                              const char* value) {
  std::string key(name);
  for (char& c : key) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  static_cast<Headers*>(headers)->emplace_back(std::move(key), value != nullptr ? value : "");
  return MHD_YES;
}

}  // namespace

Exchange::Exchange(HttpServer& server, MHD_Connection* connection, const char* method,
                   const char* path)
    : server_(server), connection_(connection) {
  request_.method = method;
  request_.path = path;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, &add_request_header, &request_.headers);
}

Exchange::~Exchange() {
  if (plan_.in_flight) server_.parts_.simulator.exchange_ended();
}

void Exchange::receive(std::string_view piece) {
  too_large_ = too_large_ || request_.body.size() + piece.size() > kMaxBody;
  if (!too_large_) request_.body += piece;
}

MHD_Result Exchange::proceed() {
  if (phase_ == Phase::receiving) {
    if (!decide()) return MHD_NO;
    if (must_wait()) {
      phase_ = Phase::waiting;
      wait(plan_.hold, plan_.delay);
      return MHD_YES;
    }
  }
  if (abandoned_) return MHD_NO;
  phase_ = Phase::answering;
  return answer();
}

bool Exchange::decide() {
  const HttpServer::Parts& parts = server_.parts_;
  const MonoMs mono = parts.clock.mono_ms();
  if (too_large_) {
    plan_.status = 413;
    return true;
  }
  if (is_control_path(request_.path)) {
    plan_ = control(request_, parts.simulator, server_.room_, mono);
    return true;
  }
  plan_ = parts.simulator.decide(request_, {.wall = parts.clock.wall_ms(), .mono = mono});
  if (parts.journal == nullptr || parts.journal->write(plan_.journal_line)) return true;
  parts.journal_failed();
  return false;
}

bool Exchange::must_wait() const {
  return plan_.hold || plan_.delay > 0;
}

void Exchange::wait(bool until_released, DurationMs delay) {
  // Suspended before the room knows of it, so that a wake-up can't come first.
  MHD_suspend_connection(connection_);
  WaitingRoom::Waiter waiter;
  waiter.fd = socket();
  waiter.rule = plan_.rule;
  // The clock's milliseconds are rounded down; one more keeps the wait from being short.
  if (!until_released) waiter.due = server_.parts_.clock.mono_ms() + delay + 1;
  waiter.wake = [this](Woken reason) {
    if (reason == Woken::client_gone || reason == Woken::stopping) abandoned_ = true;
    MHD_resume_connection(connection_);
  };
  server_.room_.enter(std::move(waiter));
}

int Exchange::socket() const {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection_, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info->connect_fd;
}

void Exchange::send_reset() const {
  // Dissolving the association makes Linux send the reset at once. SO_LINGER alone would not do:
  // libmicrohttpd shuts the socket down before it closes it, and the client would see an orderly
  // end.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  connect(socket(), &none, sizeof none);
}

MHD_Result Exchange::answer() {
  if (plan_.ending == Ending::reset) send_reset();
  if (plan_.ending == Ending::reset || plan_.ending == Ending::close) return MHD_NO;
  MHD_Response* response = make_response();
  if (response == nullptr) return MHD_NO;
  for (const auto& [name, value] : plan_.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  const MHD_Result queued =
      MHD_queue_response(connection_, static_cast<unsigned int>(plan_.status), response);
  MHD_destroy_response(response);
  return queued;
}

MHD_Response* Exchange::make_response() {
  if (plan_.ending == Ending::complete && plan_.body_delay == 0) {
    // No copy: this object outlives the sending of its answer.
    return MHD_create_response_from_buffer(plan_.body.size(), plan_.body.data(),
                                           MHD_RESPMEM_PERSISTENT);
  }
  const std::uint64_t size =
      plan_.ending == Ending::cut_chunked ? MHD_SIZE_UNKNOWN : plan_.body.size();
  const auto reader = [](void* self, std::uint64_t position, char* out, std::size_t max) {
    return static_cast<Exchange*>(self)->read_body(position, out, max);
  };
  return MHD_create_response_from_callback(size, kBlock, reader, this, nullptr);
}

ssize_t Exchange::read_body(std::uint64_t position, char* out, std::size_t max) {
  if (abandoned_) return MHD_CONTENT_READER_END_WITH_ERROR;
  const bool cut = plan_.ending != Ending::complete;
  const std::size_t end = cut ? plan_.cut_at : plan_.body.size();
  const auto at = static_cast<std::size_t>(position);
  std::size_t until = end;
  if (plan_.body_delay > 0 && !paused_) {
    const std::size_t pause_at = std::min(end, plan_.body.size() / 2);
    if (at >= pause_at) {
      paused_ = true;
      wait(false, plan_.body_delay);
      return 0;
    }
    until = pause_at;
  }
  if (at >= end) return cut ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
  const std::size_t count = std::min(max, until - at);
  std::memcpy(out, plan_.body.data() + at, count);
  return static_cast<ssize_t>(count);
}

}  // namespace aiq::sim
