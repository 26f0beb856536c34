#pragma once
// What the commands share: global options, configuration, the way to the database.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cli/output.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/config/config.h"
#include "core/ops/executor.h"

namespace aiq::cli {

struct GlobalOptions {
  std::optional<std::string> db, config, busy_timeout;
  bool json = false, quiet = false;
};

class Session {
 public:
  explicit Session(Output& output) : out(output) {}

  GlobalOptions globals;
  Output& out;

  // Read on first use. Throws ConfigError.
  [[nodiscard]] const Config& config();
  [[nodiscard]] const std::string& db_path();
  [[nodiscard]] DurationMs busy_timeout_ms();
  [[nodiscard]] Executor& executor();
  // A further way to the database, for calls beside those of this thread.
  [[nodiscard]] std::unique_ptr<Executor> make_executor();
  [[nodiscard]] Clock& clock() const { return system_clock(); }

  // Runs an operation; its warnings go to standard error, each once, and out of the answer.
  // Text in `in` that is not UTF-8: Failure, exit 2.
  [[nodiscard]] Expected<Json, Failure> try_call(std::string_view op, const Json& in);
  // The same, with CommandFailed for a Failure.
  Json call(std::string_view op, const Json& in);

  // Moves the warnings of an answer to standard error.
  void tell_warnings(Json& answer);

  // Throws CommandFailed (exit 7) when no daemon is there: `what` would not be answered.
  void require_daemon(const std::string& what);

 private:
  std::optional<Config> config_;
  std::string db_path_;
  std::unique_ptr<Executor> executor_;
  std::set<std::string> told_;  // warnings
};

}  // namespace aiq::cli
