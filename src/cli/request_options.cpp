#include "cli/request_options.h"

#include <algorithm>

#include "cli/values.h"
#include "core/model/job.h"

namespace aiq::cli {
namespace {

void check_one_body(const RequestOptions& o) {
  const int bodies = (o.prompt ? 1 : 0) + (o.prompt_file ? 1 : 0) + (o.request ? 1 : 0);
  if (bodies != 1) {
    fail_usage(bodies == 0 ? "missing_prompt" : "several_prompts",
               bodies == 0 ? "there is nothing to ask" : "there is more than one thing to ask",
               "give one of --prompt TEXT, --prompt-file FILE and --request FILE");
  }
  if (o.request && (o.system || o.max_tokens || o.temperature)) {
    fail_usage("contradiction", "--system, --max-tokens and --temperature do not go with --request",
               "write them into the request body");
  }
}

void set_times(Json& in, const RequestOptions& o, UnixMs now) {
  if (o.delay && o.at) fail_usage("contradiction", "--delay and --at exclude each other", "");
  if (o.delay) in["delay_ms"] = duration_value("--delay", *o.delay);
  if (o.at) in["run_at"] = format_rfc3339(time_value("--at", *o.at));
  if (o.deadline) in["deadline"] = format_rfc3339(future_value("--deadline", *o.deadline, now));
}

void set_whole(Json& in, const char* member, const std::string& option, const Text& text,
               std::int64_t least, std::int64_t most) {
  if (text) in[member] = whole_value(option, *text, least, most);
}

}  // namespace

void RequestOptions::add_key_options(Command& command) {
  command.option("tenant", "T", tenant, "On whose account; default \"default\"", ValueKind::tenant)
      .option("model", "M", model, "Model; with --request the body names it", ValueKind::model)
      .option("vendor", "V", vendor, "Vendor; default by the model's section in aiq.toml",
              ValueKind::vendor)
      .option("endpoint", "E", endpoint,
              "chat, embeddings, responses or messages; default by the vendor's api",
              ValueKind::endpoint);
}

void RequestOptions::add_to(Command& command) {
  command.section("Request")
      .option("prompt", "TEXT", prompt, "What to ask")
      .option("prompt-file", "FILE", prompt_file, "What to ask, from a file; - = standard input",
              ValueKind::file)
      .option("request", "FILE", request, "A whole request body in JSON; - = standard input",
              ValueKind::file);
  add_key_options(command);
  command.option("system", "TEXT", system, "System prompt")
      .option("max-tokens", "N", max_tokens, "Longest answer, in tokens")
      .option("temperature", "X", temperature, "Sampling temperature");
  command.section("Keys and labels")
      .option("idempotency-key", "K", idempotency_key, "One job for this key, however often sent")
      .option("scope", "TEXT", scope, "Sets equal requests apart, for example by date")
      .option("locale", "TEXT", locale, "Locale of the answer; part of the keys")
      .option("safety", "TEXT", safety, "Safety profile; part of the keys")
      .repeated("label", "K=V", labels, "A label; may be given again", ValueKind::label)
      .option("correlation-id", "ID", correlation_id, "Your id for it, in logs and lists")
      .flag("resubmit", resubmit, "Also when the vendor rejected an equal request before");
  command.section("When")
      .option("priority", "N", priority, "-100 to 100, higher first; default 0")
      .option("delay", "D", delay, "Not before this time has passed")
      .option("at", "TIME", at, "Not before this time")
      .option("deadline", "D", deadline, "Not after this time has passed, or this time")
      .option("max-attempts", "N", max_attempts, "Attempts that count; default as configured");
  command.section("Cache")
      .flag("no-cache", no_cache, "Ask anew, and store the answer")
      .flag("no-store", no_store, "Take a cached answer, but store none")
      .flag("bypass-cache", bypass_cache, "Neither, and share the call with nobody")
      .flag("only-if-cached", only_if_cached, "From the cache, or exit 3")
      .option("max-age", "D", max_age, "Take no cached answer older than this")
      .option("ttl", "D", ttl, "Keep the answer in the cache for this long");
}

void RequestOptions::set_key_members(Json& in) const {
  set_text(in, "tenant", tenant);
  set_text(in, "model", model);
  set_text(in, "vendor", vendor);
  set_text(in, "endpoint", endpoint);
  set_text(in, "scope", scope);
  set_text(in, "locale", locale);
  set_text(in, "safety", safety);
}

// A variable that is not set must not quietly take the protection away.
void RequestOptions::check_key() const {
  if (idempotency_key && idempotency_key->empty()) {
    fail_usage("empty_key", "--idempotency-key is empty", "is the variable set that you gave?");
  }
}

void RequestOptions::set_common(Json& in, UnixMs now) const {
  set_key_members(in);
  set_whole(in, "priority", "--priority", priority, kPriorityMin, kPriorityMax);
  set_whole(in, "max_attempts", "--max-attempts", max_attempts, 0, INT32_MAX);
  set_times(in, *this, now);
  check_key();
  set_text(in, "correlation_id", correlation_id);
  set_labels(in, labels);
  set_duration(in, "ttl_ms", "--ttl", ttl);
  set_duration(in, "max_age_ms", "--max-age", max_age);
  set_flag(in, "no_cache", no_cache);
  set_flag(in, "no_store", no_store);
  set_flag(in, "bypass_cache", bypass_cache);
  set_flag(in, "only_if_cached", only_if_cached);
  set_flag(in, "resubmit", resubmit);
}

Json RequestOptions::line_options(Session& session) const {
  if (prompt || prompt_file || request || system || max_tokens || temperature) {
    fail_usage("contradiction", "each line of a batch has its own request",
               "leave out --prompt, --prompt-file, --request, --system, --max-tokens and "
               "--temperature");
  }
  const UnixMs now = session.clock().wall_ms();
  Json in = Json::object();
  set_common(in, now);
  // One moment for all of its lines, however long the file takes.
  if (const auto wait = in.find("delay_ms"); wait != in.end()) {
    in["run_at"] = format_rfc3339(now + wait->get<DurationMs>());
    in.erase("delay_ms");
  }
  return in;
}

std::string RequestOptions::line_options_as_given() const {
  Json out = Json::array();
  for (const Text* text : {&tenant, &model, &vendor, &endpoint, &scope, &locale, &safety, &priority,
                           &delay, &at, &deadline, &max_attempts, &correlation_id, &ttl, &max_age})
    out.push_back(*text ? Json(**text) : Json(nullptr));
  Texts sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  out.push_back(sorted);
  for (const bool flag : {no_cache, no_store, bypass_cache, only_if_cached, resubmit})
    out.push_back(flag);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json RequestOptions::input(Session& session) const {
  check_one_body(*this);
  Json in = Json::object();
  set_text(in, "system", system);
  set_whole(in, "max_tokens", "--max-tokens", max_tokens, 1, INT64_MAX);
  set_text(in, "temperature", temperature);
  set_common(in, session.clock().wall_ms());
  set_text(in, "idempotency_key", idempotency_key);
  // Last, so that no other mistake costs reading a pipe.
  const std::int64_t limit = session.config().limits.request_bytes;
  set_text(in, "prompt", prompt);
  if (prompt_file) in["prompt"] = read_input("--prompt-file", *prompt_file, limit);
  if (request) in["request"] = read_input("--request", *request, limit);
  return in;
}

}  // namespace aiq::cli
