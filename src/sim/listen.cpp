#include "sim/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

namespace aiq::sim {
namespace {

constexpr int kBacklog = 4096;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

std::optional<in_port_t> parse_port(std::string_view text) {
  in_port_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

template <class T>
Address store(const T& socket_address) {
  Address out;
  std::memcpy(&out.storage, &socket_address, sizeof socket_address);
  out.length = sizeof socket_address;
  return out;
}

// nullopt for what is not a loopback address.
std::optional<Address> parse_loopback(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto port = parse_port(std::string_view(text).substr(colon + 1));
  if (!port) return std::nullopt;
  std::string host = text.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  if (host == "[::1]") {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(*port);
    v6.sin6_addr = in6addr_loopback;
    return store(v6);
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(*port);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) return std::nullopt;
  if ((ntohl(v4.sin_addr.s_addr) >> 24U) != 127) return std::nullopt;
  return store(v4);
}

std::string url_of(const Address& address) {
  if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.storage, sizeof v6);
    return "http://[::1]:" + std::to_string(ntohs(v6.sin6_port));
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &address.storage, sizeof v4);
  char host[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
  return "http://" + std::string(host) + ":" + std::to_string(ntohs(v4.sin_port));
}

Failure cannot_listen(const std::string& address, int code) {
  return {Exit::busy, "cannot_listen", "cannot listen on " + address + ": " + errno_text(code),
          "choose another port, or 0 for any free one"};
}

}  // namespace

Expected<Listener, Failure> listen_on(const std::string& address) {
  std::optional<Address> wanted = parse_loopback(address);
  if (!wanted) {
    return Unexpected{Failure{Exit::usage, "not_loopback",
                              "--listen takes a loopback address and a port, not '" + address + "'",
                              "for example 127.0.0.1:0 or [::1]:8080"}};
  }
  const int family = wanted->storage.ss_family;
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Unexpected{cannot_listen(address, errno)};
  const int on = 1;
  // A simulator that is started again must get its port back while old connections linger.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto* generic = reinterpret_cast<sockaddr*>(&wanted->storage);
  if (bind(fd.get(), generic, wanted->length) != 0 || listen(fd.get(), kBacklog) != 0 ||
      getsockname(fd.get(), generic, &wanted->length) != 0) {
    return Unexpected{cannot_listen(address, errno)};
  }
  return Listener{std::move(fd), url_of(*wanted)};
}

}  // namespace aiq::sim
