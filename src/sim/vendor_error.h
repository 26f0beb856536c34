#pragma once
// Error bodies in the words and shapes of the two vendors (OpenAI, Anthropic API descriptions).

#include <string>

#include "sim/api_request.h"
#include "sim/message.h"

namespace aiq::sim {

// `request_id` stands in Anthropic's body; OpenAI's has none.
[[nodiscard]] Json error_body(bool anthropic, const Problem& problem,
                              const std::string& request_id);

// The usual error of a status, for rules that name a status and no body.
[[nodiscard]] Problem usual_problem(int status);

}  // namespace aiq::sim
