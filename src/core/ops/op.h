#pragma once
// Commands are data: what reads or changes the database is a named operation with JSON in and
// JSON out. `aiq` runs it in its own process or posts it to aiqd; same code, same answer.
//
// Name: the command's words joined by a dot ("submit", "cache.invalidate"). Input: the command's
// options in snake_case, absent ones left out; times RFC 3339, durations in ms as `*_ms`.
// Output: the JSON of the operator's contract. A list gives {"rows":[...],"next_after":ID|null},
// one page at a time, so that no read stays open while a client prints. Anything a person should
// know besides is an array of sentences in "warnings" (the client prints it on stderr).

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/base/random.h"
#include "core/config/config.h"
#include "core/store/store.h"
#include "core/store/writer.h"

namespace aiq {

using Json = nlohmann::ordered_json;  // members keep the documented order

struct OpEnv {
  const Config& config;
  Clock& clock;
  Random& random;
  std::string actor;  // "uid:1000": who asked
};

struct OpResult {
  Json out;
  // Running requests that are to be aborted once this is committed.
  std::vector<std::pair<JobId, std::string>> lost_leases;
};

// The part of a writing operation that runs in the writer's transaction. It may run twice (after
// a rollback). A Failure has written nothing.
using WriteStep = std::function<Expected<OpResult, Failure>(Store&)>;

struct Op {
  std::string_view name;
  // Exactly one of the two is set.
  Expected<Json, Failure> (*read)(const OpEnv& env, Reader& reader, const Json& in) = nullptr;
  // Parses and checks outside the transaction, on the caller's thread.
  Expected<WriteStep, Failure> (*prepare)(const OpEnv& env, const Json& in) = nullptr;
  WritePriority priority = WritePriority::control;
  // Its answer depends on the configuration: a running daemon is asked first.
  bool prefers_daemon = false;
  // With this member in its input it may read for long: the daemon, whose API is one thread, is
  // asked only when the file may not be opened. "" = none.
  std::string_view long_with;
  // May read for very long: the daemon refuses it, see local_only().
  bool local_only = false;
};

// All operations; nullptr for an unknown name.
[[nodiscard]] std::span<const Op> all_ops();
[[nodiscard]] const Op* find_op(std::string_view name);

// Runs an operation on a store in this process, in one transaction of its own.
[[nodiscard]] Expected<OpResult, Failure> run_write(const Op& op, const OpEnv& env, Store& store,
                                                    const Json& in);

// The daemon's answer to an operation that is done on the file only.
[[nodiscard]] Failure local_only(const Op& op);

// [limits] request_bytes as the bound of what is read into memory: 0 (no limit) is 1 GiB.
[[nodiscard]] std::int64_t request_bytes_bound(std::int64_t request_bytes);

// StoreError as an operator sees it: busy -> exit 7, the others -> exit 8, with what to do next.
[[nodiscard]] Failure failure_of(const StoreError& error);

}  // namespace aiq
