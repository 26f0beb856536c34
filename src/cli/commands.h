#pragma once
// Every command of `aiq`, in the order of --help. Each add_* puts its commands below `root`; what
// they do stands in the file of the same name.

#include "cli/command.h"
#include "cli/session.h"

namespace aiq::cli {

void add_submit(Command root, Session& session);  // submit, run
void add_jobs(Command root, Session& session);    // list, show, result
void add_batch(Command root, Session& session);
void add_wait(Command root, Session& session);
void add_watch(Command root, Session& session);
void add_why(Command root, Session& session);
void add_events(Command root, Session& session);
void add_cancel(Command root, Session& session);
void add_stats(Command root, Session& session);
void add_pause(Command root, Session& session);  // pause, resume
void add_vendor(Command root, Session& session);
void add_cache(Command root, Session& session);
void add_lock(Command root, Session& session);
void add_dlq(Command root, Session& session);
void add_dlq_edit(Command dlq, Session& session);  // below `aiq dlq`
void add_price(Command root, Session& session);
void add_usage(Command root, Session& session);
void add_cost(Command root, Session& session);
void add_invoice(Command root, Session& session);
void add_sql(Command root, Session& session);
void add_imports(Command root, Session& session);
void add_audit(Command root, Session& session);
void add_repair(Command root, Session& session);
void add_config(Command root, Session& session);
void add_db(Command root, Session& session);
void add_completion(Command root, Session& session);
void add_help(Command root, Session& session);

// What completion offers after `words`, a line each; see completion_scripts.cpp. Never fails.
void print_candidates(Output& out, const Command::Node& root,
                      const std::vector<std::string>& words);

// The whole tree with the global options, which are stored in `session`.
[[nodiscard]] CommandTree make_command_tree(Session& session);

}  // namespace aiq::cli
