#include "sim/api_request.h"

#include <utility>

namespace aiq::sim {
namespace {

constexpr std::int64_t kMaxChoices = 128;
constexpr std::int64_t kMaxDimensions = 4096;

Api api_of(std::string_view path) {
  if (path == "/v1/chat/completions") return Api::chat;
  if (path == "/v1/messages") return Api::messages;
  if (path == "/v1/responses") return Api::responses;
  if (path == "/v1/embeddings") return Api::embeddings;
  if (path == "/v1/models") return Api::models;
  return Api::unknown;
}

// Null and absent mean the same to both vendors.
const Json* member(const Json& value, const char* name) {
  const auto* object = value.get_ptr<const Json::object_t*>();
  if (object == nullptr) return nullptr;
  const auto found = object->find(name);
  return found == object->end() || found->second.is_null() ? nullptr : &found->second;
}

// A refusal that both vendors word in their own way about one field.
void missing(ApiRequest& out, const std::string& field) {
  if (out.problem) return;
  out.problem = out.anthropic ? Problem{400, field + ": Field required", "", ""}
                              : Problem{400, "Missing required parameter: '" + field + "'.", field,
                                        "missing_required_parameter"};
}

void invalid(ApiRequest& out, const std::string& field, const std::string& what) {
  if (out.problem) return;
  out.problem = out.anthropic ? Problem{400, field + ": " + what, "", ""}
                              : Problem{400, "Invalid value for '" + field + "': " + what + ".",
                                        field, "invalid_value"};
}

std::optional<std::int64_t> read_integer(ApiRequest& out, const Json& body, const char* name,
                                         std::int64_t min, std::int64_t max) {
  const Json* value = member(body, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer() || value->get<std::int64_t>() < min ||
      value->get<std::int64_t>() > max) {
    invalid(out, name,
            "expected an integer from " + std::to_string(min) + " to " + std::to_string(max));
    return std::nullopt;
  }
  return value->get<std::int64_t>();
}

// Text of a content value: a string, or a list of parts with a "text", or parts that hold such
// content themselves (tool results). Deeper nesting is not text that a vendor would read.
void collect_text(const Json& content, std::vector<std::string_view>& parts, int depth = 0) {
  if (content.is_string()) {
    parts.emplace_back(content.get_ref<const std::string&>());
    return;
  }
  if (!content.is_array() || depth > 1) return;
  for (const Json& part : content) {
    if (part.is_string()) {
      parts.emplace_back(part.get_ref<const std::string&>());
    } else if (const Json* text = member(part, "text"); text != nullptr && text->is_string()) {
      parts.emplace_back(text->get_ref<const std::string&>());
    } else if (const Json* inner = member(part, "content"); inner != nullptr) {
      collect_text(*inner, parts, depth + 1);
    }
  }
}

std::string join(const std::vector<std::string_view>& parts) {
  std::string out;
  for (std::string_view part : parts) {
    if (!out.empty()) out += '\n';
    out += part;
  }
  return out;
}

void add_text(ApiRequest& out, const std::vector<std::string_view>& parts) {
  for (std::string_view part : parts) {
    out.text_bytes += static_cast<std::int64_t>(part.size());
    if (!out.text.empty()) out.text += '\n';
    out.text += part;
  }
}

void read_content(ApiRequest& out, const Json* content) {
  if (content == nullptr) return;
  std::vector<std::string_view> parts;
  collect_text(*content, parts);
  add_text(out, parts);
}

// Messages of chat completions and Anthropic, items of the Responses API.
void read_messages(ApiRequest& out, const Json& list, const std::string& field) {
  for (const Json& message : list) {
    if (!message.is_object()) {
      invalid(out, field, "expected objects");
      return;
    }
    const Json* content = member(message, "content");
    if (content == nullptr) continue;
    std::vector<std::string_view> parts;
    collect_text(*content, parts);
    add_text(out, parts);
    const Json* role = member(message, "role");
    if (role != nullptr && *role == "user") out.last_user_text = join(parts);
  }
}

void read_message_list(ApiRequest& out, const Json& body) {
  const Json* messages = member(body, "messages");
  if (messages == nullptr) {
    missing(out, "messages");
  } else if (!messages->is_array() || messages->empty()) {
    invalid(out, "messages", "expected a list with at least one message");
  } else {
    read_messages(out, *messages, "messages");
  }
}

void read_chat(ApiRequest& out, const Json& body) {
  read_message_list(out, body);
  out.choices = read_integer(out, body, "n", 1, kMaxChoices).value_or(1);
  out.max_tokens = read_integer(out, body, "max_completion_tokens", 1, INT32_MAX);
  const auto older_name = read_integer(out, body, "max_tokens", 1, INT32_MAX);
  if (!out.max_tokens) out.max_tokens = older_name;
}

void read_anthropic(ApiRequest& out, const Json& body) {
  read_content(out, member(body, "system"));
  if (member(body, "max_tokens") == nullptr) missing(out, "max_tokens");
  out.max_tokens = read_integer(out, body, "max_tokens", 1, INT32_MAX);
  read_message_list(out, body);
}

void read_responses(ApiRequest& out, const Json& body) {
  read_content(out, member(body, "instructions"));
  out.max_tokens = read_integer(out, body, "max_output_tokens", 1, INT32_MAX);
  const Json* input = member(body, "input");
  if (input == nullptr) {
    missing(out, "input");
  } else if (input->is_string()) {
    read_content(out, input);
    out.last_user_text = input->get<std::string>();
  } else if (input->is_array() && !input->empty()) {
    read_messages(out, *input, "input");
  } else {
    invalid(out, "input", "expected a string or a list of items");
  }
}

bool all_integers(const Json& list) {
  for (const Json& item : list) {
    if (!item.is_number_integer()) return false;
  }
  return !list.empty();
}

void add_embedding_input(ApiRequest& out, const Json& input) {
  if (input.is_string()) {
    out.inputs.push_back(input.get<std::string>());
    add_text(out, {out.inputs.back()});
  } else if (input.is_array() && all_integers(input)) {
    out.inputs.push_back(dump(input));
    out.token_ids += static_cast<std::int64_t>(input.size());
  } else {
    invalid(out, "input", "expected a string, a list of strings or token numbers");
  }
}

void read_embeddings(ApiRequest& out, const Json& body) {
  out.dimensions = read_integer(out, body, "dimensions", 1, kMaxDimensions).value_or(0);
  if (const Json* format = member(body, "encoding_format"); format != nullptr) {
    out.base64 = *format == "base64";
    if (!out.base64 && *format != "float") {
      invalid(out, "encoding_format", "expected 'float' or 'base64'");
    }
  }
  const Json* input = member(body, "input");
  if (input == nullptr) {
    missing(out, "input");
    return;
  }
  if (input->is_array() && !input->empty() && !all_integers(*input)) {
    for (const Json& item : *input)
      add_embedding_input(out, item);
  } else {
    add_embedding_input(out, *input);
  }
  if (!out.inputs.empty()) out.last_user_text = out.inputs.front();
}

void read_body(ApiRequest& out, const Json& body) {
  const Json* model = member(body, "model");
  if (model == nullptr) {
    missing(out, "model");
  } else if (!model->is_string() || model->get_ref<const std::string&>().empty()) {
    invalid(out, "model", "expected the name of a model");
  } else {
    out.model = model->get<std::string>();
  }
  if (out.api == Api::chat) read_chat(out, body);
  if (out.api == Api::messages) read_anthropic(out, body);
  if (out.api == Api::responses) read_responses(out, body);
  if (out.api == Api::embeddings) read_embeddings(out, body);
  if (const Json* stream = member(body, "stream"); stream != nullptr && *stream == true) {
    invalid(out, "stream", "this simulator does not stream");
  }
}

}  // namespace

ApiRequest read_api_request(const Request& request) {
  ApiRequest out;
  out.api = api_of(request.path);
  out.anthropic =
      out.api == Api::messages ||
      (out.api != Api::chat && !find_header(request.headers, "anthropic-version").empty());
  if (out.api == Api::unknown) {
    out.problem = Problem{404, "Unknown request URL: " + request.method + " " + request.path + ".",
                          "", "unknown_url"};
    return out;
  }
  const char* expected = out.api == Api::models ? "GET" : "POST";
  if (request.method != expected) {
    out.problem = Problem{405, "Not allowed to " + request.method + " on " + request.path + ".", "",
                          "method_not_supported"};
    return out;
  }
  if (out.api == Api::models) return out;

  const Json body = Json::parse(request.body, nullptr, false);
  if (body.is_discarded() || !body.is_object()) {
    out.problem = Problem{400, "We could not parse the JSON body of your request.", "", ""};
    return out;
  }
  read_body(out, body);
  return out;
}

std::string head_of(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool begins_code_point = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (begins_code_point && count-- == 0) break;
  }
  return std::string(text.substr(0, end));
}

}  // namespace aiq::sim
