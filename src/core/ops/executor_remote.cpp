#include "core/ops/executor_remote.h"

#include <httplib.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace aiq {
namespace {

// The library writes to the socket without MSG_NOSIGNAL: a daemon that goes away must not end
// this process. Blocks SIGPIPE in this thread and takes back the one that a write raised.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeBlocked() {
    const timespec at_once{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

httplib::Client connect_to(const std::string& socket_path, DurationMs timeout_ms) {
  // The port has no meaning here; with it the path is not taken apart as a URL.
  httplib::Client client(socket_path, 80);
  client.set_address_family(AF_UNIX);
  client.set_keep_alive(false);
  const auto seconds = static_cast<time_t>(timeout_ms / 1000);
  const auto micros = static_cast<time_t>(timeout_ms % 1000 * 1000);
  client.set_connection_timeout(seconds, micros);
  client.set_read_timeout(seconds, micros);
  client.set_write_timeout(seconds, micros);
  return client;
}

Exit exit_of(const Json& value) {
  constexpr std::array<Exit, 9> kKnown = {Exit::no,       Exit::usage,   Exit::not_found,
                                          Exit::conflict, Exit::refused, Exit::timeout,
                                          Exit::busy,     Exit::storage, Exit::interrupted};
  if (value.is_number_integer()) {
    for (const Exit exit : kKnown)
      if (value.get<std::int64_t>() == static_cast<int>(exit)) return exit;
  }
  return Exit::busy;
}

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Failure failure_of_answer(int status, const Json& body) {
  const auto error = body.is_object() ? body.find("error") : body.end();
  if (!body.is_object() || error == body.end() || !error->is_object())
    return {Exit::busy, "unexpected_answer",
            "the daemon answered with HTTP " + std::to_string(status) + " and no reason",
            "is it an aiqd of this version that listens there?"};
  return {error->contains("exit") ? exit_of((*error)["exit"]) : Exit::busy, text_of(*error, "code"),
          text_of(*error, "message"), text_of(*error, "hint")};
}

bool never_connected(httplib::Error error) {
  return error == httplib::Error::Connection || error == httplib::Error::ConnectionTimeout ||
         error == httplib::Error::BindIPAddress;
}

RemoteAnswer read_answer(const httplib::Result& result) {
  RemoteAnswer out;
  if (!result) {
    out.kind = never_connected(result.error()) ? RemoteAnswer::Kind::unreachable
                                               : RemoteAnswer::Kind::broken;
    return out;
  }
  out.kind = result->status == 503 ? RemoteAnswer::Kind::not_ready : RemoteAnswer::Kind::answered;
  out.config_fingerprint = result->get_header_value(std::string(kConfigHeader).c_str());
  Json body = Json::parse(result->body, nullptr, /*allow_exceptions=*/false);
  if (result->status == 200 && body.is_object())
    out.out = std::move(body);
  else
    out.failure = failure_of_answer(result->status, body);
  return out;
}

std::int64_t whole_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

}  // namespace

RemoteAnswer RemoteClient::post(const Call& call) const {
  const SigpipeBlocked no_signal;
  httplib::Client client = connect_to(socket_path_, call.timeout_ms);
  const httplib::Headers headers = {{"Host", "localhost"},
                                    {std::string(kProtocolHeader), std::string(kProtocolVersion)},
                                    {std::string(kConfigHeader), call.fingerprint},
                                    {std::string(kTimeoutHeader), std::to_string(call.timeout_ms)}};
  return read_answer(
      client.Post("/v1/ops/" + std::string(call.op), headers, call.body, "application/json"));
}

std::optional<DaemonStatus> RemoteClient::health(DurationMs timeout_ms) const {
  const SigpipeBlocked no_signal;
  httplib::Client client = connect_to(socket_path_, timeout_ms);
  const auto result = client.Get("/healthz", httplib::Headers{{"Host", "localhost"}});
  DaemonStatus out;
  if (!result) {
    if (result.error() != httplib::Error::Read) return std::nullopt;
    out.answers = false;
    return out;
  }
  const Json body = Json::parse(result->body, nullptr, /*allow_exceptions=*/false);
  if (!body.is_object()) return std::nullopt;
  out.ready = result->status == 200;
  if (const auto reasons = body.find("reasons"); reasons != body.end() && reasons->is_array()) {
    for (const Json& reason : *reasons)
      if (reason.is_string()) out.reasons.push_back(reason.get<std::string>());
  }
  out.pid = whole_of(body, "pid");
  out.in_flight = whole_of(body, "in_flight");
  out.uptime_seconds = whole_of(body, "uptime_seconds");
  out.version = text_of(body, "version");
  out.config_fingerprint = text_of(body, "config_fingerprint");
  return out;
}

}  // namespace aiq
