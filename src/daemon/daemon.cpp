#include "daemon/daemon.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/engine/attempt.h"
#include "core/engine/dispatcher.h"
#include "core/engine/recovery.h"
#include "core/engine/runtime.h"
#include "core/net/curl_transport.h"
#include "core/store/owner_lock.h"
#include "core/store/writer.h"
#include "daemon/audit_turns.h"
#include "daemon/http_api.h"
#include "daemon/maintenance.h"
#include "daemon/notify.h"

namespace aiq {

namespace {

constexpr DurationMs kLockWaitMs = 60'000;  // for an `aiq` that holds the database
constexpr DurationMs kPollMs = 50;
constexpr int kFailuresMax = 5;            // failed passes in a row that end --until-idle
constexpr DurationMs kStopWaitMs = 5'000;  // for aborted requests to be closed in the store

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, signal);
  return set;
}

// Waits for a signal at most `ms`; 0 = none came.
int wait_signal(const sigset_t& set, DurationMs ms) {
  const timespec wait{.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1'000'000};
  const int signal = ::sigtimedwait(&set, nullptr, &wait);
  return signal > 0 ? signal : 0;
}

// nullopt: told to stop while waiting.
std::optional<OwnerLock> own(const std::string& db_path, const sigset_t& signals) {
  const MonoMs start = system_clock().mono_ms();
  for (bool told = false;;) {
    if (auto lock = OwnerLock::try_acquire(db_path, "aiqd")) return lock;
    const auto holder = OwnerLock::holder(db_path);
    const std::string who =
        holder ? holder->program + " (pid " + std::to_string(holder->pid) + ")" : "another process";
    const bool daemon = holder && holder->program == "aiqd";
    if (daemon || system_clock().mono_ms() - start > kLockWaitMs) {
      throw StoreError(StoreError::Kind::busy, who + " owns " + db_path);
    }
    if (!told) log_info("waiting for the database", {{"holder", who}});
    told = true;
    const int signal = wait_signal(signals, kPollMs);
    if (signal == SIGTERM || signal == SIGINT) return std::nullopt;
  }
}

// Each request in flight takes a descriptor; the files, the API's clients and the threads' own
// take theirs. With fewer than asked for, fewer requests run, rather than fail for nothing.
int in_flight_most() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return std::numeric_limits<int>::max();
  if (files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &files);
    (void)::getrlimit(RLIMIT_NOFILE, &files);
  }
  constexpr rlim_t kOwn = 48;
  const rlim_t left = files.rlim_cur - files.rlim_cur / 4;  // a quarter is the API's at most
  return static_cast<int>(std::clamp<rlim_t>(left > kOwn ? left - kOwn : 1, 1, 1 << 20));
}

// A log in the database would ruin it.
void check_log_file(const Config& config, const std::string& db_path) {
  if (config.daemon.log.file.empty()) return;
  std::error_code error;
  const std::string log = std::filesystem::weakly_canonical(config.daemon.log.file, error).string();
  for (const char* suffix : {"", "-wal", "-shm", ".lock", ".sock"}) {
    if (log == db_path + suffix) {
      throw ConfigError("[daemon] log_file: " + log + " is a file of the database");
    }
  }
}

std::shared_ptr<const Runtime> load(const DaemonOptions& options) {
  return make_runtime(load_config(find_config_path(options.config, &process_env)), &process_env,
                      in_flight_most());
}

void warn_without_effect(const Config& config) {
  for (const std::string& warning : without_effect(config))
    log_warn(warning);
}

}  // namespace

class Daemon {
 public:
  explicit Daemon(const DaemonOptions& options) : options_(options), signals_(handled_signals()) {}

  // Threads call into the parts: however run() ended, they stop in order.
  ~Daemon() {
    if (api_ != nullptr) close();
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  Exit run() {
    // Every thread started from here on leaves these signals to this one.
    (void)pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    (void)::signal(SIGPIPE, SIG_IGN);
    (void)::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is a write error like others
    runtime_ = std::make_unique<RuntimeHolder>(load(options_));
    const Config& config = runtime_->get()->config;
    db_path_ = resolve_db_path(options_.db, config, &process_env, ::geteuid() == 0);
    check_log_file(config, db_path_);
    if (options_.check) return check();
    log_init(config.daemon.log);
    log_info("starting", {{"version", std::string(AIQ_VERSION)},
                          {"db", db_path_},
                          {"config", config.path.empty() ? std::string("defaults") : config.path}});
    warn_without_effect(config);
    make_home(config);
    lock_ = own(db_path_, signals_);
    if (!lock_) return Exit::ok;
    open(config);
    recover_and_lease();
    return serve();
  }

 private:
  Exit check() const {
    const Config& config = runtime_->get()->config;
    (void)std::printf("config %s\ndatabase %s\nsocket %s\nok\n",
                      config.path.empty() ? "(defaults)" : config.path.c_str(), db_path_.c_str(),
                      resolve_socket_path(config, db_path_).c_str());
    return Exit::ok;
  }

  void open(const Config& config) {
    auto store = open_store(
        db_path_, {.age_step_ms = config.daemon.age_step_ms, .group = config.daemon.socket_group},
        system_clock().wall_ms(), /*migrate=*/true);
    writer_ = std::make_unique<Writer>(std::move(store), WriterConfig{}, system_clock());
    transport_ = make_curl_transport(
        {.threads = config.daemon.workers, .max_in_flight = config.daemon.max_in_flight});
    runner_ = std::make_unique<AttemptRunner>(
        AttemptRunner::Parts{*writer_, *transport_, *runtime_, system_clock(), system_random()},
        [this] { dispatcher_->wake(); });
    dispatcher_ = std::make_unique<Dispatcher>(
        Dispatcher::Parts{*writer_, *runner_, *runtime_, system_clock(), system_random(),
                          "pid:" + std::to_string(::getpid())});
    maintenance_ = std::make_unique<Maintenance>(Maintenance::Parts{
        *writer_, *runner_, *dispatcher_, *runtime_, system_clock(), system_random(), db_path_});
    audit_turns_ = std::make_unique<AuditTurns>(*runtime_, system_clock(), db_path_);
    socket_path_ = resolve_socket_path(config, db_path_);
    api_ = std::make_unique<HttpApi>(
        listen_unix(socket_path_, config.daemon.socket_group),
        HttpApi::Parts{*writer_, *runtime_, system_clock(), system_random(), db_path_},
        HttpApi::Hooks{[this] { dispatcher_->wake(); },
                       [this](const std::string& token) { runner_->abort_lost(token); },
                       [this] { return unhealthy(); },
                       [this] { return static_cast<std::int64_t>(runner_->running()); }});
  }

  void make_home(const Config& config) const {
    const auto made =
        make_folders(folder_of(db_path_), config.daemon.socket_group.empty() ? 0700 : 0750);
    if (!made) throw StoreError(StoreError::Kind::readonly, made.error().message);
  }

  void register_vendors(const std::shared_ptr<const Runtime>& runtime, bool restart) {
    writer_->run(WritePriority::control, [&](Store& store) {
      for (const auto& [name, vendor] : runtime->config.vendors) {
        store.register_vendor(name, runtime->section_fingerprint(vendor), restart);
      }
    });
  }

  void recover_and_lease() {
    const MonoMs start = system_clock().mono_ms();
    register_vendors(runtime_->get(), /*restart=*/true);
    const RecoveryReport report =
        recover(*writer_, *runtime_->get(), system_clock(), system_random());
    if (report.attempts > 0) {
      log_warn("recovered what a dead process left",
               {{"attempts", std::int64_t{report.attempts}},
                {"dead_lettered", std::int64_t{report.dead_lettered}},
                {"took_ms", system_clock().mono_ms() - start}});
    }
    maintenance_->start();  // knows the disk before anything is leased
    audit_turns_->start();
    dispatcher_->start([this] { maintenance_->poke(); });
    ready_ = true;
    api_->set_ready(true);
    notify_ready();
    log_info("ready", {{"socket", socket_path_}});
    if (!runtime_->get()->config.daemon.metrics_listen.empty()) {
      log_warn("metrics_listen is set, but this version serves no metrics", {});
    }
  }

  std::vector<std::string> unhealthy() const {
    std::vector<std::string> reasons;
    if (!ready_) reasons.emplace_back(draining_ ? "stopping" : "recovering");
    if (maintenance_->disk_low()) reasons.emplace_back("disk_low");
    if (maintenance_->store_failing()) reasons.emplace_back("storage_failing");
    return reasons;
  }

  Exit serve() {
    std::uint64_t seen = 0;
    for (;;) {
      const int signal = wait_signal(signals_, options_.until_idle ? kPollMs : 1'000);
      if (signal == SIGHUP) {
        reload();
      } else if (signal != 0) {
        log_info("stopping", {{"running", static_cast<std::int64_t>(runner_->running())}});
        return drain();
      }
      if (options_.until_idle && idle(seen)) return Exit::ok;
      if (options_.until_idle && dispatcher_->failures() >= kFailuresMax) {
        log_error("giving up: the database can't be written", {});
        (void)drain();
        return dispatcher_->last_failure() == StoreError::Kind::busy ? Exit::busy : Exit::storage;
      }
    }
  }

  // Nothing runs, and a pass that began after that found nothing that may start before the
  // longest backoff is over. `seen`: passes at the previous look.
  bool idle(std::uint64_t& seen) {
    const std::uint64_t passes = dispatcher_->passes();
    const bool fresh = passes > seen;
    if (fresh && runner_->running() == 0 && writer_->queued() == 0 &&
        dispatcher_->passes() == passes) {
      const auto wake = dispatcher_->next_wake();
      const UnixMs soon = system_clock().wall_ms() + runtime_->get()->config.retry.cap_ms;
      if (!wake || *wake > soon) {
        if (seen_idle_) return true;
        seen_idle_ = true;
      } else {
        seen_idle_ = false;
      }
    } else {
      seen_idle_ = false;
    }
    seen = passes;
    dispatcher_->wake();
    return false;
  }

  void reload() {
    try {
      auto next = load(options_);
      const Config& old = runtime_->get()->config;
      if (resolve_socket_path(next->config, db_path_) != socket_path_ ||
          next->config.daemon.socket_group != old.daemon.socket_group ||
          next->config.daemon.workers != old.daemon.workers ||
          next->config.daemon.age_step_ms != old.daemon.age_step_ms) {
        log_warn("socket, socket_group, workers and age_step change at the next start only", {});
      }
      check_log_file(next->config, db_path_);
      log_init(next->config.daemon.log);  // opens the file anew, too
      // Recorded before it holds: the other way round, a failure here would leave new settings
      // at work with a vendor still taken for proven.
      register_vendors(next, /*restart=*/false);
      runtime_->set(std::move(next));
      dispatcher_->wake();
      warn_without_effect(runtime_->get()->config);
      log_info("configuration reloaded", {{"config", runtime_->get()->config.path}});
    } catch (const std::exception& error) {
      log_reopen();
      log_error("configuration kept as it was", {{"error", std::string(error.what())}});
    }
  }

  // Running requests may end until drain_timeout or a second signal; the rest is given back.
  // Exit storage when answers could not be stored.
  Exit drain() {
    notify_stopping();
    draining_ = true;
    dispatcher_->stop_leasing();
    const MonoMs until = system_clock().mono_ms() + runtime_->get()->config.daemon.drain_timeout_ms;
    while (runner_->running() > 0 && system_clock().mono_ms() < until) {
      const int signal = wait_signal(signals_, kPollMs);
      if (signal == SIGTERM || signal == SIGINT) break;
    }
    if (runner_->running() == 0) return Exit::ok;
    log_info("giving back running requests",
             {{"running", static_cast<std::int64_t>(runner_->running())}});
    runner_->release_all();
    const MonoMs deadline = system_clock().mono_ms() + kStopWaitMs;
    while (runner_->running() > 0 && system_clock().mono_ms() < deadline) {
      (void)wait_signal(signals_, 10);
    }
    if (runner_->running() == 0) return Exit::ok;
    log_error("answers could not be stored; the next start takes their attempts for unknown",
              {{"attempts", static_cast<std::int64_t>(runner_->running())}});
    return Exit::storage;
  }

  void close() {
    dispatcher_->stop_leasing();
    ready_ = false;
    api_->set_ready(false);
    audit_turns_->stop();
    maintenance_->stop();
    transport_->stop();
    writer_->stop();
    api_->stop();
    (void)::unlink(socket_path_.c_str());
    log_info("stopped", {});
  }

  DaemonOptions options_;
  sigset_t signals_;
  std::string db_path_, socket_path_;
  std::unique_ptr<RuntimeHolder> runtime_;
  std::optional<OwnerLock> lock_;
  // In the order of construction; destroyed in reverse.
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<AttemptRunner> runner_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<Maintenance> maintenance_;
  std::unique_ptr<AuditTurns> audit_turns_;
  std::unique_ptr<HttpApi> api_;
  std::atomic<bool> ready_{false}, draining_{false};
  bool seen_idle_ = false;
};

Exit run_daemon(const DaemonOptions& options) {
  return Daemon(options).run();
}

}  // namespace aiq
