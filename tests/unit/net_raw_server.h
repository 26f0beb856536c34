#pragma once
// A loopback server of raw sockets that misbehaves as a test tells it to, and counts what it saw.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace aiq_test {

// The sockets that handlers have open, so that the server can end them all.
class OpenSockets {
 public:
  void add(int fd) {
    const std::lock_guard lock(mutex_);
    fds_.insert(fd);
  }
  void close(int fd) {
    const std::lock_guard lock(mutex_);
    fds_.erase(fd);
    ::close(fd);
  }
  void shut_all() {
    const std::lock_guard lock(mutex_);
    for (const int fd : fds_)
      ::shutdown(fd, SHUT_RDWR);
  }

 private:
  std::mutex mutex_;
  std::set<int> fds_;
};

// One accepted connection, in the hands of a test's handler on a thread of its own.
class Peer {
 public:
  Peer(int fd, int number, std::atomic<int>& requests, OpenSockets& open)
      : fd_(fd), number_(number), requests_(requests), open_(open) {
    open_.add(fd);
  }
  ~Peer() { close(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] int number() const { return number_; }  // from 0, in the order of acceptance

  // A whole request (headers, and a body by Content-Length). False at the end of the stream.
  bool read_request() {
    std::string text = std::exchange(rest_, {});
    std::size_t head_end = 0;
    while ((head_end = text.find("\r\n\r\n")) == std::string::npos) {
      if (!read_some(text)) return false;
    }
    head = text.substr(0, head_end + 4);
    const auto at = head.find("Content-Length: ");
    const std::size_t length =
        at == std::string::npos ? 0 : std::strtoull(head.c_str() + at + 16, nullptr, 10);
    while (text.size() < head_end + 4 + length) {
      if (!read_some(text)) return false;
    }
    body = text.substr(head_end + 4, length);
    rest_ = text.substr(head_end + 4 + length);
    ++requests_;
    return true;
  }
  // At least a byte of a request; the rest stays unread.
  bool read_any() { return read_some(rest_); }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool answer(std::string_view text, const std::string& headers = "") {
    return send("HTTP/1.1 200 OK\r\n" + headers + "Content-Length: " + std::to_string(text.size()) +
                "\r\n\r\n" + std::string(text));
  }
  // Until the other side closes (true) or the server ends.
  bool wait_closed() {
    std::string ignored;
    while (read_some(ignored)) {
    }
    return true;
  }
  // Reads nothing more; until the other side resets or the server ends.
  void hold() {
    pollfd gone{fd_, POLLRDHUP, 0};
    while (::poll(&gone, 1, -1) < 0) {
    }
  }
  void close() {
    if (fd_ >= 0) open_.close(std::exchange(fd_, -1));
  }
  void reset() {
    const linger hard{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }

  std::string head, body;  // of the last request

 private:
  bool read_some(std::string& to) {
    char buffer[65536];
    const auto n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    to.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  int fd_;
  int number_;
  std::atomic<int>& requests_;
  OpenSockets& open_;
  std::string rest_;
};

class RawServer {
 public:
  using Handler = std::function<void(Peer&)>;

  explicit RawServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 1024) != 0 ||
        ::getsockname(listener_, generic, &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~RawServer() { stop(); }

  // Ends what is open and refuses connections from now on.
  void stop() {
    if (!acceptor_.joinable()) return;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    open_.shut_all();
    for (auto& thread : threads_)
      thread.join();
  }

  [[nodiscard]] std::string url(const std::string& path = "/v1/chat/completions") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void accept_all() {
    while (true) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const int number = connections_++;
      auto peer = std::make_shared<Peer>(fd, number, requests_, open_);
      threads_.emplace_back([this, peer = std::move(peer)]() mutable {
        handler_(*peer);
        peer.reset();
      });
    }
  }

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> requests_{0}, connections_{0};
  OpenSockets open_;
  std::vector<std::thread> threads_;  // of the acceptor until it is joined
  std::thread acceptor_;
};

}  // namespace aiq_test
