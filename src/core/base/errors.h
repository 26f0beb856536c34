#pragma once
// What can go wrong for an operator, as the exit codes and the JSON error object of the contract.

#include <string>

namespace aiq {

enum class Exit : int {
  ok = 0,
  no = 1,         // the answer is no: not completed, not there yet, a fault found
  usage = 2,      // wrong usage or invalid input; nothing written
  not_found = 3,  // no such job, entry, key, tenant
  conflict = 4,   // key reused with another body, already resolved
  refused = 5,    // by policy: budget, disabled tenant, size
  timeout = 6,    // --timeout passed
  busy = 7,       // busy or unreachable; retry later
  storage = 8,    // I/O error, disk full, corrupt, read-only, schema not this version's
  interrupted = 130,
  terminated = 143,
};

// A failure that a person reads: what happened to what, and what to do next.
struct Failure {
  Exit exit = Exit::usage;
  std::string code;     // snake_case, stable: "no_such_job"
  std::string message;  // one sentence
  std::string hint;     // what to do next; may be empty
};

}  // namespace aiq
