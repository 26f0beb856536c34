#include "core/model/job.h"

#include <array>
#include <cstddef>

#include "core/base/check.h"

namespace aiq {
namespace {

constexpr std::array<std::string_view, kJobStateCount> kStateNames = {
    "queued", "processing", "retrying", "completed", "failed", "dead_lettered", "cancelled"};

struct Change {
  JobState from, to;
};

// The rows of the state table that begin at an existing job.
constexpr Change kLegalChanges[] = {
    {JobState::queued, JobState::processing},         // lease
    {JobState::queued, JobState::completed},          // from the cache at lease time
    {JobState::queued, JobState::dead_lettered},      // deadline
    {JobState::queued, JobState::cancelled},          //
    {JobState::retrying, JobState::processing},       // lease
    {JobState::retrying, JobState::completed},        // from the cache at lease time
    {JobState::retrying, JobState::dead_lettered},    // deadline
    {JobState::retrying, JobState::cancelled},        //
    {JobState::processing, JobState::completed},      // result stored
    {JobState::processing, JobState::retrying},       // transient failure, recovery
    {JobState::processing, JobState::queued},         // released, vendor_quota, auth
    {JobState::processing, JobState::dead_lettered},  // a limit reached
    {JobState::processing, JobState::cancelled},      //
    {JobState::dead_lettered, JobState::queued},      // replay
    {JobState::dead_lettered, JobState::failed},      // discard
};

}  // namespace

std::string_view to_string(JobState state) {
  return kStateNames.at(static_cast<std::size_t>(state));
}

std::optional<JobState> parse_job_state(std::string_view name) {
  for (std::size_t i = 0; i < kStateNames.size(); ++i) {
    if (kStateNames[i] == name) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

bool is_live(JobState state) {
  return state == JobState::queued || state == JobState::processing || state == JobState::retrying;
}

bool is_legal_change(JobState from, JobState to) {
  for (const Change& change : kLegalChanges) {
    if (change.from == from && change.to == to) return true;
  }
  return false;
}

std::string_view to_string(JobKind kind) {
  return kind == JobKind::refresh ? "refresh" : "request";
}

JobKind parse_job_kind(std::string_view name) {
  // Only our own rows are read this way: another word means that the file is not ours to judge.
  AIQ_CHECK(name == "request" || name == "refresh");
  return name == "refresh" ? JobKind::refresh : JobKind::request;
}

std::string_view to_string(DeadReason reason) {
  switch (reason) {
    case DeadReason::rejected:
      return "rejected";
    case DeadReason::attempts_exhausted:
      return "attempts_exhausted";
    case DeadReason::deadline:
      return "deadline";
    case DeadReason::crash_limit:
      return "crash_limit";
    case DeadReason::unknown_limit:
      return "unknown_limit";
    case DeadReason::rate_limit_exhausted:
      return "rate_limit_exhausted";
  }
  AIQ_CHECK(false);
}

}  // namespace aiq
