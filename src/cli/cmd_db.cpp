// aiq db init, aiq db info, aiq db check

#include <unistd.h>

#include <cerrno>

#include "cli/commands.h"
#include "cli/render.h"
#include "core/base/file.h"
#include "core/base/sleep.h"
#include "core/store/owner_lock.h"
#include "core/store/store.h"

namespace aiq::cli {
namespace {

constexpr DurationMs kRetryMs = 50;

std::string owner_text(const std::string& path) {
  const auto holder = OwnerLock::holder(path);
  if (!holder) return "another process";
  return holder->program + " (pid " + std::to_string(holder->pid) + ")";
}

OwnerLock own(Session& session, const std::string& path) {
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

void make_folder(const std::string& path, bool for_group) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return;
  const auto made = make_folders(path.substr(0, slash), for_group ? 0750 : 0700);
  if (!made) {
    throw CommandFailed({Exit::storage, "cannot_create", made.error().message,
                         "choose another place with --db or $AIQ_DB"});
  }
}

Exit init(Session& session) {
  const std::string& path = session.db_path();
  bool created = false;
  // A running daemon has made it, and owns it.
  if (!session.executor().daemon()) {
    const DaemonConfig& daemon = session.config().daemon;
    created = ::access(path.c_str(), F_OK) != 0;
    if (created) make_folder(path, !daemon.socket_group.empty());
    const OwnerLock lock = own(session, path);
    StoreOptions options;
    options.age_step_ms = daemon.age_step_ms;
    options.busy_ms = session.busy_timeout_ms();
    options.group = daemon.socket_group;
    static_cast<void>(open_store(path, options, session.clock().wall_ms(), /*migrate=*/false));
  }
  if (session.out.json()) {
    session.out.object({{"path", path}, {"created", created}});
  } else {
    session.out.line((created ? "created " : "exists already: ") + path);
  }
  return Exit::ok;
}

// To read an empty database where there is none is kind; to call it sound would be false.
void require_file(Session& session) {
  if (::access(session.db_path().c_str(), F_OK) == 0 || errno != ENOENT) return;
  throw CommandFailed({Exit::storage, "no_database", "there is no database " + session.db_path(),
                       "aiq db init makes it; is --db or $AIQ_DB right?"});
}

Exit info(Session& session) {
  require_file(session);
  const Json answer = session.call("db.info", Json::object());
  if (session.out.json()) {
    session.out.object(answer);
  } else {
    print_members(session.out, answer, {}, true);
  }
  return Exit::ok;
}

Exit check(Session& session) {
  require_file(session);
  const Json answer = session.call("db.check", Json::object());
  Output& out = session.out;
  const bool ok = answer.at("ok").get<bool>();
  if (out.json()) {
    out.object(answer);
  } else if (ok) {
    out.line("ok " + session.db_path());
  } else {
    for (const Json& problem : answer.at("problems"))
      out.line(scalar_text(problem));
  }
  out.flush();
  if (ok) return Exit::ok;
  throw CommandFailed(
      {Exit::no, "faults_found",
       std::to_string(answer.at("problems").size()) + " faults in " + session.db_path(),
       "stop aiqd and keep a copy of the file before anything else"});
}

}  // namespace

void add_db(Command root, Session& session) {
  Command db = root.add("db", "make, describe and check the database file");
  db.add("init", "make the database; one that exists stays as it is").run([&session] {
    return init(session);
  });
  db.add("info", "print path, versions and sizes").run([&session] { return info(session); });
  db.add("check", "look for faults; exit 1 if there are any").run([&session] {
    return check(session);
  });
}

}  // namespace aiq::cli
