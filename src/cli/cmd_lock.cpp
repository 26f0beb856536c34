// aiq lock list, aiq lock break

#include "cli/commands.h"
#include "cli/render.h"
#include "cli/text.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

struct BreakOptions {
  Text name;
  bool yes = false;
};

Exit list(Session& session) {
  const Json answer = session.call("lock.list", Json::object());
  Output& out = session.out;
  const UnixMs now = session.clock().wall_ms();
  Table table = out.table(
      {{"NAME", false, true}, {"OWNER", false, true}, {"JOB", true}, {"AGE", true}, {"EXPIRES"}});
  for (const Json& lock : answer.at("rows")) {
    if (out.json()) {
      out.object(lock);
      continue;
    }
    table.add({member_text(lock, "name"), member_text(lock, "owner"), member_text(lock, "job_id"),
               age_text(lock, "acquired_at", now), member_text(lock, "expires_at")});
  }
  if (!table.empty()) {
    out.text(table.take());
  } else if (!out.json()) {
    out.note("no locks are held");
  }
  return Exit::ok;
}

Exit break_lock(Session& session, const BreakOptions& o) {
  if (!o.yes) {
    fail_usage("confirm",
               "this would free the lock " + *o.name +
                   " whoever holds it, and the holder's work may be done twice",
               "add --yes to do it");
  }
  const Json answer = session.call("lock.break", {{"name", *o.name}});
  if (session.out.json()) {
    session.out.object(answer);
  } else {
    session.out.line("broken " + printable(*o.name));
  }
  return Exit::ok;
}

}  // namespace

void add_lock(Command root, Session& session) {
  Command lock = root.add("lock", "show and break the locks of single flight");
  lock.add("list", "list the locks that are held").run([&session] { return list(session); });
  auto options = std::make_shared<BreakOptions>();
  lock.add("break", "free a lock whoever holds it")
      .operand("NAME", options->name, "As lock list shows it", ValueKind::lock)
      .flag("yes", options->yes, "Really")
      .run([options, &session] { return break_lock(session, *options); });
}

}  // namespace aiq::cli
