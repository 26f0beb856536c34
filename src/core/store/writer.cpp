#include "core/store/writer.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/log.h"

namespace aiq {
namespace {

constexpr std::size_t kPriorities = 5;
static_assert(static_cast<std::size_t>(WritePriority::maintenance) + 1 == kPriorities);

struct Item {
  Writer::Operation operation;
  Writer::Done done;
};

std::string words_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown";
  }
}

}  // namespace

struct Writer::Impl {
  Impl(std::unique_ptr<Store> owned, const WriterConfig& settings, Clock& time)
      : config(settings), clock(time), store(std::move(owned)) {}

  void loop();
  bool wait_for_work();
  std::optional<Item> take();
  std::shared_ptr<const Tail> take_tail();

  void run_group();
  void run_alone(Item& item);
  void run_tail_alone(const Tail& tail);
  void run_again(std::vector<Item>& group);
  void fail_waiting(const std::exception_ptr& error);
  void commit();
  void rollback();
  void checkpoint();

  const WriterConfig config;
  Clock& clock;
  std::unique_ptr<Store> store;  // the writer thread's alone

  mutable std::mutex mutex;
  std::condition_variable wake;
  // Guarded by `mutex`:
  std::array<std::deque<Item>, kPriorities> queues;
  std::size_t waiting = 0;
  std::shared_ptr<const Tail> tail;
  bool tail_wanted = false;
  bool stopping = false;
  bool ended = false;
  WriterStats stats;

  std::mutex join_mutex;  // guards the joining of `thread`
  std::thread thread;
};

void Writer::Impl::loop() {
  while (wait_for_work()) {
    run_group();
    checkpoint();
  }
  // After a clean end the file alone holds everything, for whoever copies it.
  try {
    (void)store->checkpoint(1);
  } catch (...) {
    log_warn("checkpoint failed", {{"reason", words_of(std::current_exception())}});
  }
  // Closed by the thread that it belongs to, and before stop() returns: the owner lock may then
  // go to the next process.
  store.reset();
}

bool Writer::Impl::wait_for_work() {
  std::unique_lock lock(mutex);
  // At the end only what was posted is finished; the tail would begin new work.
  wake.wait(lock, [this] { return waiting > 0 || stopping || (tail_wanted && tail); });
  if (waiting == 0 && stopping) ended = true;
  return !ended;
}

std::optional<Item> Writer::Impl::take() {
  const std::lock_guard lock(mutex);
  for (auto& queue : queues) {
    if (queue.empty()) continue;
    Item item = std::move(queue.front());
    queue.pop_front();
    --waiting;
    return item;
  }
  return std::nullopt;
}

std::shared_ptr<const Writer::Tail> Writer::Impl::take_tail() {
  const std::lock_guard lock(mutex);
  if (!tail_wanted || !tail || stopping) return nullptr;
  tail_wanted = false;
  return tail;
}

void Writer::Impl::run_group() {
  try {
    store->begin();
  } catch (...) {
    // Nobody got in: whoever waits is told, rather than to wait as long again one after another.
    fail_waiting(std::current_exception());
    return;
  }
  std::vector<Item> group;
  std::shared_ptr<const Tail> ran;
  try {
    const MonoMs started = clock.mono_ms();
    const auto may_join = [&] {
      return group.empty() || (group.size() < static_cast<std::size_t>(config.max_group) &&
                               clock.mono_ms() - started < config.max_hold_ms);
    };
    while (may_join()) {
      auto item = take();
      if (!item) break;
      group.push_back(std::move(*item));
      group.back().operation(*store);
    }
    ran = take_tail();
    if (ran) ran->run(*store);
    commit();
  } catch (...) {
    rollback();
    run_again(group);
    if (ran) {
      // It runs now, whatever asked for it meanwhile.
      (void)take_tail();
      run_tail_alone(*ran);
    }
    return;
  }
  {
    const std::lock_guard lock(mutex);
    stats.operations += group.size();
  }
  for (Item& item : group)
    item.done(nullptr);
  if (ran) ran->committed();
}

// After a failure: each in a transaction of its own, so that it takes only itself along.
void Writer::Impl::run_again(std::vector<Item>& group) {
  std::exception_ptr locked_out;
  for (Item& item : group) {
    if (!locked_out) {
      try {
        store->begin();
      } catch (...) {
        locked_out = std::current_exception();
      }
    }
    if (locked_out) {
      item.done(locked_out);
    } else {
      run_alone(item);
    }
  }
}

void Writer::Impl::run_alone(Item& item) {
  std::exception_ptr error;
  try {
    item.operation(*store);
    commit();
    const std::lock_guard lock(mutex);
    ++stats.operations;
  } catch (...) {
    error = std::current_exception();
    rollback();
  }
  item.done(std::move(error));
}

void Writer::Impl::run_tail_alone(const Tail& failed_tail) {
  try {
    store->begin();
    failed_tail.run(*store);
    commit();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    rollback();
    failed_tail.failed(error);
    return;
  }
  failed_tail.committed();
}

void Writer::Impl::fail_waiting(const std::exception_ptr& error) {
  rollback();
  std::vector<Item> group;
  while (group.size() < static_cast<std::size_t>(config.max_group)) {
    auto item = take();
    if (!item) break;
    group.push_back(std::move(*item));
  }
  const auto wanted = take_tail();
  for (Item& item : group)
    item.done(error);
  if (wanted) wanted->failed(error);
}

void Writer::Impl::commit() {
  const MonoMs before = clock.mono_ms();
  store->commit();
  const DurationMs took = clock.mono_ms() - before;
  const std::lock_guard lock(mutex);
  ++stats.commits;
  stats.longest_commit_ms = std::max(stats.longest_commit_ms, took);
}

void Writer::Impl::rollback() {
  store->rollback();
  const std::lock_guard lock(mutex);
  ++stats.rollbacks;
}

void Writer::Impl::checkpoint() {
  constexpr std::int64_t kOnlyAsk = std::numeric_limits<std::int64_t>::max();
  std::int64_t left = store->checkpoint(kOnlyAsk);
  bool made = false;
  if (left >= config.checkpoint_frames) {
    try {
      left = store->checkpoint(config.checkpoint_frames);
      made = true;
    } catch (...) {
      // What is committed is safe in the log; it is tried again after the next group.
      log_warn("checkpoint failed", {{"reason", words_of(std::current_exception())}});
    }
  }
  const std::lock_guard lock(mutex);
  if (made) ++stats.checkpoints;
  stats.wal_frames = left;
}

Writer::Writer(std::unique_ptr<Store> store, const WriterConfig& config, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(store), config, clock)) {
  AIQ_CHECK(config.max_group >= 1 && config.checkpoint_frames >= 1);
  impl_->thread = std::thread([impl = impl_.get()] { impl->loop(); });
}

Writer::~Writer() {
  stop();
}

void Writer::Answer::give(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  there_ = true;
  given_.notify_one();
}

void Writer::Answer::take() {
  std::exception_ptr error;
  {
    std::unique_lock lock(mutex_);
    given_.wait(lock, [this] { return there_; });
    error = std::move(error_);
  }
  if (error) std::rethrow_exception(std::move(error));
}

void Writer::post(WritePriority priority, Operation operation, Done done) {
  {
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->ended) {
      impl_->queues[static_cast<std::size_t>(priority)].push_back(
          {std::move(operation), std::move(done)});
      ++impl_->waiting;
      impl_->wake.notify_one();
      return;
    }
  }
  // Too late: answered here, there is no writer thread any more.
  done(std::make_exception_ptr(
      StoreError(StoreError::Kind::busy, "the database was closed: the program is ending")));
}

void Writer::set_tail(Tail tail) {
  const std::lock_guard lock(impl_->mutex);
  impl_->tail = std::make_shared<const Tail>(std::move(tail));
  impl_->wake.notify_one();
}

void Writer::wake_tail() {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->tail_wanted) return;
  impl_->tail_wanted = true;
  impl_->wake.notify_one();
}

void Writer::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->wake.notify_one();
  }
  const std::lock_guard lock(impl_->join_mutex);
  if (impl_->thread.joinable()) impl_->thread.join();
}

WriterStats Writer::stats() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->stats;
}

std::size_t Writer::queued() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->waiting;
}

}  // namespace aiq
