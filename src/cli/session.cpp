#include "cli/session.h"

#include <unistd.h>

#include "cli/values.h"
#include "core/base/json_canonical.h"
#include "core/base/random.h"

namespace aiq::cli {
namespace {

void check_text(const Json& in, const std::string& name) {
  if (in.is_string() && !is_valid_utf8(in.get_ref<const std::string&>())) {
    fail_usage("invalid_utf8", "the " + name + " is not valid UTF-8",
               "convert it first, for example with iconv");
  }
  if (!in.is_structured()) return;
  for (const auto& item : in.items()) {
    if (in.is_object() && !is_valid_utf8(item.key())) {
      fail_usage("invalid_utf8", "a name in " + name + " is not valid UTF-8", "");
    }
    check_text(item.value(), in.is_object() ? item.key() : name);
  }
}

}  // namespace

const Config& Session::config() {
  if (!config_) {
    config_ = load_config(find_config_path(globals.config.value_or(""), process_env));
  }
  return *config_;
}

const std::string& Session::db_path() {
  if (db_path_.empty()) {
    // A variable that is not set must not lead to another database.
    if (globals.db && globals.db->empty()) {
      fail_usage("empty_path", "--db is empty", "is the variable set that you gave?");
    }
    db_path_ = resolve_db_path(globals.db.value_or(""), config(), process_env, ::geteuid() == 0);
  }
  return db_path_;
}

DurationMs Session::busy_timeout_ms() {
  constexpr DurationMs kDefaultMs = 10'000;
  return globals.busy_timeout ? duration_value("--busy-timeout", *globals.busy_timeout)
                              : kDefaultMs;
}

std::unique_ptr<Executor> Session::make_executor() {
  ExecutorConfig settings;
  settings.db_path = db_path();
  settings.socket_path = resolve_socket_path(config(), db_path());
  settings.busy_timeout_ms = busy_timeout_ms();
  settings.actor = "uid:" + std::to_string(::getuid());
  return std::make_unique<Executor>(config(), settings, system_clock(), system_random());
}

Executor& Session::executor() {
  if (!executor_) executor_ = make_executor();
  return *executor_;
}

void Session::tell_warnings(Json& answer) {
  const auto warnings = answer.find("warnings");
  if (warnings == answer.end()) return;
  for (const Json& warning : *warnings)
    if (told_.insert(warning.get<std::string>()).second) out.warn(warning.get<std::string>());
  answer.erase("warnings");
}

Expected<Json, Failure> Session::try_call(std::string_view op, const Json& in) {
  check_text(in, "input");
  auto answer = executor().run(op, in);
  if (!answer && answer.error().code == "no_such_job" && answer.error().hint.empty()) {
    Failure failure = answer.error();
    failure.hint = "aiq list shows what is there";
    return Unexpected{std::move(failure)};
  }
  if (answer && answer->is_object()) tell_warnings(*answer);
  return answer;
}

Json Session::call(std::string_view op, const Json& in) {
  auto answer = try_call(op, in);
  if (!answer) throw CommandFailed(std::move(answer).error());
  return std::move(*answer);
}

void Session::require_daemon(const std::string& what) {
  const auto daemon = executor().daemon();
  if (daemon && daemon->answers) return;
  if (daemon) {
    throw CommandFailed({Exit::busy, "no_answer",
                         "the daemon of " + db_path() + " runs but does not answer, so " + what +
                             " would not be answered",
                         "aiq stats names its process; is it stopped, or its disk stuck?"});
  }
  throw CommandFailed(
      {Exit::busy, "no_daemon",
       "no daemon is running for " + db_path() + ", so " + what + " would not be answered",
       "start aiqd, or work the queue off with aiqd --until-idle"});
}

}  // namespace aiq::cli
