#pragma once
// The engine over a store in memory, with a clock and a vendor that do what the test says.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/attempt.h"
#include "core/engine/dispatcher.h"
#include "core/engine/recovery.h"
#include "core/engine/runtime.h"
#include "core/engine/submit.h"
#include "support/manual_clock.h"

namespace aiq::test {

// Keeps what it is given until the test answers. Callbacks run on the thread that answers.
class HeldTransport final : public Transport {
 public:
  struct Call {
    HttpRequest request;
    std::function<void(HttpResult)> done;
    bool cancelled = false;
  };

  TransferId start(std::function<HttpRequest()> make,
                   std::function<void(HttpResult)> done) override {
    const std::lock_guard guard(mutex_);
    calls_.push_back({make(), std::move(done), false});
    changed_.notify_all();
    return calls_.size();
  }
  void cancel(TransferId id) override {
    const std::lock_guard guard(mutex_);
    calls_.at(id - 1).cancelled = true;
    changed_.notify_all();
  }
  void stop() override {}

  [[nodiscard]] std::size_t sent() const {
    const std::lock_guard guard(mutex_);
    return calls_.size();
  }
  [[nodiscard]] HttpRequest request(std::size_t call) const {
    const std::lock_guard guard(mutex_);
    return calls_.at(call).request;
  }
  // Waits until `n` calls were started; false after ten seconds.
  [[nodiscard]] bool wait_sent(std::size_t n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return calls_.size() >= n; });
  }
  [[nodiscard]] bool wait_cancelled(std::size_t call) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10),
                             [&] { return calls_.at(call).cancelled; });
  }
  void answer(std::size_t call, HttpResult result) {
    std::function<void(HttpResult)> done;
    {
      const std::lock_guard guard(mutex_);
      done = std::exchange(calls_.at(call).done, nullptr);
    }
    done(std::move(result));
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;  // guarded by mutex_
};

inline HttpResult status_answer(int status, std::string body, HttpHeaders headers = {}) {
  HttpResult result;
  result.status = status;
  result.headers = std::move(headers);
  result.body = std::move(body);
  result.sent = true;
  result.first_byte_ms = 5;
  result.total_ms = 10;
  return result;
}

inline HttpResult chat_answer(const std::string& text) {
  return status_answer(
      200, R"({"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":)"
           R"({"role":"assistant","content":")" +
               text +
               R"("},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,)"
               R"("completion_tokens":4,"total_tokens":14}})");
}

inline HttpResult failed(HttpResult::Failure failure, bool sent) {
  HttpResult result;
  result.failure = failure;
  result.sent = sent;
  return result;
}

// One seeded stream for all threads of a world.
class SharedRandom final : public Random {
 public:
  explicit SharedRandom(std::uint64_t seed) : stream_(seed) {}
  [[nodiscard]] std::uint64_t next() override {
    const std::lock_guard guard(mutex_);
    return stream_.next();
  }

 private:
  std::mutex mutex_;
  SeededRandom stream_;  // guarded by mutex_
};

class EngineWorld {
 public:
  explicit EngineWorld(const std::function<void(Config&)>& change = {})
      : random(42),
        runtime(make_runtime(config(change), [](const char*) { return std::string(); })),
        writer(open_store(":memory:", {}, clock.wall_ms(), true), WriterConfig{}, clock),
        runner({writer, transport, runtime, clock, random}, [this] { dispatcher.wake(); }),
        dispatcher({writer, runner, runtime, clock, random, "test"}) {
    writer.run(WritePriority::control,
               [](Store& store) { store.register_vendor("v", "section", true); });
  }
  // Callbacks refer to the members: the writer ends first.
  ~EngineWorld() { writer.stop(); }

  static Config config(const std::function<void(Config&)>& change) {
    Config config;
    VendorConfig vendor;
    vendor.name = "v";
    vendor.api = "openai";
    vendor.base_url = "http://127.0.0.1:9/v1";
    vendor.auth = "none";
    vendor.idempotency_header = "Idempotency-Key";
    config.vendors["v"] = vendor;
    if (change) change(config);
    return config;
  }

  void start() {
    dispatcher.start([this] {
      const std::lock_guard guard(mutex);
      passed.notify_all();
    });
  }

  // A pass that began after now has ended.
  void settle() {
    // Two passes: one may have begun before the caller's change.
    for (int i = 0; i < 2; ++i) {
      const auto before = dispatcher.passes();
      dispatcher.wake();
      std::unique_lock lock(mutex);
      while (dispatcher.passes() == before) {
        passed.wait_for(lock, std::chrono::milliseconds(20));
      }
    }
  }

  JobId submit(const std::string& prompt, const std::function<void(SubmitInput&)>& change = {}) {
    SubmitInput input;
    input.model = "m";
    input.prompt = prompt;
    if (change) change(input);
    auto prepared =
        prepare_submission(runtime.get()->config, input, "uid:0", clock.wall_ms(), random);
    const JobId id =
        writer
            .run(WritePriority::submit,
                 [&](Store& store) { return store.submit(prepared->submission, clock.wall_ms()); })
            .job_id;
    dispatcher.wake();
    return id;
  }

  JobRow job(JobId id) {
    return *writer.run(WritePriority::control, [&](Store& store) { return store.job(id); });
  }
  std::vector<AttemptRow> attempts(JobId id) {
    return writer.run(WritePriority::control, [&](Store& store) { return store.attempts_of(id); });
  }

  ManualClock clock;
  SharedRandom random;
  RuntimeHolder runtime;
  HeldTransport transport;
  Writer writer;
  AttemptRunner runner;
  Dispatcher dispatcher;
  std::mutex mutex;
  std::condition_variable passed;
};

}  // namespace aiq::test
