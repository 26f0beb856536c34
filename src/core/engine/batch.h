#pragma once
// Lines of OpenAI Batch JSONL files: from a line's text to a checked submission, and the text in
// which a staged submission waits to become a job.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/submit.h"
#include "core/store/batches.h"
#include "core/store/store.h"

namespace aiq {

inline constexpr std::size_t kCustomIdBytesMax = 512;

// What all lines of a batch have in common.
struct BatchContext {
  const Config& config;
  const SubmitInput& options;  // `request` and `prompt` unset
  const std::string& actor;
  UnixMs now = 0;
  Random& random;
};

// Reads one line: an object with `custom_id`, `method` POST, `url` (/v1/chat/completions,
// /v1/embeddings, /v1/responses, /v1/messages) and `body`, which is taken as it stands, byte for
// byte; other members are not looked at. What is wrong is in `code` and `message`
// (invalid_json_line, missing_field, unsupported_url, too_large, invalid_request).
// `text`: valid UTF-8. Adds to `warnings` what a person should know of an accepted line.
[[nodiscard]] BatchLine check_batch_line(const BatchContext& context, std::int64_t line,
                                         std::string_view text, std::vector<std::string>& warnings);

// A line's submission as a row of the stage, and back.
[[nodiscard]] std::string print_staged(const BatchLine& line);
[[nodiscard]] BatchLine parse_staged(std::string_view text);

// Makes jobs of the next lines of a published batch, as much as fits a short transaction.
// False: nothing is left to do.
bool load_staged(Store& store, std::int64_t batch_id, UnixMs now);

}  // namespace aiq
