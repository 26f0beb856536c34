#include "core/ops/executor.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "core/base/sleep.h"
#include "core/ops/executor_remote.h"
#include "core/store/owner_lock.h"

namespace aiq {
namespace {

constexpr DurationMs kPollMs = 50;
// A read that the daemon does not answer is made from the file instead, if that may be opened.
constexpr DurationMs kReadTimeoutMs = 1'000;
constexpr DurationMs kOnlyWayTimeoutMs = 5'000;
// After a question that found no answer, none is asked for this long.
constexpr DurationMs kSilentMs = 3'000;
// A living daemon answers in milliseconds; one that was stopped never does.
constexpr DurationMs kWriteTimeoutMinMs = 1'000;
// Frames of the log from which on it is moved into the file; the daemon's writer has the same.
constexpr std::int64_t kCheckpointFrames = 2'000;

// Whether an operation does the same when it is carried out twice.
bool repeatable(std::string_view op, const Json& in) {
  if (op == "submit") return in.contains("idempotency_key");
  // A batch without a key is found again by its file, unless that can't be read twice.
  if (op == "batch.begin") return in.contains("idempotency_key") || in.contains("repeatable");
  constexpr std::array<std::string_view, 13> kSame = {
      "cancel",       "pause",          "resume",      "cache.invalidate", "dlq.replay",
      "batch.append", "batch.finish",   "batch.load",  "batch.drop",       "batch.cancel",
      "db.prune",     "cost.aggregate", "cost.rebuild"};
  return std::find(kSame.begin(), kSame.end(), op) != kSame.end();
}

void add_warning(Json& out, const std::string& warning) {
  if (!out.contains("warnings")) out["warnings"] = Json::array();
  out["warnings"].push_back(warning);
}

// Before the write: only the process that emptied the log starts it anew, and this one is alone
// with the file for no longer than the write. A log that can't be moved is no reason not to
// write: what is wrong with the disk, the write tells by itself.
void keep_log_short(Store& store) {
  try {
    (void)store.checkpoint(kCheckpointFrames);
  } catch (const StoreError&) {
  }
}

Failure outcome_unknown(std::string_view op, const Json& in) {
  Failure out{Exit::busy, "outcome_unknown",
              "the daemon went away while it had the request: it may have been carried out", ""};
  const auto id = in.find("correlation_id");
  if (op == "submit" && id != in.end() && id->is_string())
    out.hint = "check with `aiq list --correlation-id " + id->get<std::string>() +
               "` before you submit it again; with an --idempotency-key it is safe to repeat";
  return out;
}

// The reading end of the file, kept over many reads as long as the path leads to the same file.
class FileReader {
 public:
  Reader& get(const std::string& path) {
    struct stat info {};
    const bool there = ::stat(path.c_str(), &info) == 0;
    const bool same = there && info.st_dev == device_ && info.st_ino == inode_;
    if (reader_ == nullptr || !same) {
      close();
      reader_ = open_reader(path);
      device_ = info.st_dev;
      inode_ = info.st_ino;
    }
    return *reader_;
  }
  void close() { reader_.reset(); }

 private:
  std::unique_ptr<Reader> reader_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace

struct Executor::Impl {
  const Config& config;
  ExecutorConfig settings;
  Clock& clock;
  Random& random;
  RemoteClient remote;
  Where where = Where::none;
  std::string fingerprint;  // of `config`, made when it is first needed
  bool warned_of_config = false;
  bool warned_of_silence = false;
  MonoMs silent_until = 0;
  FileReader reader;

  [[nodiscard]] OpEnv env() const { return {config, clock, random, settings.actor}; }

  RemoteAnswer ask(const Op& op, const std::string& body, DurationMs timeout_ms) {
    if (fingerprint.empty()) fingerprint = config.fingerprint();
    return remote.post(
        {.op = op.name, .body = body, .fingerprint = fingerprint, .timeout_ms = timeout_ms});
  }

  [[nodiscard]] std::string owner_text() const {
    const auto holder = OwnerLock::holder(settings.db_path);
    return holder ? holder->program + " (pid " + std::to_string(holder->pid) + ")"
                  : "another process";
  }

  // Asks for what the file can tell as well. nullopt: there is no answer.
  std::optional<RemoteAnswer> ask_briefly(const Op& op, const std::string& body) {
    const MonoMs begun = clock.mono_ms();
    if (begun < silent_until) return std::nullopt;
    RemoteAnswer answer = ask(op, body, kReadTimeoutMs);
    if (answer.kind == RemoteAnswer::Kind::answered) return answer;
    const MonoMs now = clock.mono_ms();
    if (answer.kind == RemoteAnswer::Kind::broken && now - begun >= kReadTimeoutMs)
      silent_until = now + kSilentMs;
    return std::nullopt;
  }

  std::optional<DaemonStatus> health() {
    std::optional<DaemonStatus> status = DaemonStatus{.answers = false};
    if (clock.mono_ms() >= silent_until) {
      status = remote.health(kReadTimeoutMs);
      if (status && !status->answers) silent_until = clock.mono_ms() + kSilentMs;
    }
    if (status && !status->answers) {
      if (const auto holder = OwnerLock::holder(settings.db_path)) status->pid = holder->pid;
    }
    return status;
  }

  // What the daemon said, as the answer of run().
  Expected<Json, Failure> finish(RemoteAnswer answer) {
    where = Where::daemon;
    if (answer.failure) return Unexpected{std::move(*answer.failure)};
    const std::string& theirs = answer.config_fingerprint;
    if (!theirs.empty() && theirs != fingerprint && !warned_of_config) {
      warned_of_config = true;
      add_warning(answer.out,
                  "the daemon runs with another configuration than this command; its own decides");
    }
    return std::move(answer.out);
  }

  Expected<Json, Failure> read(const Op& op, const Json& in, const std::string& body);
  Expected<Json, Failure> read_empty(const Op& op, const Json& in);
  Expected<Json, Failure> write(const Op& op, const Json& in, const std::string& body);
  std::optional<Expected<Json, Failure>> write_file(const Op& op, const Json& in,
                                                    DurationMs remaining_ms);
  [[nodiscard]] Failure gave_up(const std::optional<Failure>& last) const;
};

Expected<Json, Failure> Executor::Impl::read(const Op& op, const Json& in,
                                             const std::string& body) {
  const bool may_be_long = !op.long_with.empty() && in.contains(op.long_with);
  if (op.prefers_daemon && !may_be_long) {
    if (auto answer = ask_briefly(op, body)) return finish(std::move(*answer));
  }
  try {
    where = Where::file;
    auto out = op.read(env(), reader.get(settings.db_path), in);
    if (out && clock.mono_ms() < silent_until && !warned_of_silence) {
      warned_of_silence = true;
      add_warning(*out, owner_text() + " does not answer; this is read from the file");
    }
    return out;
  } catch (const StoreError& error) {
    reader.close();
    if (error.kind() == StoreError::Kind::missing) return read_empty(op, in);
    if (error.kind() == StoreError::Kind::readonly && !op.local_only) {
      // Its owner may read it: a member of the socket's group may ask the daemon.
      RemoteAnswer answer = ask(op, body, kOnlyWayTimeoutMs);
      if (answer.kind == RemoteAnswer::Kind::answered) return finish(std::move(answer));
    }
    return Unexpected{failure_of(error)};
  }
}

Expected<Json, Failure> Executor::Impl::read_empty(const Op& op, const Json& in) {
  const auto store = open_store(":memory:", StoreOptions{}, clock.wall_ms(), false);
  auto out = op.read(env(), *store, in);
  if (out) add_warning(*out, "no database at " + settings.db_path + " yet");
  return out;
}

// nullopt: another process owns the database.
std::optional<Expected<Json, Failure>> Executor::Impl::write_file(const Op& op, const Json& in,
                                                                  DurationMs remaining_ms) {
  try {
    const auto lock = OwnerLock::try_acquire(settings.db_path, settings.program);
    if (!lock) return std::nullopt;
    const StoreOptions options{.age_step_ms = config.daemon.age_step_ms,
                               .busy_ms = std::max<DurationMs>(0, remaining_ms),
                               .group = config.daemon.socket_group};
    const auto store = open_store(settings.db_path, options, clock.wall_ms(), false);
    where = Where::file;
    keep_log_short(*store);
    auto result = run_write(op, env(), *store, in);
    if (!result) return Unexpected{std::move(result).error()};
    return std::move(result->out);
  } catch (const StoreError& error) {
    return Unexpected{failure_of(error)};
  }
}

Failure Executor::Impl::gave_up(const std::optional<Failure>& last) const {
  const std::string waited = format_age(settings.busy_timeout_ms);
  if (last) {
    Failure out = *last;
    out.exit = Exit::busy;
    if (out.hint.empty()) out.hint = "gave up after " + waited + "; try again later";
    return out;
  }
  return {Exit::busy, "busy",
          owner_text() + " owns the database " + settings.db_path + " and was not done within " +
              waited,
          "try again, or give it longer with --busy-timeout"};
}

Expected<Json, Failure> Executor::Impl::write(const Op& op, const Json& in,
                                              const std::string& body) {
  const MonoMs deadline = clock.mono_ms() + settings.busy_timeout_ms;
  std::optional<Failure> last;
  for (;;) {
    const DurationMs remaining = deadline - clock.mono_ms();
    RemoteAnswer answer = ask(op, body, std::max(kWriteTimeoutMinMs, remaining));
    switch (answer.kind) {
      case RemoteAnswer::Kind::answered:
        return finish(std::move(answer));
      case RemoteAnswer::Kind::not_ready:
        last = std::move(answer.failure);
        break;
      case RemoteAnswer::Kind::broken:
        last = outcome_unknown(op.name, in);
        if (!repeatable(op.name, in)) return Unexpected{*last};
        break;
      case RemoteAnswer::Kind::unreachable:
        if (auto done = write_file(op, in, remaining)) return std::move(*done);
        break;
    }
    const DurationMs left = deadline - clock.mono_ms();
    if (left <= 0) return Unexpected{gave_up(last)};
    sleep_ms(std::min(kPollMs, left));
  }
}

Executor::Executor(const Config& config, ExecutorConfig settings, Clock& clock, Random& random)
    : impl_(new Impl{.config = config,
                     .settings = settings,
                     .clock = clock,
                     .random = random,
                     .remote = RemoteClient(settings.socket_path),
                     .fingerprint = {},
                     .reader = {}}) {}

Executor::~Executor() = default;

Expected<Json, Failure> Executor::run(std::string_view name, const Json& in) {
  impl_->where = Where::none;
  const Op* op = find_op(name);
  if (op == nullptr)
    return Unexpected{Failure{Exit::usage, "unknown_operation",
                              "there is no operation " + std::string(name), ""}};
  Json input = in.is_null() ? Json::object() : in;
  // So that a submit whose answer was lost can be found again.
  if (name == "submit" && input.is_object() && !input.contains("correlation_id"))
    input["correlation_id"] = impl_->random.token();
  std::string body;
  try {
    body = input.dump();
  } catch (const Json::type_error&) {  // the only one that dump() throws
    return Unexpected{Failure{Exit::usage, "invalid_utf8", "the input is not valid UTF-8", ""}};
  }
  return op->read ? impl_->read(*op, input, body) : impl_->write(*op, input, body);
}

std::optional<DaemonStatus> Executor::daemon() {
  return impl_->health();
}

Executor::Where Executor::where() const {
  return impl_->where;
}

}  // namespace aiq
