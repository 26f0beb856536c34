// OpenAI and the many servers that copy it: chat completions, responses, embeddings.

#include <nlohmann/json.hpp>

#include "core/vendor/adapters.h"
#include "core/vendor/dialect.h"
#include "core/vendor/limit_headers.h"
#include "core/vendor/prompt_writer.h"

namespace aiq {
namespace {

using Json = nlohmann::json;

[[nodiscard]] bool is_filled(const Json* value) {
  return value != nullptr &&
         !(value->is_string() && value->get_ref<const std::string&>().empty()) &&
         !((value->is_array() || value->is_object()) && value->empty());
}

// A tool call or a refusal is an answer without content; so is one that the vendor's filter took.
[[nodiscard]] bool choice_is_filled(const Json& choice) {
  if (text_member(choice, "finish_reason") == "content_filter") return true;
  if (is_filled(find_member(choice, "text"))) return true;
  const Json* message = find_member(choice, "message");
  if (message == nullptr) return false;
  for (const char* name : {"content", "refusal", "tool_calls", "function_call", "audio"}) {
    if (is_filled(find_member(*message, name))) return true;
  }
  return false;
}

ContentReading read_chat(const Json& answer) {
  const Json* choices = array_member(answer, "choices");
  if (choices == nullptr) return {};
  ContentReading reading{Content::empty, false};
  for (const auto& choice : *choices) {
    if (choice_is_filled(choice)) reading.content = Content::present;
    if (text_member(choice, "finish_reason") == "length") reading.truncated = true;
  }
  return reading;
}

ContentReading read_embeddings(const Json& answer) {
  const Json* data = array_member(answer, "data");
  if (data == nullptr) return {};
  return {data->empty() ? Content::empty : Content::present, false};
}

// Output items are messages, calls of tools, and reasoning, which alone answers nothing.
[[nodiscard]] bool item_is_filled(const Json& item) {
  const auto type = text_member(item, "type");
  if (type == "reasoning") return false;
  if (type != "message") return item.is_object();
  const Json* content = array_member(item, "content");
  if (content == nullptr) return false;
  for (const auto& part : *content) {
    if (is_filled(find_member(part, "text")) || is_filled(find_member(part, "refusal")))
      return true;
  }
  return false;
}

ContentReading read_responses(const Json& answer) {
  const Json* output = array_member(answer, "output");
  if (output == nullptr) return {};
  ContentReading reading{Content::empty, false};
  for (const auto& item : *output) {
    if (item_is_filled(item)) reading.content = Content::present;
  }
  const Json* details = find_member(answer, "incomplete_details");
  const auto reason = details != nullptr ? text_member(*details, "reason") : "";
  reading.truncated = reason == "max_output_tokens";
  if (reason == "content_filter") reading.content = Content::present;
  return reading;
}

ContentReading read_content(Endpoint endpoint, const Json& answer) {
  if (endpoint == Endpoint::embeddings) return read_embeddings(answer);
  if (endpoint == Endpoint::responses) return read_responses(answer);
  return read_chat(answer);
}

constexpr Dialect kDialect = {.read_content = &read_content,
                              .read_usage = &read_openai_usage,
                              .read_rates = &read_openai_rates,
                              .request_id_header = "x-request-id",
                              .spend_limit_in_400 = false};

std::optional<std::string> chat_text(const Json& answer) {
  const Json* choices = array_member(answer, "choices");
  if (choices == nullptr || choices->empty()) return std::nullopt;
  const Json* message = find_member(choices->front(), "message");
  if (message == nullptr) return std::nullopt;
  for (const char* name : {"content", "refusal"}) {
    const Json* text = find_member(*message, name);
    if (text == nullptr) continue;
    return text->is_string() ? std::optional(text->get<std::string>()) : join_texts(*text, "text");
  }
  return std::nullopt;
}

std::optional<std::string> responses_text(const Json& answer) {
  const Json* output = array_member(answer, "output");
  if (output == nullptr) return std::nullopt;
  std::optional<std::string> joined;
  for (const auto& item : *output) {
    const Json* content = array_member(item, "content");
    const auto text = content != nullptr ? join_texts(*content, "output_text") : std::nullopt;
    if (text) joined = joined.value_or("") + *text;
  }
  return joined;
}

class OpenAi final : public Vendor {
 public:
  HttpRequest encode(const VendorConfig& config, const VendorCall& call,
                     std::string_view credential) const override {
    const std::string_view path = call.endpoint == Endpoint::embeddings  ? "/embeddings"
                                  : call.endpoint == Endpoint::responses ? "/responses"
                                                                         : "/chat/completions";
    return make_request(config, call, credential, path);
  }

  VendorReply decode(const VendorCall& call, const HttpResult& result,
                     UnixMs received_at) const override {
    return decode_answer(kDialect, call, result, received_at);
  }

  std::optional<std::string> answer_text(Endpoint endpoint, std::string_view body) const override {
    if (endpoint == Endpoint::embeddings) return std::nullopt;
    const auto answer = parse_json(body);
    if (!answer) return std::nullopt;
    return endpoint == Endpoint::responses ? responses_text(*answer) : chat_text(*answer);
  }

  Endpoint default_endpoint() const override { return Endpoint::chat; }
  bool supports(Endpoint endpoint) const override { return endpoint != Endpoint::messages; }

  std::string prompt_body(Endpoint endpoint, const Prompt& prompt) const override {
    ObjectWriter body;
    body.text("model", prompt.model);
    if (endpoint == Endpoint::embeddings) {
      body.text("input", prompt.prompt);
      return std::move(body).finish();
    }
    if (endpoint == Endpoint::responses) {
      if (!prompt.system.empty()) body.text("instructions", prompt.system);
      body.text("input", prompt.prompt);
      body.number("max_output_tokens", prompt.max_tokens);
    } else {
      body.raw("messages", chat_turns(prompt.system, prompt.prompt));
      body.number(prompt.max_tokens_field.empty() ? "max_tokens" : prompt.max_tokens_field,
                  prompt.max_tokens);
    }
    if (prompt.temperature) body.raw("temperature", *prompt.temperature);
    return std::move(body).finish();
  }
};

}  // namespace

const Vendor& openai_vendor() {
  static const OpenAi vendor;
  return vendor;
}

}  // namespace aiq
