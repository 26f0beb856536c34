#include "cli/db_file.h"

#include <unistd.h>

#include <cerrno>

#include "core/base/file.h"
#include "core/base/sleep.h"

namespace aiq::cli {
namespace {

constexpr DurationMs kRetryMs = 50;

std::string owner_text(const std::string& path) {
  const auto holder = OwnerLock::holder(path);
  if (!holder) return "another process";
  return holder->program + " (pid " + std::to_string(holder->pid) + ")";
}

}  // namespace

OwnerLock own_database(Session& session) {
  const std::string& path = session.db_path();
  const MonoMs begun_ms = session.clock().mono_ms();
  for (;;) {
    if (auto lock = OwnerLock::try_acquire(path, "aiq")) return std::move(*lock);
    if (session.clock().mono_ms() - begun_ms >= session.busy_timeout_ms()) {
      throw CommandFailed({Exit::busy, "busy", owner_text(path) + " owns " + path,
                           "try again later, or with a longer --busy-timeout"});
    }
    sleep_ms(kRetryMs);
  }
}

OwnerLock own_without_daemon(Session& session, const std::string& what) {
  if (session.executor().daemon()) {
    throw CommandFailed({Exit::busy, "daemon_running",
                         owner_text(session.db_path()) + " owns " + session.db_path() + ", so " +
                             what + " has to wait",
                         "stop aiqd first"});
  }
  return own_database(session);
}

StoreOptions store_options(Session& session) {
  const DaemonConfig& daemon = session.config().daemon;
  return {.age_step_ms = daemon.age_step_ms,
          .busy_ms = session.busy_timeout_ms(),
          .group = daemon.socket_group};
}

void make_database_folder(Session& session) {
  const std::string& path = session.db_path();
  const bool for_group = !session.config().daemon.socket_group.empty();
  const auto made = make_folders(folder_of(path), for_group ? 0750 : 0700);
  if (!made) {
    throw CommandFailed({Exit::storage, "cannot_create", made.error().message,
                         "choose another place with --db or $AIQ_DB"});
  }
}

void require_database(Session& session) {
  if (::access(session.db_path().c_str(), F_OK) == 0 || errno != ENOENT) return;
  throw CommandFailed({Exit::storage, "no_database", "there is no database " + session.db_path(),
                       "aiq db init makes it; is --db or $AIQ_DB right?"});
}

}  // namespace aiq::cli
