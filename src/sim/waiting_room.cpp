#include "sim/waiting_room.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace aiq::sim {
namespace {

// How soon a client's leaving is noticed.
constexpr DurationMs kWatchEveryMs = 100;

}  // namespace

WaitingRoom::WaitingRoom(Clock& clock) : clock_(clock), thread_([this] { run(); }) {}

WaitingRoom::~WaitingRoom() {
  close();
  thread_.join();
}

void WaitingRoom::enter(Waiter waiter) {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    waiter.wake(Woken::stopping);
    return;
  }
  waiters_.push_back(std::move(waiter));
  changed_.notify_one();
}

std::int64_t WaitingRoom::release(const std::optional<std::string>& rule) {
  const std::lock_guard lock(mutex_);
  std::int64_t count = 0;
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    if (it->due || (rule && it->rule != *rule)) {
      ++it;
      continue;
    }
    it->wake(Woken::released);
    it = waiters_.erase(it);
    ++count;
  }
  return count;
}

void WaitingRoom::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (Waiter& waiter : waiters_)
    waiter.wake(Woken::stopping);
  waiters_.clear();
  changed_.notify_one();
}

std::int64_t WaitingRoom::held() const {
  const std::lock_guard lock(mutex_);
  return std::count_if(waiters_.begin(), waiters_.end(),
                       [](const Waiter& waiter) { return !waiter.due; });
}

std::int64_t WaitingRoom::clients_gone() const {
  const std::lock_guard lock(mutex_);
  return clients_gone_;
}

void WaitingRoom::wake_due(MonoMs now) {
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    if (!it->due || *it->due > now) {
      ++it;
      continue;
    }
    it->wake(Woken::due);
    it = waiters_.erase(it);
  }
}

void WaitingRoom::wake_gone() {
  std::vector<pollfd> fds;
  fds.reserve(waiters_.size());
  for (const Waiter& waiter : waiters_)
    fds.push_back({waiter.fd, POLLRDHUP, 0});
  if (fds.empty() || poll(fds.data(), fds.size(), 0) <= 0) return;
  auto fd = fds.begin();
  for (auto it = waiters_.begin(); it != waiters_.end(); ++fd) {
    if ((fd->revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) {
      ++it;
      continue;
    }
    ++clients_gone_;
    it->wake(Woken::client_gone);
    it = waiters_.erase(it);
  }
}

DurationMs WaitingRoom::next_wait(MonoMs now) const {
  DurationMs wait = kWatchEveryMs;
  for (const Waiter& waiter : waiters_) {
    if (waiter.due) wait = std::min(wait, std::max<DurationMs>(*waiter.due - now, 0));
  }
  return wait;
}

void WaitingRoom::run() {
  std::unique_lock lock(mutex_);
  MonoMs watched_at = clock_.mono_ms();
  while (!closed_) {
    if (waiters_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const MonoMs now = clock_.mono_ms();
    wake_due(now);
    if (now - watched_at >= kWatchEveryMs) {
      wake_gone();
      watched_at = now;
    }
    if (waiters_.empty()) continue;
    changed_.wait_for(lock, std::chrono::milliseconds(next_wait(now)));
  }
}

}  // namespace aiq::sim
