#pragma once
// aiq submit --batch: reads a file of requests and takes it in, slice by slice.

#include <string>

#include "cli/command.h"
#include "cli/session.h"

namespace aiq::cli {

struct BatchRequest {
  std::string path;  // "-" = standard input
  Text key;          // --idempotency-key
  bool atomic = false;
  Json options;                  // of every line
  std::string options_as_given;  // the same, for telling batches apart
};

struct BatchReport {
  std::string batch_id;  // "" = nothing went in
  std::int64_t lines = 0, created = 0, existing = 0, cached = 0, rejected = 0;
  std::string damage;      // the file ended before its end: why
  std::string errors_of;   // the batch that has the errors; staged when nothing went in
  bool none_runs = false;  // this process wrote the file, so no daemon has it
};

// Takes the file in. Ends with every line in once, however often and by how many processes it is
// called with the same file. CommandFailed when it can't go on; what went in stays.
[[nodiscard]] BatchReport load_batch(Session& session, const BatchRequest& request);

// Lines that were refused go to standard error, or into the object with --json; `more`: further
// members of the object. Then removes what only was there to be reported.
void print_batch_report(Session& session, const BatchReport& report, const Json& more);

// Why the exit code is 2; no value when all lines went in and the file was whole.
[[nodiscard]] std::optional<Failure> failure_of_batch(const BatchReport& report);

// --dry-run: reads, checks and counts; writes nothing. Prints the report.
Exit preview_batch(Session& session, const BatchRequest& request);

}  // namespace aiq::cli
