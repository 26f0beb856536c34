#include "daemon/http_api.h"

#include <grp.h>
#include <microhttpd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "core/base/log.h"
#include "core/base/redact.h"
#include "core/ops/executor.h"
#include "core/ops/op.h"

namespace aiq {

namespace {

// Beyond this the log can't be moved into the file (a reader pins it): new work is pushed back.
constexpr std::int64_t kWalFramesMax = 256LL * 1024 * 1024 / 8192;
constexpr std::string_view kOpsPrefix = "/v1/ops/";
constexpr unsigned kConnectionsMax = 1000;
constexpr unsigned kConnectionsShare = 4;  // of the process's descriptors: one in so many

// Clients of the API must not take the descriptors that requests to vendors need.
unsigned connection_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kConnectionsMax;
  return static_cast<unsigned>(
      std::min<rlim_t>(kConnectionsMax, std::max<rlim_t>(8, files.rlim_cur / kConnectionsShare)));
}
constexpr unsigned kIdleSeconds = 120;
constexpr std::int64_t kTimeoutMaxMs = 24LL * 3600 * 1000;

[[noreturn]] void fail(const std::string& what, int code) {
  throw std::runtime_error(what + ": " + errno_text(code));
}

unsigned status_of(Exit exit) {
  switch (exit) {
    case Exit::not_found:
      return MHD_HTTP_NOT_FOUND;
    case Exit::conflict:
      return MHD_HTTP_CONFLICT;
    case Exit::refused:
      return MHD_HTTP_FORBIDDEN;
    case Exit::busy:
      return MHD_HTTP_SERVICE_UNAVAILABLE;
    case Exit::storage:
      return MHD_HTTP_INTERNAL_SERVER_ERROR;
    default:
      return MHD_HTTP_BAD_REQUEST;
  }
}

Json error_json(const Failure& failure) {
  return {{"error",
           {{"exit", static_cast<int>(failure.exit)},
            {"code", failure.code},
            {"message", redact(failure.message)},
            {"hint", failure.hint}}}};
}

}  // namespace

Fd listen_unix(const std::string& path, const std::string& group) {
  sockaddr_un address{};
  if (path.size() >= sizeof(address.sun_path)) {
    fail("the socket's path is longer than 107 bytes (set daemon.socket): " + path, ENAMETOOLONG);
  }
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) fail("cannot make a socket", errno);
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode)) {
    fail("the socket's path is taken by something else: " + path, EEXIST);
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("cannot remove " + path, errno);
  // Made private from the first moment; a group is let in afterwards.
  const mode_t before = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int code = errno;
  ::umask(before);
  if (bound != 0) fail("cannot open the socket " + path, code);
  if (!group.empty()) {
    std::vector<char> buffer(16384);
    struct group entry {};
    struct group* found = nullptr;
    if (::getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
        found == nullptr) {
      throw std::runtime_error("no such group (daemon.socket_group): " + group);
    }
    if (::chown(path.c_str(), static_cast<uid_t>(-1), found->gr_gid) != 0 ||
        ::chmod(path.c_str(), 0660) != 0) {
      fail("cannot give " + path + " to group " + group, errno);
    }
  }
  if (::listen(fd.get(), 1024) != 0) fail("cannot listen on " + path, errno);
  return fd;
}

struct HttpApi::Impl {
  // One request from its first byte to its answer.
  struct Request {
    std::string body;
    bool started = false;   // headers seen
    bool answered = false;  // status and answer are set
    bool too_large = false;
    unsigned status = MHD_HTTP_OK;
    std::string answer;
    bool retry_after = false;
    std::string actor;
    std::shared_ptr<const Runtime> runtime;  // kept until the write step has run
    std::optional<OpEnv> env;
  };

  Parts parts;
  Hooks hooks;
  Fd listener;
  std::unique_ptr<Reader> reader;  // of the API thread
  std::atomic<bool> ready{false};
  MonoMs started_at = 0;
  MHD_Daemon* daemon = nullptr;

  std::mutex mutex;
  std::condition_variable idle;
  int open_requests = 0;  // guarded by mutex

  Impl(Fd fd, Parts p, Hooks h)
      : parts(std::move(p)), hooks(std::move(h)), listener(std::move(fd)) {
    started_at = parts.clock.mono_ms();
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url,
                               const char* method, const char*, const char* data, size_t* data_size,
                               void** state) {
    return static_cast<Impl*>(self)->handle(connection, url, method, data, data_size, state);
  }
  static void on_completed(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    auto* impl = static_cast<Impl*>(self);
    delete static_cast<Request*>(*state);
    *state = nullptr;
    const std::lock_guard guard(impl->mutex);
    --impl->open_requests;
    impl->idle.notify_all();
  }

  MHD_Result handle(MHD_Connection* connection, std::string_view url, std::string_view method,
                    const char* data, size_t* data_size, void** state) {
    if (*state == nullptr) {
      auto* made = new Request;
      *state = made;
      const std::lock_guard guard(mutex);
      ++open_requests;
      return MHD_YES;
    }
    Request& request = *static_cast<Request*>(*state);
    if (*data_size > 0) {
      if (request.body.size() + *data_size > body_limit()) {
        request.too_large = true;
        request.body.clear();
      } else if (!request.too_large) {
        request.body.append(data, *data_size);
      }
      *data_size = 0;
      return MHD_YES;
    }
    if (!request.answered && !dispatch(connection, request, url, method)) return MHD_YES;
    return respond(connection, request);
  }

  // The request stands escaped in the operation's input, and other members beside it.
  [[nodiscard]] std::size_t body_limit() const {
    const auto bytes = request_bytes_bound(parts.runtime.get()->config.limits.request_bytes);
    return static_cast<std::size_t>(bytes) * 2 + (1U << 20);
  }

  // False: the connection is suspended, the answer follows.
  bool dispatch(MHD_Connection* connection, Request& request, std::string_view url,
                std::string_view method) {
    if (url == "/healthz" && (method == "GET" || method == "HEAD")) return health(request);
    if (!url.starts_with(kOpsPrefix)) {
      return refuse(request, MHD_HTTP_NOT_FOUND, {Exit::usage, "no_such_path", "no such path", ""});
    }
    if (method != "POST") {
      return refuse(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                    {Exit::usage, "method", "operations are posted", ""});
    }
    if (request.too_large) {
      return refuse(request, MHD_HTTP_CONTENT_TOO_LARGE,
                    {Exit::refused, "request_too_large", "the request is larger than allowed",
                     "raise limits.request_bytes"});
    }
    if (!ready) {
      request.retry_after = true;
      return refuse(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                    {Exit::busy, "not_ready", "aiqd is starting or stopping", "try again"});
    }
    const char* version = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                      std::string(kProtocolHeader).c_str());
    if (version != nullptr && version != kProtocolVersion) {
      return refuse(request, MHD_HTTP_CONFLICT,
                    {Exit::busy, "version_mismatch", "aiq and aiqd are of different versions",
                     "restart aiqd"});
    }
    return run_op(connection, request, url.substr(kOpsPrefix.size()));
  }

  bool run_op(MHD_Connection* connection, Request& request, std::string_view name) {
    const Op* op = find_op(name);
    if (op == nullptr) {
      return refuse(request, MHD_HTTP_NOT_FOUND,
                    {Exit::usage, "no_such_operation",
                     "aiqd knows no operation \"" + std::string(name) + "\"", "restart aiqd"});
    }
    if (op->local_only) {
      return refuse(request, MHD_HTTP_NOT_FOUND, local_only(*op));
    }
    const Json in =
        request.body.empty() ? Json::object() : Json::parse(request.body, nullptr, false);
    if (!in.is_object()) {
      return refuse(request, MHD_HTTP_BAD_REQUEST,
                    {Exit::usage, "invalid_json", "the operation's input is no JSON object", ""});
    }
    request.actor = peer(connection);
    request.runtime = parts.runtime.get();
    request.env.emplace(OpEnv{request.runtime->config, parts.clock, parts.random, request.actor});
    try {
      if (op->read != nullptr) return answer_read(request, *op, in);
      return post_write(connection, request, *op, in);
    } catch (const StoreError& error) {
      const Failure failure = failure_of(error);
      return refuse(request, status_of(failure.exit), failure);
    } catch (const std::exception& error) {
      log_error("operation failed",
                {{"op", std::string(name)}, {"error", std::string(error.what())}});
      return refuse(request, MHD_HTTP_BAD_REQUEST,
                    {Exit::usage, "invalid_input", error.what(), ""});
    }
  }

  bool answer_read(Request& request, const Op& op, const Json& in) {
    if (reader == nullptr) reader = open_reader(parts.db_path);
    auto out = op.read(*request.env, *reader, in);
    if (!out) return refuse(request, status_of(out.error().exit), out.error());
    return finish(request, MHD_HTTP_OK, *out);
  }

  bool post_write(MHD_Connection* connection, Request& request, const Op& op, const Json& in) {
    if (op.priority == WritePriority::submit && parts.writer.stats().wal_frames > kWalFramesMax) {
      request.retry_after = true;
      return refuse(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                    {Exit::busy, "log_pinned",
                     "the database's log has grown too large because a reader holds it",
                     "aiq db info names its size; end long readers and try again"});
    }
    auto step = op.prepare(*request.env, in);
    if (!step) return refuse(request, status_of(step.error().exit), step.error());
    const std::optional<MonoMs> until = deadline_of(connection);
    // Suspended before the operation is posted: the answer may come at once.
    MHD_suspend_connection(connection);
    auto result = std::make_shared<std::optional<Expected<OpResult, Failure>>>();
    parts.writer.post(
        op.priority,
        [this, step = std::move(*step), result, until](Store& store) {
          // The caller has given up and may have asked elsewhere: not done is the clear answer.
          if (until && parts.clock.mono_ms() > *until) {
            result->emplace(Unexpected{Failure{Exit::busy, "too_late",
                                               "the database was busy for too long", "try again"}});
          } else {
            result->emplace(step(store));
          }
        },
        [this, connection, &request, result](std::exception_ptr error) {
          written(request, *result, error);
          MHD_resume_connection(connection);
        });
    return false;
  }

  // On the writer thread, after the commit. The connection is suspended, so the request is ours.
  void written(Request& request, std::optional<Expected<OpResult, Failure>>& result,
               const std::exception_ptr& error) {
    try {
      if (error) std::rethrow_exception(error);
      const Expected<OpResult, Failure>& done = *result;
      if (!done) {
        refuse(request, status_of(done.error().exit), done.error());
        return;
      }
      for (const auto& [job, token] : done->lost_leases)
        hooks.aborted(token);
      finish(request, MHD_HTTP_OK, done->out);
      hooks.changed();
    } catch (const StoreError& failed) {
      const Failure failure = failure_of(failed);
      refuse(request, status_of(failure.exit), failure);
    } catch (const std::exception& failed) {
      log_error("operation failed", {{"error", std::string(failed.what())}});
      refuse(request, MHD_HTTP_INTERNAL_SERVER_ERROR,
             {Exit::storage, "internal", failed.what(), ""});
    }
  }

  bool health(Request& request) {
    const std::vector<std::string> reasons = hooks.unhealthy();
    request.retry_after = !reasons.empty();
    return finish(request, reasons.empty() ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                  {{"ready", reasons.empty()},
                   {"reasons", reasons},
                   {"pid", ::getpid()},
                   {"version", AIQ_VERSION},
                   {"in_flight", hooks.in_flight()},
                   {"uptime_seconds", (parts.clock.mono_ms() - started_at) / 1000},
                   {"config_fingerprint", parts.runtime.get()->fingerprint}});
  }

  static bool refuse(Request& request, unsigned status, const Failure& failure) {
    return finish(request, status, error_json(failure));
  }
  static bool finish(Request& request, unsigned status, const Json& json) {
    request.status = status;
    request.answer = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    request.answered = true;
    return true;
  }

  // When the caller stops waiting for the answer.
  std::optional<MonoMs> deadline_of(MHD_Connection* connection) const {
    const char* text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                   std::string(kTimeoutHeader).c_str());
    if (text == nullptr) return std::nullopt;
    std::int64_t ms = 0;
    const char* end = text + std::strlen(text);
    if (std::from_chars(text, end, ms).ptr != end || ms < 0 || ms > kTimeoutMaxMs) {
      return std::nullopt;
    }
    return parts.clock.mono_ms() + ms;
  }

  static std::string peer(MHD_Connection* connection) {
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    ucred who{};
    socklen_t size = sizeof(who);
    if (info == nullptr ||
        ::getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
      return "uid:unknown";
    }
    return "uid:" + std::to_string(who.uid);
  }

  MHD_Result respond(MHD_Connection* connection, Request& request) {
    MHD_Response* response = MHD_create_response_from_buffer(
        request.answer.size(), request.answer.data(), MHD_RESPMEM_PERSISTENT);
    if (response == nullptr) return MHD_NO;
    const std::string fingerprint = parts.runtime.get()->fingerprint;
    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    (void)MHD_add_response_header(response, std::string(kProtocolHeader).c_str(),
                                  std::string(kProtocolVersion).c_str());
    (void)MHD_add_response_header(response, std::string(kConfigHeader).c_str(),
                                  fingerprint.c_str());
    if (request.retry_after) (void)MHD_add_response_header(response, "Retry-After", "1");
    const MHD_Result queued = MHD_queue_response(connection, request.status, response);
    MHD_destroy_response(response);
    return queued;
  }
};

HttpApi::HttpApi(Fd listener, Parts parts, Hooks hooks)
    : impl_(std::make_unique<Impl>(std::move(listener), std::move(parts), std::move(hooks))) {
  impl_->daemon = MHD_start_daemon(
      MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr,
      &Impl::on_request, impl_.get(), MHD_OPTION_LISTEN_SOCKET, impl_->listener.get(),
      MHD_OPTION_NOTIFY_COMPLETED, &Impl::on_completed, impl_.get(), MHD_OPTION_CONNECTION_LIMIT,
      connection_limit(), MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_END);
  if (impl_->daemon == nullptr) throw std::runtime_error("cannot start the local API");
}

HttpApi::~HttpApi() {
  stop();
}

void HttpApi::set_ready(bool ready) {
  impl_->ready = ready;
}

void HttpApi::stop() {
  if (impl_->daemon == nullptr) return;
  impl_->ready = false;
  (void)MHD_quiesce_daemon(impl_->daemon);
  {
    std::unique_lock lock(impl_->mutex);
    (void)impl_->idle.wait_for(lock, std::chrono::seconds(2),
                               [this] { return impl_->open_requests == 0; });
  }
  MHD_stop_daemon(impl_->daemon);
  impl_->daemon = nullptr;
}

}  // namespace aiq
