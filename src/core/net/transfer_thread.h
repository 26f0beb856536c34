#pragma once
// A thread that drives many transfers: one epoll, several multi handles of curl.

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include <curl/curl.h>

#include "core/base/file.h"
#include "core/net/deadlines.h"
#include "core/net/transfer.h"
#include "core/net/transport.h"

namespace aiq {

// Transfers of one multi handle; the cost of libcurl's connection cache grows with it.
inline constexpr std::size_t kTransfersPerMulti = 250;

class TransferThread {
 public:
  struct Start {
    TransferId id;
    MonoMs at;
    std::function<HttpRequest()> make;
    std::function<void(HttpResult)> done;
  };

  // Throws std::runtime_error when a descriptor can't be had.
  explicit TransferThread(std::size_t multi_count);
  ~TransferThread();  // after join()
  TransferThread(const TransferThread&) = delete;
  TransferThread& operator=(const TransferThread&) = delete;

  // The rest of the public functions: from any thread.
  void start(Start start);
  void cancel(TransferId id);
  // All transfers end as cancelled; the thread ends.
  void request_stop();
  void join();

 private:
  struct Multi {
    Multi() = default;
    Multi(const Multi&) = delete;
    Multi& operator=(const Multi&) = delete;
    // Closes the pooled connections, which still calls on_socket.
    ~Multi() { curl_multi_cleanup(handle); }

    CURLM* handle = nullptr;
    TransferThread* owner = nullptr;
    std::uint32_t index = 0;
    std::size_t active = 0;
    MonoMs timer_at = kNoDeadline;
  };

  static int on_socket(CURL*, curl_socket_t fd, int what, void* multi, void* known);
  static int on_timer(CURLM*, long wait_ms, void* multi);

  void run();
  void wake();
  [[nodiscard]] bool take_commands();
  void begin(Start start);
  void wait_and_dispatch();
  [[nodiscard]] int wait_ms(MonoMs now) const;
  void run_timers();
  void collect_ended(Multi& multi);
  void expire_due();
  void give_up(Transfer& transfer, HttpResult::Failure failure);
  void end(Transfer& transfer, HttpResult result);
  [[nodiscard]] Multi& multi_for_next();
  Multi& add_multi();
  [[nodiscard]] CURL* take_easy();

  Fd epoll_;
  Fd wake_fd_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::vector<Start> starts_;
  std::vector<TransferId> cancels_;
  bool stop_ = false;
  bool woken_ = false;  // wake_fd_ is written and not yet read

  // Of the thread alone:
  std::vector<std::unique_ptr<Multi>> multis_;
  std::vector<CURL*> idle_;
  Deadlines deadlines_;
  struct Running {
    std::unique_ptr<Transfer> transfer;
    Multi* multi;
  };
  std::unordered_map<TransferId, Running> running_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace aiq
