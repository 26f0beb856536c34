#pragma once
// What a request asks of the vendor, read from its path and body.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/message.h"

namespace aiq::sim {

enum class Api { chat, embeddings, responses, messages, models, unknown };

// Why the vendor would refuse the request itself.
struct Problem {
  int status = 400;
  std::string message;
  std::string param;  // "" = null in the body
  std::string code;   // "" = null in the body
};

struct ApiRequest {
  Api api = Api::unknown;
  bool anthropic = false;  // the shape of answers and errors
  std::optional<Problem> problem;

  std::string model;            // "" when the body names none
  std::string text;             // all text content, parts joined by newlines
  std::int64_t text_bytes = 0;  // of the parts, without the joining newlines
  std::string last_user_text;   // of the last message of role "user"; embeddings: the first input
  std::int64_t choices = 1;     // `n` of chat completions
  std::optional<std::int64_t> max_tokens;

  // Embeddings only.
  std::vector<std::string> inputs;  // one text per vector; token arrays as their JSON text
  std::int64_t token_ids = 0;       // tokens given as numbers; each counts as one
  std::int64_t dimensions = 0;      // 0 = the simulator's own number
  bool base64 = false;

  // ceil(text_bytes / 4) + token_ids: an estimate that a reader can check by hand.
  [[nodiscard]] std::int64_t prompt_tokens() const { return (text_bytes + 3) / 4 + token_ids; }
};

// Never fails: what can't be served has its `problem` set, and as much else as could be read.
[[nodiscard]] ApiRequest read_api_request(const Request& request);

// The first `count` code points of valid UTF-8.
[[nodiscard]] std::string head_of(std::string_view text, std::size_t count);

}  // namespace aiq::sim
