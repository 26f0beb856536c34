#include "cli/commands.h"

namespace aiq::cli {

CommandTree make_command_tree(Session& session) {
  CommandTree tree("aiq", "Queue requests to AI models, and get their answers.");
  Command root = tree.root();
  GlobalOptions& globals = session.globals;
  root.option("db", "FILE", globals.db, "Database; else $AIQ_DB, else as configured",
              ValueKind::file)
      .option("config", "FILE", globals.config, "Configuration; else $AIQ_CONFIG, see aiq.toml(5)",
              ValueKind::file)
      .flag("json", globals.json, "JSON: an object, or a line per row of a list")
      .option("busy-timeout", "D", globals.busy_timeout,
              "How long to try while the database is busy; default 10s")
      .flag("quiet", globals.quiet, "No warnings, hints and progress");
  root.heading("Jobs");
  add_submit(root, session);
  add_jobs(root, session);
  add_batch(root, session);
  add_wait(root, session);
  add_watch(root, session);
  add_why(root, session);
  add_cancel(root, session);
  root.heading("Queue");
  add_stats(root, session);
  add_pause(root, session);
  add_vendor(root, session);
  add_dlq(root, session);
  add_events(root, session);
  root.heading("Cache and locks");
  add_cache(root, session);
  add_lock(root, session);
  root.heading("Money");
  add_price(root, session);
  add_usage(root, session);
  add_cost(root, session);
  add_invoice(root, session);
  add_imports(root, session);
  add_audit(root, session);
  add_repair(root, session);
  root.heading("Files");
  add_sql(root, session);
  add_config(root, session);
  add_db(root, session);
  root.heading("Help");
  add_completion(root, session);
  add_help(root, session);
  return tree;
}

}  // namespace aiq::cli
