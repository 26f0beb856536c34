// aiq db init, aiq db info, aiq db check; the others stand in cmd_db_keeping.cpp and
// cmd_db_prune.cpp

#include <unistd.h>

#include "cli/commands.h"
#include "cli/db_file.h"
#include "cli/render.h"
#include "cli/text.h"

namespace aiq::cli {
namespace {

Exit init(Session& session) {
  const std::string& path = session.db_path();
  bool created = false;
  // A running daemon has made it, and owns it.
  if (!session.executor().daemon()) {
    created = ::access(path.c_str(), F_OK) != 0;
    if (created) make_database_folder(session);
    const OwnerLock lock = own_database(session);
    static_cast<void>(
        open_store(path, store_options(session), session.clock().wall_ms(), /*migrate=*/false));
  }
  if (session.out.json()) {
    session.out.object({{"path", path}, {"created", created}});
  } else {
    session.out.line((created ? "created " : "exists already: ") + path);
  }
  return Exit::ok;
}

Exit info(Session& session) {
  require_database(session);
  const Json answer = session.call("db.info", Json::object());
  if (session.out.json()) {
    session.out.object(answer);
  } else {
    print_members(session.out, answer, {}, true);
  }
  return Exit::ok;
}

Exit check(Session& session) {
  require_database(session);
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
       counted(static_cast<std::int64_t>(answer.at("problems").size()), "fault", "faults") +
           " in " + session.db_path(),
       "stop aiqd and keep a copy of the file before anything else"});
}

}  // namespace

void add_db(Command root, Session& session) {
  Command db = root.add("db", "make, check, copy and clean up the database");
  db.add("init", "make the database; one that exists stays as it is").run([&session] {
    return init(session);
  });
  db.add("info", "print path, versions and sizes").run([&session] { return info(session); });
  db.add("check", "look for faults; exit 1 if there are any").run([&session] {
    return check(session);
  });
  add_db_keeping(db, session);
  add_db_prune(db, session);
}

}  // namespace aiq::cli
