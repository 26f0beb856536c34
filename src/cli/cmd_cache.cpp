// aiq cache stats, list, show, explain, invalidate

#include <algorithm>

#include "cli/bodies.h"
#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/render.h"
#include "cli/request_options.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

Exit stats(Session& session) {
  const Json answer = session.call("cache.stats", Json::object());
  if (session.out.json()) {
    session.out.object(answer);
  } else {
    print_members(session.out, answer, {}, true);
  }
  return Exit::ok;
}

Exit list(Session& session, const PageOptions& pages) {
  const UnixMs now = session.clock().wall_ms();
  const auto cells = [now](const Json& entry) -> std::vector<Cell> {
    return {member_text(entry, "cache_key"),     member_text(entry, "model"),
            member_text(entry, "state"),         member_text(entry, "hits"),
            member_text(entry, "bytes"),         age_text(entry, "created_at", now),
            age_text(entry, "last_used_at", now)};
  };
  return print_list(session, "cache.list", Json::object(), pages,
                    {{"KEY", false, true},
                     {"MODEL", false, true},
                     {"STATE"},
                     {"HITS", true},
                     {"BYTES", true},
                     {"AGE", true},
                     {"USED", true}},
                    cells, "the cache is empty");
}

Exit show(Session& session, const std::string& key) {
  const Json entry = session.call("cache.show", {{"key", key}});
  if (session.out.json()) {
    print_with_bodies(session.out, entry);
    return Exit::ok;
  }
  print_members(session.out, entry, {"result_text"});
  print_body(session.out, entry, "result");
  return Exit::ok;
}

struct ExplainOptions {
  Text a, b;
  RequestOptions keys;
};

// A job id, or a file with a request body.
Json explain_side(Session& session, const std::string& text) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (digits) return {{"job_id", text}};
  return {{"request", read_input("cache explain", text, session.config().limits.request_bytes)}};
}

Exit explain(Session& session, const ExplainOptions& o) {
  if (*o.a == "-" && *o.b == "-") {
    fail_usage("contradiction", "standard input can be one of the two requests only", "");
  }
  Json in = Json::object();
  o.keys.set_key_members(in);
  in["a"] = explain_side(session, *o.a);
  in["b"] = explain_side(session, *o.b);
  const Json answer = session.call("cache.explain", in);
  Output& out = session.out;
  if (out.json()) {
    out.object(answer);
    return Exit::ok;
  }
  print_members(out, answer, {"differences"});
  const Json differences = answer.value("differences", Json::array());
  if (!differences.empty()) out.line("differences:");
  for (const Json& difference : differences)
    out.line("  " + scalar_text(difference));
  return Exit::ok;
}

struct InvalidateOptions {
  Text key, model, tenant, label, older_than;
  bool all = false;
};

Exit invalidate(Session& session, const InvalidateOptions& o) {
  Json in = Json::object();
  set_text(in, "key", o.key);
  set_text(in, "model", o.model);
  set_text(in, "tenant", o.tenant);
  set_label(in, o.label);
  set_duration(in, "older_than_ms", "--older-than", o.older_than);
  if (in.empty() == !o.all) {
    fail_usage("missing_filter",
               in.empty() ? "aiq cache invalidate needs a filter"
                          : "--all and a filter exclude each other",
               "name what to remove, or --all for everything");
  }
  set_flag(in, "all", o.all);
  std::int64_t removed = 0;
  for (bool more = true; more;) {
    const Json answer = session.call("cache.invalidate", in);
    removed += answer.at("removed").get<std::int64_t>();
    in["after"] = answer.at("next_after");
    more = !in["after"].is_null();
    if (more) session.out.progress(std::to_string(removed) + " entries removed");
  }
  session.out.progress("");
  if (session.out.json()) {
    session.out.object({{"removed", removed}});
  } else {
    session.out.line(std::to_string(removed) + (removed == 1 ? " entry" : " entries") + " removed");
  }
  return Exit::ok;
}

}  // namespace

void add_cache(Command root, Session& session) {
  Command cache = root.add("cache", "look into the cache of answers, and remove from it");
  cache.add("stats", "show entries, hits and what they saved").run([&session] {
    return stats(session);
  });

  auto pages = std::make_shared<PageOptions>();
  Command list_command = cache.add("list", "list entries, the last used first");
  pages->add_to(list_command, "N");
  list_command.run([pages, &session] { return list(session, *pages); });

  auto key = std::make_shared<Text>();
  cache.add("show", "show one entry")
      .operand("KEY", *key, "Cache key, as submit and show print it", ValueKind::cache_key)
      .run([key, &session] { return show(session, **key); });

  auto explain_options = std::make_shared<ExplainOptions>();
  Command explain_command =
      cache.add("explain", "tell whether two requests have one key, or where they differ");
  explain_command
      .operand("A", explain_options->a, "A job id, or a file with a request body",
               ValueKind::job_or_file)
      .operand("B", explain_options->b, "The same; - = standard input", ValueKind::job_or_file);
  explain_options->keys.add_key_options(explain_command);
  explain_command.option("scope", "TEXT", explain_options->keys.scope, "As in submit")
      .option("locale", "TEXT", explain_options->keys.locale, "As in submit")
      .option("safety", "TEXT", explain_options->keys.safety, "As in submit")
      .run([explain_options, &session] { return explain(session, *explain_options); });

  auto options = std::make_shared<InvalidateOptions>();
  cache.add("invalidate", "remove entries that match every filter given")
      .option("key", "KEY", options->key, "With this cache key", ValueKind::cache_key)
      .option("model", "M", options->model, "For this model", ValueKind::model)
      .option("tenant", "T", options->tenant, "Of this tenant", ValueKind::tenant)
      .option("label", "K=V", options->label, "Made by a job with this label", ValueKind::label)
      .option("older-than", "D", options->older_than, "Older than this")
      .flag("all", options->all, "All entries")
      .run([options, &session] { return invalidate(session, *options); });
}

}  // namespace aiq::cli
