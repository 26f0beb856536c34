#include "sim/answer.h"

#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "core/base/duration.h"
#include "core/base/random.h"
#include "core/base/sha256.h"

namespace aiq::sim {
namespace {

constexpr std::array<std::string_view, 8> kSubjects = {
    "The ledger",   "A quiet river", "The archive", "This engine",
    "A small lamp", "The harbour",   "One witness", "The orchard"};
constexpr std::array<std::string_view, 8> kVerbs = {"keeps",  "carries", "weighs", "remembers",
                                                    "counts", "answers", "mends",  "follows"};
constexpr std::array<std::string_view, 8> kObjects = {
    "every number",  "the evening",    "its neighbours", "a long story",
    "each question", "the north wind", "seven stones",   "the last letter"};

constexpr std::array<const char*, 2> kModels = {"sim-small", "sim-large"};

std::uint64_t digest_of(std::uint64_t seed, const std::string& model, const std::string& text,
                        std::size_t index) {
  Sha256 hash;
  hash.update_field(std::to_string(seed));
  hash.update_field(model);
  hash.update_field(text);
  hash.update_field(std::to_string(index));
  return std::stoull(hash.hex().substr(0, 16), nullptr, 16);
}

std::string_view pick(const std::array<std::string_view, 8>& words, Random& random) {
  return words[static_cast<std::size_t>(random.below(words.size()))];
}

std::int64_t tokens_of(std::string_view text) {
  return (static_cast<std::int64_t>(text.size()) + 3) / 4;
}

void limit_to(Completion& completion, std::int64_t max_tokens) {
  if (completion.tokens <= max_tokens) return;
  auto end = static_cast<std::size_t>(max_tokens) * 4;
  // Never in the middle of a code point.
  while (end > 0 && (static_cast<unsigned char>(completion.text[end]) & 0xC0U) == 0x80U)
    --end;
  completion.text.resize(end);
  completion.tokens = tokens_of(completion.text);
  completion.length_limited = true;
}

std::int64_t total_tokens(const std::vector<Completion>& completions) {
  std::int64_t sum = 0;
  for (const Completion& completion : completions)
    sum += completion.tokens;
  return sum;
}

std::string id_of(const char* prefix, const AnswerIdentity& identity) {
  return prefix + std::string("sim") + std::to_string(identity.sequence);
}

Json chat_body(const ApiRequest& request, const std::vector<Completion>& completions,
               const AnswerIdentity& identity) {
  Json choices = Json::array();
  for (const Completion& completion : completions) {
    choices.push_back(
        {{"index", choices.size()},
         {"message", {{"role", "assistant"}, {"content", completion.text}, {"refusal", nullptr}}},
         {"logprobs", nullptr},
         {"finish_reason", completion.length_limited ? "length" : "stop"}});
  }
  const std::int64_t prompt = request.prompt_tokens();
  const std::int64_t output = total_tokens(completions);
  return {{"id", id_of("chatcmpl-", identity)},
          {"object", "chat.completion"},
          {"created", identity.at / 1000},
          {"model", request.model},
          {"choices", std::move(choices)},
          {"usage",
           {{"prompt_tokens", prompt},
            {"completion_tokens", output},
            {"total_tokens", prompt + output},
            {"prompt_tokens_details", {{"cached_tokens", 0}, {"audio_tokens", 0}}},
            {"completion_tokens_details",
             {{"reasoning_tokens", 0},
              {"accepted_prediction_tokens", 0},
              {"rejected_prediction_tokens", 0}}}}}};
}

Json responses_body(const ApiRequest& request, const Completion& completion,
                    const AnswerIdentity& identity) {
  const std::int64_t prompt = request.prompt_tokens();
  const char* status = completion.length_limited ? "incomplete" : "completed";
  Json incomplete;
  if (completion.length_limited) incomplete = {{"reason", "max_output_tokens"}};
  Json part = {{"type", "output_text"}, {"text", completion.text}, {"annotations", Json::array()}};
  Json item = {{"type", "message"},
               {"id", id_of("msg_", identity)},
               {"status", status},
               {"role", "assistant"},
               {"content", Json::array({std::move(part)})}};
  return {{"id", id_of("resp_", identity)},
          {"object", "response"},
          {"created_at", identity.at / 1000},
          {"status", status},
          {"error", nullptr},
          {"incomplete_details", std::move(incomplete)},
          {"model", request.model},
          {"output", Json::array({std::move(item)})},
          {"usage",
           {{"input_tokens", prompt},
            {"input_tokens_details", {{"cached_tokens", 0}}},
            {"output_tokens", completion.tokens},
            {"output_tokens_details", {{"reasoning_tokens", 0}}},
            {"total_tokens", prompt + completion.tokens}}}};
}

Json anthropic_body(const ApiRequest& request, const Completion& completion,
                    const AnswerIdentity& identity) {
  Json block = {{"type", "text"}, {"text", completion.text}};
  return {
      {"id", id_of("msg_", identity)},
      {"type", "message"},
      {"role", "assistant"},
      {"model", request.model},
      {"content", Json::array({std::move(block)})},
      {"stop_reason", completion.length_limited ? "max_tokens" : "end_turn"},
      {"stop_sequence", nullptr},
      {"usage",
       {{"input_tokens", request.prompt_tokens()},
        {"cache_creation_input_tokens", 0},
        {"cache_read_input_tokens", 0},
        {"cache_creation", {{"ephemeral_5m_input_tokens", 0}, {"ephemeral_1h_input_tokens", 0}}},
        {"output_tokens", completion.tokens}}}};
}

// A vector of length 1, as embedding models return them.
std::vector<float> embedding_of(std::uint64_t digest, std::size_t dimensions) {
  SeededRandom random(digest);
  std::vector<float> vector(dimensions);
  double square = 0;
  for (float& x : vector) {
    x = static_cast<float>(random.unit() * 2 - 1);
    square += static_cast<double>(x) * static_cast<double>(x);
  }
  const auto scale = static_cast<float>(1 / std::sqrt(square > 0 ? square : 1));
  for (float& x : vector)
    x *= scale;
  return vector;
}

// The vendor's packed form: little-endian 32-bit floats, Base64.
std::string base64_of(const std::vector<float>& vector) {
  std::string bytes;
  for (float x : vector) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes += static_cast<char>(static_cast<unsigned char>(bits >> shift));
    }
  }
  std::vector<unsigned char> out((bytes.size() + 2) / 3 * 4 + 1);
  std::vector<unsigned char> in(bytes.begin(), bytes.end());
  const int length = EVP_EncodeBlock(out.data(), in.data(), static_cast<int>(in.size()));
  return {out.begin(), out.begin() + length};
}

Json embeddings_body(const ApiRequest& request, std::uint64_t seed) {
  const auto dimensions =
      static_cast<std::size_t>(request.dimensions > 0 ? request.dimensions : kEmbeddingDimensions);
  Json data = Json::array();
  for (const std::string& input : request.inputs) {
    const auto vector = embedding_of(digest_of(seed, request.model, input, 0), dimensions);
    Json embedding;
    if (request.base64) {
      embedding = base64_of(vector);
    } else {
      embedding = vector;
    }
    data.push_back(
        {{"object", "embedding"}, {"index", data.size()}, {"embedding", std::move(embedding)}});
  }
  const std::int64_t prompt = request.prompt_tokens();
  return {{"object", "list"},
          {"data", std::move(data)},
          {"model", request.model},
          {"usage", {{"prompt_tokens", prompt}, {"total_tokens", prompt}}}};
}

Json models_body(const ApiRequest& request) {
  Json data = Json::array();
  for (const char* model : kModels) {
    if (request.anthropic) {
      data.push_back({{"type", "model"},
                      {"id", model},
                      {"display_name", model},
                      {"created_at", format_rfc3339(0)}});
    } else {
      data.push_back({{"id", model}, {"object", "model"}, {"created", 0}, {"owned_by", "aiq-sim"}});
    }
  }
  if (!request.anthropic) return {{"object", "list"}, {"data", std::move(data)}};
  return {{"data", std::move(data)},
          {"has_more", false},
          {"first_id", kModels.front()},
          {"last_id", kModels.back()}};
}

}  // namespace

std::vector<Completion> complete(const ApiRequest& request, std::uint64_t seed,
                                 const std::string& note) {
  if (request.api == Api::embeddings || request.api == Api::models) return {};
  std::vector<Completion> out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(request.choices); ++i) {
    SeededRandom random(digest_of(seed, request.model, request.text, i));
    Completion completion;
    completion.text = "echo: " + request.last_user_text + "\n\n";
    completion.text += pick(kSubjects, random);
    completion.text += ' ';
    completion.text += pick(kVerbs, random);
    completion.text += ' ';
    completion.text += pick(kObjects, random);
    completion.text += '.';
    completion.text += note;
    completion.tokens = tokens_of(completion.text);
    if (request.max_tokens) limit_to(completion, *request.max_tokens);
    out.push_back(std::move(completion));
  }
  return out;
}

Json answer_body(const ApiRequest& request, const std::vector<Completion>& completions,
                 std::uint64_t seed, const AnswerIdentity& identity) {
  switch (request.api) {
    case Api::chat:
      return chat_body(request, completions, identity);
    case Api::responses:
      return responses_body(request, completions.front(), identity);
    case Api::messages:
      return anthropic_body(request, completions.front(), identity);
    case Api::embeddings:
      return embeddings_body(request, seed);
    case Api::models:
    case Api::unknown:
      break;
  }
  return models_body(request);
}

}  // namespace aiq::sim
