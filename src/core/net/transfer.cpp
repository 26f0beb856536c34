#include "core/net/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/redact.h"

namespace aiq {
namespace {

using Failure = HttpResult::Failure;

// curl takes timeouts as a long and refuses those beyond an int.
constexpr DurationMs kMaxCurlTimeoutMs = 1'000'000'000;

[[nodiscard]] MonoMs after(MonoMs from, DurationMs wait_ms) {
  return wait_ms > 0 ? from + wait_ms : kNoDeadline;
}

[[nodiscard]] bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

[[nodiscard]] std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// 0 when the line has no status of three digits.
[[nodiscard]] int status_of(std::string_view line) {
  const auto space = line.find(' ');
  if (space == std::string_view::npos || line.size() < space + 4) return 0;
  int status = 0;
  for (const char c : line.substr(space + 1, 3)) {
    if (c < '0' || c > '9') return 0;
    status = status * 10 + (c - '0');
  }
  return status;
}

}  // namespace

Transfer::Transfer(TransferId id, MonoMs started_at, HttpRequest request, Done done, CURL* easy,
                   Deadlines& deadlines)
    : id_(id),
      started_at_(started_at),
      request_(std::move(request)),
      done_(std::move(done)),
      easy_(easy),
      deadlines_(deadlines) {
  deadline_entry_ = deadlines_.add(this, deadline());
  set_options();
  set_headers();
}

Transfer::~Transfer() {
  deadlines_.remove(deadline_entry_);
  curl_slist_free_all(header_list_);
}

template <class T>
void Transfer::set(CURLoption option, T value) {
  const CURLcode code = curl_easy_setopt(easy_, option, value);
  if (code != CURLE_OK && setup_error_.empty()) setup_error_ = curl_easy_strerror(code);
}

void Transfer::set_options() {
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_ERRORBUFFER, error_text_.data());
  set(CURLOPT_NOSIGNAL, 1L);
  // Without it, dropping a handle waits for its name look-up and stalls the whole thread.
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_URL, request_.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_TCP_NODELAY, 1L);

  // An empty proxy keeps curl from reading the environment's.
  set(CURLOPT_PROXY, request_.proxy.c_str());
  set(CURLOPT_NOPROXY, "");
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!request_.ca_file.empty()) set(CURLOPT_CAINFO, request_.ca_file.c_str());

  // A read callback without a seek callback: curl can't rewind the body, so it can't send it again
  // by itself when a reused connection turns out dead. on_request guards what remains.
  set(CURLOPT_POST, 1L);
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  set(CURLOPT_READFUNCTION, &Transfer::on_read);
  set(CURLOPT_READDATA, this);
  set(CURLOPT_PREREQFUNCTION, &Transfer::on_request);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(CURLOPT_WRITEDATA, this);

  // Ours decides the end; curl needs it to move on to the next address of a host in time.
  if (request_.connect_timeout_ms > 0) {
    set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(std::min(request_.connect_timeout_ms, kMaxCurlTimeoutMs)));
  }
  if (request_.max_response_bytes > 0) {
    set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(request_.max_response_bytes));
  }
  // curl compares whole seconds with "greater": one less keeps the promise.
  const long age_s = static_cast<long>(request_.max_connection_age_ms / 1000) - 1;
  if (age_s > 0) {
    set(CURLOPT_MAXLIFETIME_CONN, age_s);
    set(CURLOPT_MAXAGE_CONN, age_s);
  } else {
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);
  }
}

void Transfer::set_headers() {
  const auto append = [this](const std::string& line) {
    curl_slist* longer = curl_slist_append(header_list_, line.c_str());
    if (longer != nullptr) {
      header_list_ = longer;
    } else {
      setup_error_ = "out of memory";
    }
  };
  for (const auto& [name, value] : request_.headers) {
    if (name.empty() || has_control_character(name) || has_control_character(value) ||
        name.find_first_of(": ") != std::string::npos) {
      setup_error_ = "a request header is not valid";
      return;
    }
    std::string line = name;
    line += value.empty() ? ";" : ": ";
    append(line += value);
  }
  append("Expect:");  // no pause for "100 Continue" before larger bodies
  set(CURLOPT_HTTPHEADER, header_list_);
}

// Called by curl when a connection stands, right before it writes the request.
int Transfer::on_request(void* self, char*, char*, int, int) {
  auto& t = *static_cast<Transfer*>(self);
  if (t.result_.sent) {
    // curl found a reused connection dead and starts over. What it wrote there may have arrived.
    t.refused_ = Failure::broken;
    return CURL_PREREQFUNC_ABORT;
  }
  t.result_.sent = true;
  t.enter(t.request_.body.empty() ? Phase::waiting : Phase::sending);
  return CURL_PREREQFUNC_OK;
}

std::size_t Transfer::on_read(char* to, std::size_t size, std::size_t count, void* self) {
  auto& t = *static_cast<Transfer*>(self);
  const std::size_t rest = t.request_.body.size() - t.body_sent_;
  const std::size_t take = std::min(size * count, rest);
  if (take > 0) std::memcpy(to, t.request_.body.data() + t.body_sent_, take);
  t.body_sent_ += take;
  if (take == rest && t.phase_ == Phase::sending) t.enter(Phase::waiting);
  return take;
}

std::size_t Transfer::on_header(char* line, std::size_t size, std::size_t count, void* self) {
  auto& t = *static_cast<Transfer*>(self);
  if (t.phase_ != Phase::receiving) t.enter(Phase::receiving);
  t.header_bytes_ += size * count;
  if (t.header_bytes_ > kMaxHeaderBytes || !t.take_header({line, size * count})) {
    t.refused_ = Failure::malformed;
    return 0;
  }
  return size * count;
}

bool Transfer::take_header(std::string_view line) {
  if (headers_whole_) return true;  // a trailer: nothing we use comes in one
  if (line.substr(0, 5) == "HTTP/") {
    result_.status = status_of(line);
    result_.headers.clear();
    return result_.status >= 100;
  }
  if (trim(line).empty()) {
    headers_whole_ = result_.status >= 200;  // else an interim answer: the final one follows
    return true;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  std::string name(trim(line.substr(0, colon)));
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  result_.headers.emplace_back(std::move(name), trim(line.substr(colon + 1)));
  return true;
}

std::size_t Transfer::on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& t = *static_cast<Transfer*>(self);
  const auto limit = t.request_.max_response_bytes;
  if (limit > 0 && t.result_.body.size() + size * count > static_cast<std::size_t>(limit)) {
    t.refused_ = Failure::too_large;
    return 0;
  }
  t.result_.body.append(bytes, size * count);
  return size * count;
}

void Transfer::enter(Phase phase) {
  phase_ = phase;
  const MonoMs now = system_clock().mono_ms();
  if (phase == Phase::sending) connected_at_ = now;
  if (phase == Phase::waiting) request_sent_at_ = now;
  if (phase == Phase::waiting && connected_at_ == 0) connected_at_ = now;
  if (phase == Phase::receiving) first_byte_at_ = now;
  deadline_entry_ = deadlines_.move(deadline_entry_, deadline());
}

MonoMs Transfer::deadline() const {
  const MonoMs total = after(started_at_, request_.total_timeout_ms);
  switch (phase_) {
    case Phase::connecting:
      return std::min(total, after(started_at_, request_.connect_timeout_ms));
    case Phase::waiting:
      return std::min(total, after(request_sent_at_, request_.first_byte_timeout_ms));
    case Phase::sending:
    case Phase::receiving:
      break;
  }
  return total;
}

Failure Transfer::expired(MonoMs now) const {
  if (phase_ == Phase::connecting) return Failure::connect_timeout;
  if (after(started_at_, request_.total_timeout_ms) <= now) return Failure::total_timeout;
  return Failure::first_byte_timeout;
}

Failure Transfer::judge(CURLcode code) const {
  if (refused_ != Failure::none) return refused_;
  if (!result_.sent) {
    return code == CURLE_OPERATION_TIMEDOUT ? Failure::connect_timeout : Failure::not_sent;
  }
  switch (code) {
    case CURLE_OK:  // also when the server closes in the middle of its headers
      return headers_whole_ ? Failure::none : Failure::cut;
    case CURLE_FILESIZE_EXCEEDED:
      return Failure::too_large;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:  // an answer that does not begin with "HTTP/"
    case CURLE_OUT_OF_MEMORY:         // a header line without end
      return Failure::malformed;
    default:
      return phase_ == Phase::receiving ? Failure::cut : Failure::broken;
  }
}

HttpResult Transfer::take_result(Failure failure, MonoMs now) {
  result_.failure = failure;
  if (result_.sent) {
    long new_connections = 0;
    curl_easy_getinfo(easy_, CURLINFO_NUM_CONNECTS, &new_connections);
    result_.connect_ms = new_connections == 0 ? 0 : connected_at_ - started_at_;
  }
  if (phase_ == Phase::receiving) result_.first_byte_ms = first_byte_at_ - started_at_;
  result_.total_ms = now - started_at_;
  return std::move(result_);
}

HttpResult Transfer::result(CURLcode code, MonoMs now) {
  const Failure failure = judge(code);
  if (failure != Failure::none) {
    const std::string_view text = error_text_.data();
    switch (refused_) {
      case Failure::broken:
        result_.failure_text = "the reused connection died after the request was sent";
        break;
      case Failure::too_large:
        result_.failure_text = "the answer is larger than allowed";
        break;
      case Failure::malformed:
        result_.failure_text = "the answer's headers are not valid or too large";
        break;
      default:
        result_.failure_text = redact(text.empty() ? curl_easy_strerror(code) : text);
    }
    if (code == CURLE_OK) result_.failure_text = "the answer ended within its headers";
  }
  return take_result(failure, now);
}

HttpResult Transfer::aborted(Failure failure, MonoMs now) {
  switch (failure) {
    case Failure::connect_timeout:
      result_.failure_text = "no connection within the connect timeout";
      break;
    case Failure::first_byte_timeout:
      result_.failure_text = "no answer within the first-byte timeout";
      break;
    case Failure::total_timeout:
      result_.failure_text = "no whole answer within the total timeout";
      break;
    default:
      result_.failure_text = "aborted";
  }
  return take_result(failure, now);
}

}  // namespace aiq
