#include "core/net/curl_transport.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include <curl/curl.h>

#include "core/net/transfer_thread.h"

namespace aiq {
namespace {

void init_curl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_ALL);
  if (code != CURLE_OK) throw std::runtime_error(curl_easy_strerror(code));
}

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(const TransportConfig& config) {
    init_curl();
    const auto threads = static_cast<std::size_t>(std::max(1, config.threads));
    const auto in_flight = static_cast<std::size_t>(std::max(1, config.max_in_flight));
    const std::size_t per_thread = (in_flight + threads - 1) / threads;
    const std::size_t multis = (per_thread + kTransfersPerMulti - 1) / kTransfersPerMulti;
    try {
      for (std::size_t i = 0; i < threads; ++i) {
        threads_.push_back(std::make_unique<TransferThread>(multis));
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  ~CurlTransport() override { stop(); }

  TransferId start(std::function<HttpRequest()> make,
                   std::function<void(HttpResult)> done) override {
    const TransferId id = next_id_.fetch_add(1, std::memory_order_relaxed);
    thread_of(id).start({id, system_clock().mono_ms(), std::move(make), std::move(done)});
    return id;
  }

  void cancel(TransferId id) override { thread_of(id).cancel(id); }

  void stop() override {
    const std::lock_guard lock(stop_mutex_);
    for (auto& thread : threads_)
      thread->request_stop();
    for (auto& thread : threads_)
      thread->join();
  }

 private:
  [[nodiscard]] TransferThread& thread_of(TransferId id) { return *threads_[id % threads_.size()]; }

  std::vector<std::unique_ptr<TransferThread>> threads_;
  std::atomic<TransferId> next_id_{1};
  std::mutex stop_mutex_;  // a second caller of stop() waits for the first
};

}  // namespace

std::unique_ptr<Transport> make_curl_transport(const TransportConfig& config) {
  return std::make_unique<CurlTransport>(config);
}

}  // namespace aiq
