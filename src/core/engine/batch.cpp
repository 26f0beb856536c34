#include "core/engine/batch.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/json_canonical.h"
#include "core/base/redact.h"

namespace aiq {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, Endpoint>, 4> kUrls = {
    {{"/v1/chat/completions", Endpoint::chat},
     {"/v1/embeddings", Endpoint::embeddings},
     {"/v1/responses", Endpoint::responses},
     {"/v1/messages", Endpoint::messages}}};

// How much of a stage one transaction turns into jobs.
constexpr int kRowsAtOnce = 32;
constexpr std::size_t kLoadLines = 512;
constexpr std::size_t kLoadBytes = std::size_t{1} << 20U;

struct Refusal {
  std::string code, message;
};

std::string in_quotes(std::string_view text) {
  std::string out;
  append_json_string(out, text.substr(0, 200));
  return out;
}

// Whether the byte at `offset` stands in the outermost object itself. The text before it is JSON.
bool is_in_outermost(std::string_view text, std::size_t offset) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < offset && i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return depth == 1;
}

Refusal refusal_of(const JsonError& error, std::string_view text) {
  const std::string message = error.message + " at byte " + std::to_string(error.offset);
  switch (error.kind) {
    case JsonError::Kind::syntax:
      return {"invalid_json_line", message};
    case JsonError::Kind::invalid_utf8:
      return {"invalid_utf8", message};
    case JsonError::Kind::duplicate_member:
      if (is_in_outermost(text, error.offset)) return {"invalid_json_line", message};
      break;
    case JsonError::Kind::lone_surrogate:
    case JsonError::Kind::too_deep:
      break;
  }
  return {"invalid_request", message};
}

// The members of a line that count, as they stand in its text.
struct Fields {
  std::string_view custom_id, method, url, body;  // data() null: absent
};

Fields fields_of(const CanonicalJson& read, std::string_view text) {
  Fields out;
  const std::pair<std::string_view, std::string_view*> wanted[] = {{"custom_id", &out.custom_id},
                                                                   {"method", &out.method},
                                                                   {"url", &out.url},
                                                                   {"body", &out.body}};
  for (const JsonMember& member : read.members) {
    for (const auto& [name, into] : wanted) {
      if (member.name == name)
        *into = text.substr(member.value_begin, member.value_end - member.value_begin);
    }
  }
  return out;
}

std::optional<std::string> text_value(std::string_view json) {
  if (json.empty() || json.front() != '"') return std::nullopt;
  return Json::parse(json).get<std::string>();
}

std::optional<Refusal> missing_field(const Fields& fields) {
  const std::pair<const char*, std::string_view> all[] = {{"custom_id", fields.custom_id},
                                                          {"method", fields.method},
                                                          {"url", fields.url},
                                                          {"body", fields.body}};
  for (const auto& [name, value] : all) {
    if (value.empty() || value == "null")
      return Refusal{"missing_field", std::string(name) + " is missing"};
  }
  return std::nullopt;
}

std::optional<Refusal> check_endpoint(const BatchContext& context, std::string_view url,
                                      SubmitInput& input) {
  const auto name = text_value(url);
  const auto* const known = std::find_if(kUrls.begin(), kUrls.end(), [&name](const auto& entry) {
    return name && entry.first == *name;
  });
  if (known == kUrls.end())
    return Refusal{"unsupported_url", "url is " + (name ? in_quotes(*name) : "no string") +
                                          ", none of /v1/chat/completions, /v1/embeddings, "
                                          "/v1/responses, /v1/messages"};
  if (context.options.endpoint && *context.options.endpoint != known->second)
    return Refusal{"invalid_request", "url " + *name + " is not of the endpoint " +
                                          std::string(to_string(*context.options.endpoint)) +
                                          " that was asked for"};
  input.endpoint = known->second;
  return std::nullopt;
}

std::optional<Refusal> read_line(const BatchContext& context, std::string_view text, BatchLine& out,
                                 std::vector<std::string>& warnings) {
  const auto read = canonicalize_json(text);
  if (!read) return refusal_of(read.error(), text);
  if (!read->is_object) return Refusal{"invalid_json_line", "the line is not a JSON object"};
  const Fields fields = fields_of(*read, text);
  if (auto missing = missing_field(fields)) return missing;
  const auto custom_id = text_value(fields.custom_id);
  if (!custom_id || custom_id->empty() || custom_id->size() > kCustomIdBytesMax)
    return Refusal{"invalid_request", "custom_id is not a string of 1 to " +
                                          std::to_string(kCustomIdBytesMax) + " bytes"};
  if (text_value(fields.method) != "POST")
    return Refusal{"invalid_request", "method is not \"POST\""};
  SubmitInput input = context.options;
  if (auto refusal = check_endpoint(context, fields.url, input)) return refusal;
  input.request = std::string(fields.body);
  auto prepared =
      prepare_submission(context.config, input, context.actor, context.now, context.random);
  if (!prepared) {
    const Failure& failure = prepared.error();
    const bool large = failure.code == "request_too_large";
    return Refusal{large ? "too_large" : "invalid_request", failure.message};
  }
  out.custom_id = *custom_id;
  out.submission = std::move(prepared->submission);
  warnings.insert(warnings.end(), prepared->warnings.begin(), prepared->warnings.end());
  return std::nullopt;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<std::int64_t> whole_or_none(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<std::int64_t>();
}

}  // namespace

BatchLine check_batch_line(const BatchContext& context, std::int64_t line, std::string_view text,
                           std::vector<std::string>& warnings) {
  BatchLine out;
  out.line = line;
  if (auto refusal = read_line(context, text, out, warnings)) {
    out.code = std::move(refusal->code);
    out.message = redact(refusal->message);
  }
  return out;
}

std::string print_staged(const BatchLine& line) {
  const NewSubmission& s = line.submission.value();
  const Json out = {{"line", line.line},
                    {"tenant", s.tenant},
                    {"vendor", s.vendor},
                    {"model", s.model},
                    {"endpoint", to_string(s.endpoint)},
                    {"body", s.body},
                    {"idempotency_key", s.keys.idempotency_key},
                    {"cache_key", s.keys.cache_key},
                    {"correlation_id", s.correlation_id},
                    {"cache_owner", s.cache_owner},
                    {"scope", s.scope},
                    {"locale", s.locale},
                    {"safety", s.safety},
                    {"labels", s.labels},
                    {"priority", s.priority},
                    {"run_at", s.run_at},
                    {"deadline", or_null(s.deadline)},
                    {"max_attempts", s.max_attempts},
                    {"prompt_tokens", s.prompt_tokens},
                    {"output_tokens", or_null(s.output_tokens)},
                    {"cache_read", s.cache.read},
                    {"cache_store", s.cache.store},
                    {"coalesce", s.cache.coalesce},
                    {"max_age", or_null(s.cache.max_age)},
                    {"soft_ttl", s.soft_ttl_ms},
                    {"hard_ttl", s.hard_ttl_ms},
                    {"resubmit", s.resubmit},
                    {"actor", s.actor}};
  return out.dump();
}

BatchLine parse_staged(std::string_view text) {
  const Json in = Json::parse(text);
  BatchLine out;
  out.line = in.at("line").get<std::int64_t>();
  NewSubmission& s = out.submission.emplace();
  in.at("tenant").get_to(s.tenant);
  in.at("vendor").get_to(s.vendor);
  in.at("model").get_to(s.model);
  s.endpoint = parse_endpoint(in.at("endpoint").get<std::string>()).value();
  in.at("body").get_to(s.body);
  in.at("idempotency_key").get_to(s.keys.idempotency_key);
  in.at("cache_key").get_to(s.keys.cache_key);
  in.at("correlation_id").get_to(s.correlation_id);
  in.at("cache_owner").get_to(s.cache_owner);
  in.at("scope").get_to(s.scope);
  in.at("locale").get_to(s.locale);
  in.at("safety").get_to(s.safety);
  in.at("labels").get_to(s.labels);
  in.at("priority").get_to(s.priority);
  in.at("run_at").get_to(s.run_at);
  s.deadline = whole_or_none(in.at("deadline"));
  in.at("max_attempts").get_to(s.max_attempts);
  // Lines staged by a version that did not have them.
  s.prompt_tokens = in.value("prompt_tokens", std::int64_t{0});
  if (const auto found = in.find("output_tokens"); found != in.end())
    s.output_tokens = whole_or_none(*found);
  in.at("cache_read").get_to(s.cache.read);
  in.at("cache_store").get_to(s.cache.store);
  in.at("coalesce").get_to(s.cache.coalesce);
  s.cache.max_age = whole_or_none(in.at("max_age"));
  in.at("soft_ttl").get_to(s.soft_ttl_ms);
  in.at("hard_ttl").get_to(s.hard_ttl_ms);
  in.at("resubmit").get_to(s.resubmit);
  in.at("actor").get_to(s.actor);
  return out;
}

bool load_staged(Store& store, std::int64_t batch_id, UnixMs now) {
  const auto batch = store.batches().find(batch_id);
  if (!batch || batch->state != BatchState::loading || !batch->stage_id) return false;
  std::vector<BatchLine> lines;
  std::size_t bytes = 0;
  std::int64_t after = 0;
  while (lines.size() < kLoadLines && bytes < kLoadBytes) {
    const auto rows = store.stage_rows(*batch->stage_id, after, kRowsAtOnce);
    for (const auto& [seq, text] : rows) {
      lines.push_back(parse_staged(text));
      bytes += text.size();
      after = seq;
    }
    if (rows.size() < static_cast<std::size_t>(kRowsAtOnce)) break;
  }
  const auto loaded = store.batch_load(batch_id, lines, now);
  return loaded && loaded->state != BatchState::loaded;
}

}  // namespace aiq
