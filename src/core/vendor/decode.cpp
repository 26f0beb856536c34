// From an HTTP answer to an AttemptResult, in the order in which an answer is judged: the
// transport, the status, the body.

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/json_canonical.h"
#include "core/base/redact.h"
#include "core/vendor/classify.h"
#include "core/vendor/dialect.h"
#include "core/vendor/limit_headers.h"

namespace aiq {
namespace {

using Json = nlohmann::json;
using Failure = HttpResult::Failure;

constexpr std::size_t kMaxMessage = 2048;  // bytes kept of messages and excerpts
constexpr std::size_t kMaxName = 128;      // bytes kept of codes and request ids

// `text` for a row: without secrets, valid UTF-8 without control characters but line ends and
// tabs, at most `max_bytes`. Secrets are looked for before cutting, which could halve one.
std::string safe_text(std::string_view text, std::size_t max_bytes) {
  const std::string clean = redact(text.substr(0, std::size_t{64} * 1024));
  std::string out;
  for (std::size_t at = 0; at < clean.size() && out.size() < max_bytes;) {
    const auto byte = static_cast<unsigned char>(clean[at]);
    std::size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    const auto piece = std::string_view(clean).substr(at, length);
    if (byte < 0x80) {
      const bool printable = (byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t';
      out += printable ? clean[at] : ' ';
    } else if (is_valid_utf8(piece) && out.size() + piece.size() <= max_bytes) {
      out += piece;
    } else if (is_valid_utf8(piece)) {
      break;
    } else {
      out += '?';
      length = 1;
    }
    at += length;
  }
  return out;
}

// The error that a body tells of, in any of the forms seen.
struct BodyError {
  std::string code, type, detail_code, message;

  [[nodiscard]] ErrorNames names() const { return {code, type, detail_code}; }
  // The most exact name.
  [[nodiscard]] std::string_view name() const {
    return !detail_code.empty() ? detail_code : !code.empty() ? code : type;
  }
};

// Proxies send `code` as a number.
std::string name_member(const Json& object, std::string_view name) {
  const auto* member = find_member(object, name);
  if (member == nullptr) return "";
  return member->is_string()           ? member->get<std::string>()
         : member->is_number_integer() ? member->dump()
                                       : "";
}

BodyError read_error(const Json& body) {
  BodyError error;
  const Json* object = find_member(body, "error");
  if (object == nullptr) object = &body;  // {"message": ...}, {"detail": ...}
  if (object->is_string()) {
    error.message = object->get<std::string>();
    return error;
  }
  error.code = name_member(*object, "code");
  if (object != &body) error.type = name_member(*object, "type");
  error.message = text_member(*object, "message");
  if (error.message.empty()) error.message = text_member(*object, "detail");
  if (const auto* details = find_member(*object, "details")) {
    error.detail_code = name_member(*details, "error_code");
  }
  return error;
}

void apply(AttemptResult& out, const Verdict& verdict) {
  out.outcome = verdict.outcome;
  out.billed = verdict.billed;
  out.retryable = verdict.retryable;
  out.spent_vendor = verdict.pause == PauseScope::vendor;
  out.spent_model = verdict.pause == PauseScope::model;
  out.error_code = verdict.code;
}

void set_bad(AttemptResult& out, std::string_view code, std::string message) {
  apply(out, judge_status(200));
  out.error_code = code;
  out.error_message = std::move(message);
}

void set_error(AttemptResult& out, const Verdict& verdict, const BodyError& error, int status) {
  apply(out, verdict);
  const auto name = error.name();
  if (!name.empty()) {
    out.error_code = safe_text(name, kMaxName);
  } else if (out.error_code.empty()) {
    out.error_code = "http_" + std::to_string(status);
  }
  out.error_message = error.message.empty()
                          ? "the vendor answered with status " + std::to_string(status)
                          : safe_text(error.message, kMaxMessage);
}

void judge_error_answer(AttemptResult& out, const Dialect& dialect, const HttpResult& result,
                        const std::optional<Json>& body) {
  const bool object = body && body->is_object();
  const BodyError error = object ? read_error(*body) : BodyError{};
  Verdict verdict = judge_error_status(result.status, error.names());
  if (dialect.spend_limit_in_400 && result.status == 400 && names_spend_limit(error.message)) {
    verdict = spend_limit_verdict();
  }
  set_error(out, verdict, error, result.status);
}

// Why a body is no JSON object, as a code and a sentence.
std::pair<std::string_view, std::string> describe_unreadable(std::string_view body) {
  const auto first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {"empty_body", "the answer has no body"};
  if (body[first] == '<') return {"html", "the answer is HTML or XML, not JSON"};
  if (!is_valid_utf8(body)) return {"invalid_utf8", "the answer is not valid UTF-8"};
  return {"invalid_json", "the answer is not a JSON object"};
}

void judge_200(AttemptResult& out, const Dialect& dialect, const VendorCall& call,
               const HttpResult& result, const std::optional<Json>& body) {
  if (!body || !body->is_object()) {
    auto [code, message] = describe_unreadable(result.body);
    set_bad(out, code, std::move(message));
    return;
  }
  if (find_member(*body, "error") != nullptr) {
    const BodyError error = read_error(*body);
    set_error(out, judge_error_in_200(error.names()), error, result.status);
    return;
  }
  const ContentReading reading = dialect.read_content(call.endpoint, *body);
  switch (reading.content) {
    case Content::absent:
      set_bad(out, "unexpected_shape", "the answer is JSON, but not one of this endpoint");
      return;
    case Content::empty:
      apply(out, judge_status(200));
      out.outcome = Outcome::empty_response;
      out.error_code = "empty_response";
      out.error_message = "the answer has no content";
      return;
    case Content::present:
      break;
  }
  out.outcome = Outcome::completed;
  out.retryable = false;
  out.truncated = reading.truncated;
  out.body = result.body;
  redact_secrets(out.body);
}

void read_usage(AttemptResult& out, const Dialect& dialect, const std::optional<Json>& body) {
  const bool expected = out.outcome == Outcome::completed || out.outcome == Outcome::empty_response;
  const UsageReading reading = body ? dialect.read_usage(*body) : UsageReading{};
  out.usage_state =
      reading.state == UsageState::missing && !expected ? UsageState::none : reading.state;
  out.usage = reading.usage;
  if (reading.state == UsageState::ok) out.billed = Billed::yes;
}

void judge(AttemptResult& out, const Dialect& dialect, const VendorCall& call,
           const HttpResult& result, const std::optional<Json>& body) {
  // An error status says enough, even when its body is cut or too large.
  const bool status_counts = result.failure == Failure::none || result.failure == Failure::cut ||
                             result.failure == Failure::too_large;
  if (status_counts && result.status >= 300) {
    judge_error_answer(out, dialect, result, body);
  } else if (result.failure != Failure::none) {
    apply(out, judge_failure(result.failure, result.sent));
    out.error_message = safe_text(result.failure_text, kMaxMessage);
  } else if (result.status == 200) {
    judge_200(out, dialect, call, result, body);
  } else {
    set_bad(out, "unexpected_status",
            "the vendor answered with status " + std::to_string(result.status));
  }
}

}  // namespace

VendorReply decode_answer(const Dialect& dialect, const VendorCall& call, const HttpResult& result,
                          UnixMs received_at) {
  VendorReply reply;
  AttemptResult& out = reply.result;
  if (result.status != 0) out.http_status = result.status;
  out.connect_ms = result.connect_ms;
  out.first_byte_ms = result.first_byte_ms;
  out.total_ms = result.total_ms;

  std::optional<Json> body;
  if (!result.body.empty()) body = parse_json(result.body);
  judge(out, dialect, call, result, body);
  read_usage(out, dialect, body);
  if (out.outcome != Outcome::completed) out.excerpt = safe_text(result.body, kMaxMessage);

  const bool overridable = out.outcome == Outcome::server_error ||
                           out.outcome == Outcome::overloaded || out.outcome == Outcome::rejected;
  if (const auto should_retry = read_should_retry(result.headers); should_retry && overridable) {
    out.retryable = *should_retry;
  }
  out.retry_after_ms = read_wait(result.headers, received_at);
  reply.rate = dialect.read_rates(result.headers, received_at);

  if (const auto* id = find_header(result.headers, dialect.request_id_header)) {
    out.vendor_request_id = safe_text(*id, kMaxName);
  } else if (body) {
    out.vendor_request_id = safe_text(text_member(*body, "request_id"), kMaxName);
  }
  return reply;
}

}  // namespace aiq
