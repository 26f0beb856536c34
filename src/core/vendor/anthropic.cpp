// Anthropic's messages.

#include <nlohmann/json.hpp>

#include "core/vendor/adapters.h"
#include "core/vendor/dialect.h"
#include "core/vendor/limit_headers.h"
#include "core/vendor/prompt_writer.h"

namespace aiq {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kDefaultMaxTokens = 1024;  // the API requires a limit

// Thinking alone answers nothing; a tool call does.
[[nodiscard]] bool block_is_filled(const Json& block) {
  const auto type = text_member(block, "type");
  if (type == "thinking" || type == "redacted_thinking") return false;
  return type == "text" ? !text_member(block, "text").empty() : !type.empty();
}

ContentReading read_content(Endpoint, const Json& answer) {
  const Json* content = array_member(answer, "content");
  if (content == nullptr) return {};
  const auto reason = text_member(answer, "stop_reason");
  ContentReading reading{Content::empty,
                         reason == "max_tokens" || reason == "model_context_window_exceeded"};
  for (const auto& block : *content) {
    if (block_is_filled(block)) reading.content = Content::present;
  }
  if (reason == "refusal") reading.content = Content::present;  // as an answer it is whole
  return reading;
}

constexpr Dialect kDialect = {.read_content = &read_content,
                              .read_usage = &read_anthropic_usage,
                              .read_rates = &read_anthropic_rates,
                              .request_id_header = "request-id",
                              .spend_limit_in_400 = true};

class Anthropic final : public Vendor {
 public:
  HttpRequest encode(const VendorConfig& config, const VendorCall& call,
                     std::string_view credential) const override {
    HttpHeaders extra;
    if (!config.anthropic_version.empty()) {
      extra.emplace_back("anthropic-version", config.anthropic_version);
    }
    // Other vendors' bases end in /v1, this one's do not: take both.
    std::string_view base = config.base_url;
    while (!base.empty() && base.back() == '/')
      base.remove_suffix(1);
    const bool has_version = base.size() >= 3 && base.substr(base.size() - 3) == "/v1";
    return make_request(config, call, credential, has_version ? "/messages" : "/v1/messages",
                        extra);
  }

  VendorReply decode(const VendorCall& call, const HttpResult& result,
                     UnixMs received_at) const override {
    return decode_answer(kDialect, call, result, received_at);
  }

  std::optional<std::string> answer_text(Endpoint, std::string_view body) const override {
    const auto answer = parse_json(body);
    const Json* content = answer ? array_member(*answer, "content") : nullptr;
    return content != nullptr ? join_texts(*content, "text") : std::nullopt;
  }

  Endpoint default_endpoint() const override { return Endpoint::messages; }
  bool supports(Endpoint endpoint) const override { return endpoint == Endpoint::messages; }

  std::string prompt_body(Endpoint, const Prompt& prompt) const override {
    ObjectWriter body;
    body.text("model", prompt.model);
    body.number("max_tokens", prompt.max_tokens.value_or(kDefaultMaxTokens));
    if (!prompt.system.empty()) body.text("system", prompt.system);
    body.raw("messages", chat_turns("", prompt.prompt));
    if (prompt.temperature) body.raw("temperature", *prompt.temperature);
    return std::move(body).finish();
  }
};

}  // namespace

const Vendor& anthropic_vendor() {
  static const Anthropic vendor;
  return vendor;
}

}  // namespace aiq
