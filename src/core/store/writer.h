#pragma once
// The one thread of a process that writes. It takes operations from a queue with priorities,
// runs many of them in one transaction and answers all after the one sync (group commit).
//
// An operation is a function over the Store. When it throws, the whole transaction is rolled back
// and the group runs again one by one, each in a transaction of its own, so a failure takes only
// itself along. Operations must therefore be ready to run twice and must not touch anything
// outside the Store before `done`.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/base/clock.h"
#include "core/store/store.h"

namespace aiq {

// Smaller first. Within a priority first come, first served.
enum class WritePriority { renewal, completion, control, submit, maintenance };

struct WriterConfig {
  int max_group = 256;                    // operations in one transaction
  DurationMs max_hold_ms = 50;            // no new operation joins a group older than this
  std::int64_t checkpoint_frames = 2000;  // checkpoint when the log has this many frames
};

struct WriterStats {
  std::uint64_t commits = 0, operations = 0, rollbacks = 0, checkpoints = 0;
  DurationMs longest_commit_ms = 0;
  std::int64_t wal_frames = 0;  // after the last checkpoint
};

class Writer {
 public:
  using Operation = std::function<void(Store&)>;
  // Called on the writer thread after the commit (nullptr) or with what went wrong.
  using Done = std::function<void(std::exception_ptr)>;

  Writer(std::unique_ptr<Store> store, const WriterConfig& config, Clock& clock);
  ~Writer();  // stop()
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void post(WritePriority priority, Operation operation, Done done);

  // Runs `operation` and waits for its commit; gives its value or throws what it threw.
  // Never called on the writer thread.
  template <class F>
  auto run(WritePriority priority, F operation) -> decltype(operation(std::declval<Store&>()));

  // Work that is done at the end of a group, inside its transaction, whenever it was asked for
  // by wake_tail() since the last time: admission and leases, so that a completion and the next
  // lease, or a submit and its lease, share one commit. `committed` follows on the writer thread
  // after the commit. When the transaction fails, `tail` runs again in a later one. `failed` is
  // called when a transaction of the tail alone failed.
  struct Tail {
    std::function<void(Store&)> run;
    std::function<void()> committed;
    std::function<void(std::exception_ptr)> failed;
  };
  void set_tail(Tail tail);
  void wake_tail();

  // Finishes what was posted, then ends the thread. Idempotent.
  void stop();
  [[nodiscard]] WriterStats stats() const;
  // Operations that wait; for back-pressure and tests.
  [[nodiscard]] std::size_t queued() const;

 private:
  // What run() waits on. Not a std::promise: with it the writer thread could be the last to let go
  // of an exception that the waiter is reading. Here the waiter takes it along.
  class Answer {
   public:
    void give(std::exception_ptr error);
    void take();  // waits; throws what was given

   private:
    std::mutex mutex_;
    std::condition_variable given_;
    bool there_ = false;        // guarded by mutex_
    std::exception_ptr error_;  // likewise
  };
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <class F>
auto Writer::run(WritePriority priority, F operation)
    -> decltype(operation(std::declval<Store&>())) {
  using R = decltype(operation(std::declval<Store&>()));
  // Shared: the waiter may return while the writer thread is still inside give().
  auto answer = std::make_shared<Answer>();
  const Done done = [answer](std::exception_ptr error) { answer->give(std::move(error)); };
  if constexpr (std::is_void_v<R>) {
    post(
        priority, [&operation](Store& store) { operation(store); }, done);
    answer->take();
  } else {
    auto value = std::make_shared<std::optional<R>>();
    post(
        priority, [&operation, value](Store& store) { value->emplace(operation(store)); }, done);
    answer->take();
    return std::move(**value);
  }
}

}  // namespace aiq
