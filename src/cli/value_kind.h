#pragma once
// What the value of an option or operand is. Completion offers values of that kind; where the kind
// is a fixed set, the command tree refuses any other value.

#include <cstdint>
#include <string>
#include <vector>

namespace aiq::cli {

enum class ValueKind : std::uint8_t {
  none,  // free text, a number, a time
  // Files.
  file,
  job_or_file,  // a job id, or a file
  // What the database and the configuration know.
  job,
  live_job,  // one that has not ended
  submission,
  batch,
  dead_letter,
  cache_key,
  lock,
  tenant,
  vendor,
  model,
  label,  // KEY=VALUE
  // Fixed sets.
  job_state,
  letter_state,
  letter_reason,
  outcome,
  endpoint,
  group_by,
  shell,
  table_format,
  time_unit,
  run_outcome,
  usage_state,
  conflict_state,
  // Names of commands and of pages of `aiq help`; not checked by the tree.
  topic,
};

// The values of a fixed set, in the order in which help shows them; empty for the other kinds.
[[nodiscard]] const std::vector<std::string>& fixed_values(ValueKind kind);

}  // namespace aiq::cli
