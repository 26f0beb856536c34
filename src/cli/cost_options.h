#pragma once
// Options that the commands of money share.

#include <string>

#include "cli/command.h"
#include "cli/session.h"

namespace aiq::cli {

// Sets a member from an RFC 3339 time.
void set_time(Json& in, const char* member, const std::string& option, const Text& text);

// --tenant, --from and --to: tenant-hours.
struct ScopeOptions {
  Text tenant, from, to;

  void add_to(Command& command);
  [[nodiscard]] Json input() const;
};

// cost summary, ledger, explain, runs, freezes
void add_cost_views(Command cost, Session& session);

}  // namespace aiq::cli
