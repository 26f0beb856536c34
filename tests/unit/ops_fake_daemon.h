#pragma once
// A local API that says what a test wants: one scripted reply per connection, on a Unix socket.

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/file.h"

namespace ops_world {

class FakeDaemon {
 public:
  // Each reply: a whole HTTP answer; "" = closes after the request was read; "!" = closes without
  // reading; "?" = reads it and says nothing. The last one is repeated.
  FakeDaemon(const std::string& path, std::vector<std::string> replies)
      : replies_(std::move(replies)), listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
            0);
    REQUIRE(listen(listener_.get(), 64) == 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeDaemon() {
    stop_ = true;
    thread_.join();
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  // Whole requests, in order of arrival.
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  static std::string answer(int status, const std::string& body, const std::string& headers = "") {
    return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
           headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  void serve() {
    std::size_t next = 0;
    while (!stop_) {
      pollfd ready{listener_.get(), POLLIN, 0};
      if (poll(&ready, 1, 20) != 1) continue;
      aiq::Fd connection(accept(listener_.get(), nullptr, nullptr));
      if (!connection) continue;
      const std::string& reply = replies_[std::min(next, replies_.size() - 1)];
      ++next;
      if (reply == "!") continue;
      const std::string request = read_request(connection.get());
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      if (reply == "?") {
        silent_.push_back(std::move(connection));
        continue;
      }
      (void)aiq::write_all(connection.get(), reply);
    }
  }

  static std::string read_request(int fd) {
    std::string out;
    char buffer[4096];
    for (;;) {
      const std::size_t head = out.find("\r\n\r\n");
      if (head != std::string::npos) {
        const std::size_t at = out.find("Content-Length: ");
        const std::size_t length = at < head ? std::stoul(out.substr(at + 16)) : 0;
        if (out.size() >= head + 4 + length) return out;
      }
      const ssize_t got = read(fd, buffer, sizeof buffer);
      if (got <= 0) return out;
      out.append(buffer, static_cast<std::size_t>(got));
    }
  }

  const std::vector<std::string> replies_;
  aiq::Fd listener_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<std::string> requests_;  // guarded by mutex_
  std::vector<aiq::Fd> silent_;        // of the thread
  std::thread thread_;
};

}  // namespace ops_world
