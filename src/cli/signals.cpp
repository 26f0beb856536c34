#include "cli/signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace aiq::cli {
namespace {

std::atomic<bool> g_writing{false};
std::atomic<int> g_pending{0};
std::atomic<bool> g_progress{false};
std::atomic<std::size_t> g_farewell_size{0};
std::array<char, 256> g_farewell{};

static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<std::size_t>::is_always_lock_free);

// Only what is async-signal-safe.
[[noreturn]] void leave(int number) {
  constexpr std::string_view kClear = "\r\x1b[K";
  ssize_t ignored = 0;
  if (g_progress) ignored = ::write(STDERR_FILENO, kClear.data(), kClear.size());
  if (g_farewell_size > 0) ignored = ::write(STDERR_FILENO, g_farewell.data(), g_farewell_size);
  static_cast<void>(ignored);
  ::_exit(128 + number);
}

void on_signal(int number) {
  const int saved = errno;
  if (!g_writing || g_pending != 0) leave(number);
  g_pending = number;
  errno = saved;
}

}  // namespace

void install_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGTERM);
  // No SA_RESTART: a write that waits for a reader must notice.
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction old = {};
    // A shell starts background jobs with SIGINT ignored; that stays so.
    if (::sigaction(number, nullptr, &old) == 0 && old.sa_handler != SIG_IGN) {
      ::sigaction(number, &action, nullptr);
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is a write error like others
}

void set_farewell(std::string_view line) {
  g_farewell_size = 0;
  const std::size_t size = std::min(line.size(), g_farewell.size() - 1);
  std::memcpy(g_farewell.data(), line.data(), size);
  if (size == 0) return;
  g_farewell[size] = '\n';
  g_farewell_size = size + 1;
}

void set_progress_shown(bool shown) {
  g_progress = shown;
}

int write_stdout(std::string_view lines) {
  g_writing = true;
  std::size_t done = 0;
  int error = 0;
  while (done < lines.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, lines.data() + done, lines.size() - done);
    if (n > 0) done += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR) {
      error = errno;
      break;
    }
    if (g_pending != 0) {
      const bool at_line_end = done == 0 || lines[done - 1] == '\n';
      if (at_line_end) break;
      lines = lines.substr(0, std::min(lines.size(), lines.find('\n', done) + 1));
    }
  }
  g_writing = false;
  if (const int number = g_pending; number != 0) leave(number);
  return error;
}

}  // namespace aiq::cli
