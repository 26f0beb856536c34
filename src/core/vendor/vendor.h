#pragma once
// A vendor adapter: turns a job into an HTTP request and an HTTP answer into an AttemptResult.
// Pure: no clock, no network, no database. One adapter per wire dialect.

#include <memory>
#include <string>
#include <string_view>

#include "core/config/config.h"
#include "core/model/attempt.h"
#include "core/model/http.h"
#include "core/model/request.h"

namespace aiq {

// What an adapter needs to know of a job.
struct VendorCall {
  std::string model;
  Endpoint endpoint = Endpoint::chat;
  std::string_view body;          // as stored
  std::string idempotency_value;  // for VendorConfig::idempotency_header
  std::string attempt_value;      // JOB.GENERATION.ATTEMPT, for attempt_header
};

// What the vendor's rate headers say; each absent when not sent or unreadable (never 0 for that).
struct RateReport {
  std::optional<std::int64_t> limit_requests, remaining_requests, limit_tokens, remaining_tokens;
  std::optional<DurationMs> reset_requests_ms, reset_tokens_ms;
};

struct VendorReply {
  AttemptResult result;
  RateReport rate;
};

class Vendor {
 public:
  virtual ~Vendor() = default;
  // `credential`: the secret of the vendor's section; "" when its auth is none.
  [[nodiscard]] virtual HttpRequest encode(const VendorConfig& config, const VendorCall& call,
                                           std::string_view credential) const = 0;
  // `received_at`: wall clock when the answer ended, for dates without a Date header.
  [[nodiscard]] virtual VendorReply decode(const VendorCall& call, const HttpResult& result,
                                           UnixMs received_at) const = 0;
  // The answer's text for people (choices[0].message.content and the like); nullopt when this
  // endpoint has none (embeddings).
  [[nodiscard]] virtual std::optional<std::string> answer_text(Endpoint endpoint,
                                                               std::string_view body) const = 0;
  [[nodiscard]] virtual Endpoint default_endpoint() const = 0;
  [[nodiscard]] virtual bool supports(Endpoint endpoint) const = 0;
  // Answers in process, without a request: for `echo`. Nothing is paid for.
  [[nodiscard]] virtual bool in_process() const { return false; }
  [[nodiscard]] virtual VendorReply answer(const VendorCall& call) const;

  // A body for `aiq submit --prompt`: model, messages (system, prompt), limits.
  struct Prompt {
    std::string model, prompt, system;
    std::optional<std::int64_t> max_tokens;
    std::string max_tokens_field;            // "max_tokens" unless configured
    std::optional<std::string> temperature;  // a JSON number as given
  };
  [[nodiscard]] virtual std::string prompt_body(Endpoint endpoint, const Prompt& prompt) const = 0;
};

// The adapter for `api` ("openai", "anthropic", "echo"); nullptr for an unknown name. Static.
[[nodiscard]] const Vendor* find_vendor(std::string_view api);

}  // namespace aiq
