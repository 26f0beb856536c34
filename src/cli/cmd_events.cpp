// aiq events

#include "cli/commands.h"
#include "cli/event_feed.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

struct EventsOptions {
  Text after, limit;
  bool follow = false;
};

Exit events(Session& session, const EventsOptions& o) {
  std::optional<std::int64_t> after;
  if (o.after) {
    after = whole_value("--after", *o.after, 0, INT64_MAX);
  } else if (!o.follow) {
    after = 0;
  }
  // 0 = all.
  std::int64_t left = o.limit ? whole_value("--limit", *o.limit, 0, INT64_MAX) : 0;
  const bool limited = left > 0;
  Output& out = session.out;
  EventFeed feed(session, after);
  for (;;) {
    const bool any = feed.poll([&](const Json& event) {
      if (limited && left-- <= 0) return;
      out.object(event);
    });
    out.flush();
    if (out.reader_gone() || (limited && left <= 0)) return Exit::ok;
    if (any) continue;
    if (!o.follow) return Exit::ok;
    feed.pause();
  }
}

}  // namespace

void add_events(Command root, Session& session) {
  auto options = std::make_shared<EventsOptions>();
  Command command = root.add("events", "print what happened to jobs, oldest first, as JSON Lines");
  command.option("after", "ID", options->after, "Only events after this one")
      .option("limit", "N", options->limit, "At most N events; default 0 = all")
      .flag("follow", options->follow, "Go on with what happens; without --after from now on")
      .run([options, &session] { return events(session, *options); });
}

}  // namespace aiq::cli
