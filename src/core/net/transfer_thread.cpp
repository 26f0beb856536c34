#include "core/net/transfer_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "core/base/check.h"
#include "core/base/redact.h"

namespace aiq {
namespace {

// Marks the wake descriptor among the events; sockets carry (multi index << 32 | descriptor).
constexpr std::uint64_t kWakeMark = ~std::uint64_t{0};

Fd checked(int fd, const char* what) {
  if (fd < 0) throw std::runtime_error(std::string(what) + ": " + errno_text(errno));
  return Fd(fd);
}

std::uint32_t epoll_events(int what) {
  std::uint32_t events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= EPOLLOUT;
  return events;
}

int curl_events(std::uint32_t events) {
  int seen = 0;
  if ((events & (EPOLLIN | EPOLLHUP)) != 0) seen |= CURL_CSELECT_IN;
  if ((events & EPOLLOUT) != 0) seen |= CURL_CSELECT_OUT;
  if ((events & EPOLLERR) != 0) seen |= CURL_CSELECT_ERR;
  return seen;
}

HttpResult unsent(HttpResult::Failure failure, std::string text, DurationMs total_ms) {
  HttpResult result;
  result.failure = failure;
  result.failure_text = std::move(text);
  result.total_ms = total_ms;
  return result;
}

}  // namespace

TransferThread::TransferThread(std::size_t multi_count)
    : epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "cannot make an epoll descriptor")),
      wake_fd_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "cannot make an event descriptor")) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeMark;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_fd_.get(), &event) != 0) {
    throw std::runtime_error("cannot watch the event descriptor: " + errno_text(errno));
  }
  for (std::size_t i = 0; i < multi_count; ++i)
    add_multi();

  // Signals are the main thread's; SIGPIPE (TLS writes to a closed socket) is nobody's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    for (auto& multi : multis_)
      curl_multi_cleanup(multi->handle);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TransferThread::~TransferThread() {
  AIQ_CHECK(!thread_.joinable() && running_.empty());
  for (CURL* easy : idle_)
    curl_easy_cleanup(easy);
  // Closes the pooled connections, which still calls on_socket.
  for (auto& multi : multis_)
    curl_multi_cleanup(multi->handle);
}

void TransferThread::start(Start start) {
  const std::lock_guard lock(mutex_);
  AIQ_CHECK(!stop_);
  starts_.push_back(std::move(start));
  wake();
}

void TransferThread::cancel(TransferId id) {
  const std::lock_guard lock(mutex_);
  cancels_.push_back(id);
  wake();
}

void TransferThread::request_stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  wake();
}

void TransferThread::join() {
  if (thread_.joinable()) thread_.join();
}

void TransferThread::wake() {
  if (std::exchange(woken_, true)) return;
  const std::uint64_t one = 1;
  AIQ_CHECK(write(wake_fd_.get(), &one, sizeof one) == sizeof one);
}

void TransferThread::run() {
  while (take_commands()) {
    run_timers();
    wait_and_dispatch();
    run_timers();
    expire_due();
  }
  while (!running_.empty()) {
    give_up(*running_.begin()->second.transfer, HttpResult::Failure::cancelled);
  }
}

// False once all is to end. What was asked for and not begun then ends as cancelled.
bool TransferThread::take_commands() {
  std::vector<Start> starts;
  std::vector<TransferId> cancels;
  bool stop = false;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(woken_, false)) {
      std::uint64_t count = 0;
      AIQ_CHECK(read(wake_fd_.get(), &count, sizeof count) == sizeof count);
    }
    starts.swap(starts_);
    cancels.swap(cancels_);
    stop = stop_;
  }
  const std::unordered_set<TransferId> cancelled(cancels.begin(), cancels.end());
  for (Start& start : starts) {
    if (stop || cancelled.count(start.id) != 0) {
      const DurationMs waited = system_clock().mono_ms() - start.at;
      start.done(unsent(HttpResult::Failure::cancelled, "aborted", waited));
    } else {
      begin(std::move(start));
    }
  }
  for (const TransferId id : cancels) {
    const auto found = running_.find(id);
    if (found != running_.end()) give_up(*found->second.transfer, HttpResult::Failure::cancelled);
  }
  return !stop;
}

void TransferThread::begin(Start start) {
  HttpRequest request;
  std::string refusal;
  try {
    request = start.make();
  } catch (const std::exception& error) {
    refusal = redact(error.what());
  }
  CURL* easy = refusal.empty() ? take_easy() : nullptr;
  if (refusal.empty() && easy == nullptr) refusal = "out of memory";
  if (easy == nullptr) {
    start.done(unsent(HttpResult::Failure::not_sent, std::move(refusal),
                      system_clock().mono_ms() - start.at));
    return;
  }
  auto transfer = std::make_unique<Transfer>(start.id, start.at, std::move(request),
                                             std::move(start.done), easy, deadlines_);
  Transfer& t = *transfer;
  Multi& multi = multi_for_next();
  running_.emplace(start.id, Running{std::move(transfer), nullptr});
  refusal = t.setup_error();
  if (refusal.empty()) {
    const CURLMcode code = curl_multi_add_handle(multi.handle, easy);
    if (code != CURLM_OK) refusal = curl_multi_strerror(code);
  }
  if (!refusal.empty()) {
    end(t, unsent(HttpResult::Failure::not_sent, redact(refusal),
                  system_clock().mono_ms() - start.at));
    return;
  }
  running_.at(start.id).multi = &multi;
  ++multi.active;
}

// Fills the first handles first, so that pooled connections are found again.
TransferThread::Multi& TransferThread::multi_for_next() {
  for (auto& multi : multis_) {
    if (multi->active < kTransfersPerMulti) return *multi;
  }
  return add_multi();
}

TransferThread::Multi& TransferThread::add_multi() {
  auto multi = std::make_unique<Multi>();
  multi->handle = curl_multi_init();
  if (multi->handle == nullptr) throw std::runtime_error("cannot make a curl handle");
  multi->owner = this;
  multi->index = static_cast<std::uint32_t>(multis_.size());
  curl_multi_setopt(multi->handle, CURLMOPT_SOCKETFUNCTION, &TransferThread::on_socket);
  curl_multi_setopt(multi->handle, CURLMOPT_SOCKETDATA, multi.get());
  curl_multi_setopt(multi->handle, CURLMOPT_TIMERFUNCTION, &TransferThread::on_timer);
  curl_multi_setopt(multi->handle, CURLMOPT_TIMERDATA, multi.get());
  curl_multi_setopt(multi->handle, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  curl_multi_setopt(multi->handle, CURLMOPT_MAXCONNECTS, static_cast<long>(kTransfersPerMulti));
  multis_.push_back(std::move(multi));
  return *multis_.back();
}

// Handles are kept: a new one costs more than the rest of a small request.
CURL* TransferThread::take_easy() {
  if (idle_.empty()) return curl_easy_init();
  CURL* easy = idle_.back();
  idle_.pop_back();
  return easy;
}

int TransferThread::on_socket(CURL*, curl_socket_t fd, int what, void* data, void* known) {
  auto& multi = *static_cast<Multi*>(data);
  const int epoll = multi.owner->epoll_.get();
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);  // may be closed already
    curl_multi_assign(multi.handle, fd, nullptr);
    return 0;
  }
  epoll_event event{};
  event.events = epoll_events(what);
  event.data.u64 = std::uint64_t{multi.index} << 32 | static_cast<std::uint32_t>(fd);
  const int op = known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (epoll_ctl(epoll, op, fd, &event) != 0) {
    const int other = op == EPOLL_CTL_ADD ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(epoll, other, fd, &event) != 0) return -1;
  }
  curl_multi_assign(multi.handle, fd, &multi);
  return 0;
}

int TransferThread::on_timer(CURLM*, long wait_ms, void* data) {
  auto& multi = *static_cast<Multi*>(data);
  multi.timer_at = wait_ms < 0 ? kNoDeadline : system_clock().mono_ms() + wait_ms;
  return 0;
}

int TransferThread::wait_ms(MonoMs now) const {
  MonoMs next = deadlines_.earliest().value_or(kNoDeadline);
  for (const auto& multi : multis_)
    next = std::min(next, multi->timer_at);
  if (next == kNoDeadline) return -1;
  constexpr MonoMs kLongest = 60'000;
  return static_cast<int>(std::clamp<MonoMs>(next - now, 0, kLongest));
}

void TransferThread::wait_and_dispatch() {
  std::array<epoll_event, 256> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               wait_ms(system_clock().mono_ms()));
  AIQ_CHECK(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeMark) continue;  // take_commands reads it
    Multi& multi = *multis_[event.data.u64 >> 32];
    int left = 0;
    curl_multi_socket_action(multi.handle, static_cast<int>(event.data.u64 & 0xffffffffU),
                             curl_events(event.events), &left);
  }
  for (std::size_t i = 0; i < multis_.size(); ++i)
    collect_ended(*multis_[i]);
}

void TransferThread::run_timers() {
  const MonoMs now = system_clock().mono_ms();
  for (std::size_t i = 0; i < multis_.size(); ++i) {
    Multi& multi = *multis_[i];
    if (multi.timer_at > now) continue;
    multi.timer_at = kNoDeadline;  // curl sets it again when it needs to
    int left = 0;
    curl_multi_socket_action(multi.handle, CURL_SOCKET_TIMEOUT, 0, &left);
    collect_ended(multi);
  }
}

void TransferThread::collect_ended(Multi& multi) {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi.handle, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    AIQ_CHECK(transfer != nullptr);
    end(*transfer, transfer->result(code, system_clock().mono_ms()));
  }
}

void TransferThread::expire_due() {
  const MonoMs now = system_clock().mono_ms();
  while (Transfer* transfer = deadlines_.due(now))
    give_up(*transfer, transfer->expired(now));
}

void TransferThread::give_up(Transfer& transfer, HttpResult::Failure failure) {
  end(transfer, transfer.aborted(failure, system_clock().mono_ms()));
}

void TransferThread::end(Transfer& transfer, HttpResult result) {
  auto node = running_.extract(transfer.id());
  AIQ_CHECK(!node.empty());
  CURL* easy = transfer.easy();
  if (Multi* multi = node.mapped().multi) {
    curl_multi_remove_handle(multi->handle, easy);  // closes the connection of an unfinished one
    --multi->active;
  }
  curl_easy_reset(easy);
  idle_.push_back(easy);
  const auto done = transfer.take_done();
  node = {};  // nothing of this transfer is left when its owner hears of it
  done(std::move(result));
}

}  // namespace aiq
