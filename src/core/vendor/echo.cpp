// A vendor in this process that answers with the prompt: for drills. Its answers look like those of
// an OpenAI chat, its usage is counted from the text, and the same request has the same answer.

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/json_canonical.h"
#include "core/vendor/adapters.h"
#include "core/vendor/dialect.h"

namespace aiq {
namespace {

using Json = nlohmann::json;

[[nodiscard]] std::int64_t tokens_of(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes + 3) / 4);
}

// Content is a string or a list of parts.
std::string text_of(const Json& turn) {
  const Json* content = find_member(turn, "content");
  if (content == nullptr) return "";
  if (content->is_string()) return content->get<std::string>();
  return join_texts(*content, "text").value_or("");
}

struct Heard {
  std::string text;       // of the last user turn
  std::size_t bytes = 0;  // of all turns
};

Heard listen(std::string_view body) {
  Heard heard;
  const auto request = parse_json(body);
  const Json* turns = request ? array_member(*request, "messages") : nullptr;
  if (turns == nullptr) return heard;
  for (const auto& turn : *turns) {
    std::string text = text_of(turn);
    heard.bytes += text.size();
    if (text_member(turn, "role") == "user") heard.text = std::move(text);
  }
  return heard;
}

std::string chat_answer(std::string_view model, std::string_view text, std::int64_t prompt_tokens,
                        std::int64_t completion_tokens) {
  std::string out = R"({"id":"chatcmpl-echo","object":"chat.completion","created":0,"model":)";
  out.reserve(text.size() + model.size() + 320);
  append_json_string(out, model);
  out += R"(,"choices":[{"index":0,"message":{"role":"assistant","content":)";
  append_json_string(out, text);
  out += R"(},"finish_reason":"stop"}],"usage":{"prompt_tokens":)";
  out += std::to_string(prompt_tokens);
  out += R"(,"completion_tokens":)";
  out += std::to_string(completion_tokens);
  out += R"(,"total_tokens":)";
  out += std::to_string(prompt_tokens + completion_tokens);
  out += "}}";
  return out;
}

class Echo final : public Vendor {
 public:
  HttpRequest encode(const VendorConfig&, const VendorCall&, std::string_view) const override {
    AIQ_CHECK(!"echo is in_process() and sends nothing");
    return {};
  }
  VendorReply decode(const VendorCall&, const HttpResult&, UnixMs) const override {
    AIQ_CHECK(!"echo is in_process() and sends nothing");
    return {};
  }

  bool in_process() const override { return true; }

  VendorReply answer(const VendorCall& call) const override {
    VendorReply reply;
    AttemptResult& out = reply.result;
    const Heard heard = listen(call.body);
    out.retryable = false;
    if (heard.text.empty()) {
      out.outcome = Outcome::rejected;
      out.billed = Billed::no;
      out.error_code = "no_user_text";
      out.error_message = "the request has no user text to answer with";
      return reply;
    }
    out.outcome = Outcome::completed;
    out.billed = Billed::yes;
    out.usage_state = UsageState::ok;
    out.usage[Meter::input] = tokens_of(heard.bytes);
    out.usage[Meter::output] = tokens_of(heard.text.size());
    out.body =
        chat_answer(call.model, heard.text, out.usage[Meter::input], out.usage[Meter::output]);
    return reply;
  }

  std::optional<std::string> answer_text(Endpoint endpoint, std::string_view body) const override {
    return openai_vendor().answer_text(endpoint, body);
  }
  Endpoint default_endpoint() const override { return Endpoint::chat; }
  bool supports(Endpoint endpoint) const override { return endpoint == Endpoint::chat; }
  std::string prompt_body(Endpoint endpoint, const Prompt& prompt) const override {
    return openai_vendor().prompt_body(endpoint, prompt);
  }
};

}  // namespace

const Vendor& echo_vendor() {
  static const Echo vendor;
  return vendor;
}

}  // namespace aiq
