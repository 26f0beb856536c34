#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/model/attempt.h"
#include "core/model/http.h"
#include "core/model/job.h"
#include "core/model/usage.h"

using namespace aiq;

namespace {

const std::vector<std::pair<JobState, std::string>> kStates = {
    {JobState::queued, "queued"},       {JobState::processing, "processing"},
    {JobState::retrying, "retrying"},   {JobState::completed, "completed"},
    {JobState::failed, "failed"},       {JobState::dead_lettered, "dead_lettered"},
    {JobState::cancelled, "cancelled"},
};

// A row per state we leave; a column per state we enter, in the order of kStates.
const std::vector<std::pair<JobState, std::string>> kTable = {
    {JobState::queued, ".p.c.dx"},    {JobState::processing, "q.rc.dx"},
    {JobState::retrying, ".p.c.dx"},  {JobState::completed, "......."},
    {JobState::failed, "......."},    {JobState::dead_lettered, "q...f.."},
    {JobState::cancelled, "......."},
};

}  // namespace

TEST_CASE("job: states have the contract's names") {
  CHECK(kStates.size() == kJobStateCount);
  for (const auto& [state, name] : kStates) {
    CHECK(to_string(state) == name);
    CHECK(parse_job_state(name) == state);
  }
  CHECK_FALSE(parse_job_state("").has_value());
  CHECK_FALSE(parse_job_state("Queued").has_value());
  CHECK_FALSE(parse_job_state("done").has_value());
}

TEST_CASE("job: exactly the rows of the state table are legal") {
  for (const auto& [from, row] : kTable) {
    REQUIRE(row.size() == kStates.size());
    for (std::size_t to = 0; to < kStates.size(); ++to) {
      CAPTURE(to_string(from));
      CAPTURE(kStates[to].second);
      CHECK(is_legal_change(from, kStates[to].first) == (row[to] != '.'));
    }
  }
}

TEST_CASE("job: live are the states that work remains in") {
  for (const auto& [state, name] : kStates) {
    CAPTURE(name);
    CHECK(is_live(state) == (name == "queued" || name == "processing" || name == "retrying"));
  }
}

TEST_CASE("job: kinds and dead-letter reasons have the contract's names") {
  CHECK(to_string(JobKind::request) == "request");
  CHECK(to_string(JobKind::refresh) == "refresh");
  CHECK(parse_job_kind("request") == JobKind::request);
  CHECK(parse_job_kind("refresh") == JobKind::refresh);
  const std::vector<std::pair<DeadReason, std::string>> reasons = {
      {DeadReason::rejected, "rejected"},
      {DeadReason::attempts_exhausted, "attempts_exhausted"},
      {DeadReason::deadline, "deadline"},
      {DeadReason::crash_limit, "crash_limit"},
      {DeadReason::unknown_limit, "unknown_limit"},
      {DeadReason::rate_limit_exhausted, "rate_limit_exhausted"},
  };
  for (const auto& [reason, name] : reasons)
    CHECK(to_string(reason) == name);
}

TEST_CASE("attempt: outcomes have the contract's names, and say whether they count") {
  struct Row {
    Outcome outcome;
    std::string name;
    bool counts;
  };
  const std::vector<Row> rows = {
      {Outcome::completed, "completed", true},
      {Outcome::rate_limited, "rate_limited", false},
      {Outcome::vendor_quota, "vendor_quota", false},
      {Outcome::overloaded, "overloaded", true},
      {Outcome::server_error, "server_error", true},
      {Outcome::connect_timeout, "connect_timeout", true},
      {Outcome::first_byte_timeout, "first_byte_timeout", true},
      {Outcome::total_timeout, "total_timeout", true},
      {Outcome::network, "network", true},
      {Outcome::bad_response, "bad_response", true},
      {Outcome::empty_response, "empty_response", true},
      {Outcome::rejected, "rejected", true},
      {Outcome::auth, "auth", false},
      {Outcome::unknown, "unknown", true},
      {Outcome::lease_lost, "lease_lost", false},
      {Outcome::cancelled, "cancelled", false},
      {Outcome::released, "released", false},
      {Outcome::crashed, "crashed", true},
  };
  CHECK(rows.size() == 18);
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(to_string(row.outcome) == row.name);
    CHECK(parse_outcome(row.name) == row.outcome);
    CHECK(counts(row.outcome) == row.counts);
  }
  CHECK_FALSE(parse_outcome("timeout").has_value());
}

TEST_CASE("attempt: billed and usage states have the contract's names") {
  CHECK(to_string(Billed::no) == "no");
  CHECK(to_string(Billed::yes) == "yes");
  CHECK(to_string(Billed::maybe) == "maybe");
  CHECK(to_string(UsageState::none) == "none");
  CHECK(to_string(UsageState::ok) == "ok");
  CHECK(to_string(UsageState::missing) == "missing");
  CHECK(to_string(UsageState::invalid) == "invalid");
}

TEST_CASE("usage: each meter has its own units and name") {
  Usage usage;
  usage[Meter::input] = 3;
  usage[Meter::output] = 5;
  CHECK(usage.units == std::array<std::int64_t, kMeterCount>{3, 0, 0, 0, 5});
  CHECK(to_string(Meter::input) == "input");
  CHECK(to_string(Meter::cache_read) == "cache_read");
  CHECK(to_string(Meter::cache_write_5m) == "cache_write_5m");
  CHECK(to_string(Meter::cache_write_1h) == "cache_write_1h");
  CHECK(to_string(Meter::output) == "output");
}

TEST_CASE("http: the first header of a name is found") {
  const HttpHeaders headers = {{"a", "1"}, {"b", "2"}, {"b", "3"}};
  REQUIRE(find_header(headers, "b") != nullptr);
  CHECK(*find_header(headers, "b") == "2");
  CHECK(find_header(headers, "c") == nullptr);
}
