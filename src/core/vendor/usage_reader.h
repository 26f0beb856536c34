#pragma once
// The `usage` object of an answer, as disjoint meters.

#include <nlohmann/json_fwd.hpp>

#include "core/model/attempt.h"
#include "core/model/usage.h"

namespace aiq {

struct UsageReading {
  UsageState state = UsageState::missing;  // ok, missing or invalid
  Usage usage;                             // all 0 unless ok
};

// OpenAI, chat and embeddings (prompt_tokens, completion_tokens) and responses (input_tokens,
// output_tokens): cached and reasoning tokens are inside those. `answer` is the whole body.
[[nodiscard]] UsageReading read_openai_usage(const nlohmann::json& answer);

// Anthropic: cache tokens are beside input_tokens. A total of written cache tokens without its
// parts is of the 5-minute kind.
[[nodiscard]] UsageReading read_anthropic_usage(const nlohmann::json& answer);

}  // namespace aiq
