#include "sim/http_server.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "sim/exchange.h"

namespace aiq::sim {
namespace {

constexpr unsigned int kMaxConnections = 16384;
constexpr std::size_t kConnectionMemory = 65536;  // request headers must fit

MHD_Result on_access(void* server, MHD_Connection* connection, const char* url, const char* method,
                     const char* /*version*/, const char* upload_data,
                     std::size_t* upload_data_size, void** state) {
  auto* exchange = static_cast<Exchange*>(*state);
  if (exchange == nullptr) {
    *state = new Exchange(*static_cast<HttpServer*>(server), connection, method, url);
    return MHD_YES;
  }
  if (*upload_data_size > 0) {
    exchange->receive({upload_data, *upload_data_size});
    *upload_data_size = 0;
    return MHD_YES;
  }
  return exchange->proceed();
}

void on_completed(void* /*server*/, MHD_Connection* /*connection*/, void** state,
                  enum MHD_RequestTerminationCode /*how*/) {
  delete static_cast<Exchange*>(*state);
  *state = nullptr;
}

// Paths are compared as they were sent: no percent-decoding.
std::size_t keep_escapes(void* /*server*/, MHD_Connection* /*connection*/, char* text) {
  return std::char_traits<char>::length(text);
}

// As many descriptors as the system lets us have.
unsigned int raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 512;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kOurs = 32;
  const rlim_t spare = limit.rlim_cur > kOurs ? limit.rlim_cur - kOurs : 1;
  return static_cast<unsigned int>(std::min<rlim_t>(spare, kMaxConnections));
}

}  // namespace

HttpServer::HttpServer(Parts parts) : parts_(std::move(parts)), room_(parts_.clock) {}

bool HttpServer::start(const Fd& listener) {
  // libmicrohttpd closes the socket that it is given.
  const int socket = fcntl(listener.get(), F_DUPFD_CLOEXEC, 0);
  if (socket < 0) return false;
  // Poll, not epoll: libmicrohttpd 0.9.75 loses resumed connections under epoll.
  daemon_ = MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC,
                             0, nullptr, nullptr, &on_access, this, MHD_OPTION_LISTEN_SOCKET,
                             socket, MHD_OPTION_NOTIFY_COMPLETED, &on_completed, nullptr,
                             MHD_OPTION_UNESCAPE_CALLBACK, &keep_escapes, nullptr,
                             MHD_OPTION_CONNECTION_LIMIT, raise_descriptor_limit(),
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionMemory, MHD_OPTION_END);
  return daemon_ != nullptr;
}

HttpServer::~HttpServer() {
  // A daemon must not be stopped while connections are suspended.
  room_.close();
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

}  // namespace aiq::sim
