#include "cli/value_kind.h"

#include "core/model/attempt.h"
#include "core/model/job.h"
#include "core/model/request.h"

namespace aiq::cli {
namespace {

using Names = std::vector<std::string>;

// The names of an enumeration whose last member is `last`.
template <class Enum>
Names names_up_to(Enum last) {
  Names names;
  for (int i = 0; i <= static_cast<int>(last); ++i)
    names.emplace_back(to_string(static_cast<Enum>(i)));
  return names;
}

}  // namespace

const std::vector<std::string>& fixed_values(ValueKind kind) {
  static const Names none;
  static const Names states = names_up_to(static_cast<JobState>(kJobStateCount - 1));
  static const Names letter_states = {"open", "replayed", "discarded", "all"};
  static const Names reasons = names_up_to(DeadReason::rate_limit_exhausted);
  static const Names outcomes = names_up_to(Outcome::crashed);
  static const Names endpoints = names_up_to(Endpoint::messages);
  static const Names groups = {"tenant", "vendor", "model"};
  static const Names shells = {"bash", "zsh", "fish"};
  static const Names formats = {"table", "csv", "json"};
  static const Names units = {"hour", "day", "month", "total"};
  static const Names run_outcomes = {"done", "busy", "frozen", "failed", "abandoned"};
  static const Names usage_states = {"posted", "unposted", "unpriced"};
  static const Names conflict_states = {"open", "kept", "replaced", "all"};
  switch (kind) {
    case ValueKind::job_state:
      return states;
    case ValueKind::letter_state:
      return letter_states;
    case ValueKind::letter_reason:
      return reasons;
    case ValueKind::outcome:
      return outcomes;
    case ValueKind::endpoint:
      return endpoints;
    case ValueKind::group_by:
      return groups;
    case ValueKind::shell:
      return shells;
    case ValueKind::table_format:
      return formats;
    case ValueKind::time_unit:
      return units;
    case ValueKind::run_outcome:
      return run_outcomes;
    case ValueKind::usage_state:
      return usage_states;
    case ValueKind::conflict_state:
      return conflict_states;
    default:
      return none;
  }
}

}  // namespace aiq::cli
