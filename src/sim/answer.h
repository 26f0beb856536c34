#pragma once
// The simulator's own answers: the same request text always gets the same words.
//
// A text answer is "echo: " + the last user text + a sentence drawn from a hash of seed, model,
// all text content and the choice's index. Tokens are ceil(bytes / 4) of the text.

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "sim/api_request.h"
#include "sim/message.h"

namespace aiq::sim {

struct Completion {
  std::string text;
  std::int64_t tokens = 0;
  bool length_limited = false;  // cut at max_tokens
};

// What distinguishes this answer from the next one to an equal request.
struct AnswerIdentity {
  std::uint64_t sequence = 0;
  UnixMs at = 0;
};

inline constexpr std::int64_t kEmbeddingDimensions = 16;  // when a request asks for none

// One per choice; none for embeddings and the list of models. `note` is added to each text.
[[nodiscard]] std::vector<Completion> complete(const ApiRequest& request, std::uint64_t seed,
                                               const std::string& note = "");

// The body of status 200 for a request without a problem, "usage" in it (models: without).
[[nodiscard]] Json answer_body(const ApiRequest& request,
                               const std::vector<Completion>& completions, std::uint64_t seed,
                               const AnswerIdentity& identity);

}  // namespace aiq::sim
