#include <tuple>

#include "core/base/json_canonical.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

constexpr int kInvalidateSlice = 1000;  // entries that one operation looks at

Expected<Json, Failure> cache_stats(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {});
  if (in.failure()) return Unexpected{*in.failure()};
  return json_cache_stats(reader.stats(env.clock.wall_ms()).cache);
}

// `after` is the number of rows to skip: entries are in the order of their last use, which moves.
Expected<Json, Failure> list_cache(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"limit", "after"});
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  for (const CacheEntry& entry : reader.list_cache(page))
    rows.push_back(json_cache_entry(entry, env.clock.wall_ms()));
  const auto last = page.after + static_cast<std::int64_t>(rows.size());
  return json_page(std::move(rows), page, last);
}

bool is_cache_key(const std::string& key) {
  return key.size() == 64 && key.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string read_key(Input& in, const char* name = "key") {
  std::string key = in.text(name);
  if (!key.empty() && !is_cache_key(key))
    in.problem("invalid_key", "a cache key has 64 lower-case hexadecimal digits");
  return key;
}

Expected<Json, Failure> show_cache(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"key"});
  const std::string key = read_key(in);
  if (key.empty()) in.problem("missing_option", "key is missing");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto entry = reader.cache_entry(key);
  if (!entry)
    return Unexpected{
        Failure{Exit::not_found, "no_such_entry", "the cache has no entry " + key, ""}};
  Json out = json_cache_entry(*entry, env.clock.wall_ms());
  const auto body = reader.result_body(entry->result_id);
  out["result_text"] = json_body_text(body);
  return out;
}

// ---- explain

// One of the two requests that are compared.
struct Side {
  CacheQuestion question;
  std::string vendor, model, endpoint, canonical;
};

Expected<Side, Failure> side_of_job(Reader& reader, const Json& json) {
  Input in(json, {"job_id"});
  const JobId id = in.id("job_id");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto job = reader.job(id);
  const auto body = job ? reader.request_body(id) : std::nullopt;
  auto question = job ? reader.cache_question(id) : std::nullopt;
  if (!body || !question)
    return Unexpected{
        Failure{Exit::not_found, "no_such_job", "there is no job " + std::to_string(id), ""}};
  auto checked = check_body(*body);
  if (!checked)
    return Unexpected{Failure{
        Exit::storage, "corrupt",
        "the request of job " + std::to_string(id) + " is unreadable: " + checked.error().message,
        ""}};
  return Side{std::move(*question), job->vendor, job->model, std::string(to_string(job->endpoint)),
              checked->cache_canonical};
}

Expected<Side, Failure> side_of_request(const OpEnv& env, const Json& options, const Json& side) {
  Json in = options;
  in["request"] = side["request"];
  auto input = submit_input_of(in);
  if (!input) return Unexpected{std::move(input).error()};
  auto prepared =
      prepare_submission(env.config, *input, env.actor, env.clock.wall_ms(), env.random);
  if (!prepared) return Unexpected{std::move(prepared).error()};
  const NewSubmission& s = prepared->submission;
  auto checked = check_body(s.body);
  AIQ_CHECK(checked.has_value());  // it was prepared from it
  return Side{{s.keys.cache_key, s.cache_owner, s.scope, s.locale, s.safety},
              s.vendor,
              s.model,
              std::string(to_string(s.endpoint)),
              checked->cache_canonical};
}

Expected<Side, Failure> read_side(const OpEnv& env, Reader& reader, const Json& in,
                                  const char* name) {
  const auto found = in.is_object() ? in.find(name) : in.end();
  if (found == in.end() || !found->is_object() ||
      found->contains("job_id") == found->contains("request"))
    return Unexpected{Failure{Exit::usage, "invalid_option",
                              std::string(name) + ": expected {\"job_id\"} or {\"request\"}", ""}};
  if (found->contains("job_id")) return side_of_job(reader, *found);
  Json options = in;
  options.erase("a");
  options.erase("b");
  return side_of_request(env, options, *found);
}

// JSON Pointers into the requests; before them, without a slash, what differs besides the body.
Json differences(const Side& a, const Side& b) {
  Json out = Json::array();
  if (a.question.cache_key == b.question.cache_key) return out;
  const auto compare = [&out](const char* name, const std::string& one, const std::string& other) {
    if (one != other) out.push_back(name);
  };
  compare("owner", a.question.owner, b.question.owner);
  compare("vendor", a.vendor, b.vendor);
  compare("model", a.model, b.model);
  compare("endpoint", a.endpoint, b.endpoint);
  compare("scope", a.question.scope, b.question.scope);
  compare("locale", a.question.locale, b.question.locale);
  compare("safety", a.question.safety, b.question.safety);
  for (const std::string& pointer : differing_pointers(a.canonical, b.canonical))
    out.push_back(json_text(pointer));
  // Equal in all that makes a key: one of the two was derived by the rules of another version.
  if (out.empty()) out.push_back("key_version");
  return out;
}

Expected<Json, Failure> explain_cache(const OpEnv& env, Reader& reader, const Json& in) {
  auto a = read_side(env, reader, in, "a");
  if (!a) return Unexpected{std::move(a).error()};
  auto b = read_side(env, reader, in, "b");
  if (!b) return Unexpected{std::move(b).error()};
  const std::string& key_a = a->question.cache_key;
  const std::string& key_b = b->question.cache_key;
  return Json{{"same", key_a == key_b},
              {"key_a", key_a},
              {"key_b", key_b},
              {"differences", differences(*a, *b)}};
}

// ---- invalidate

Expected<WriteStep, Failure> prepare_invalidate(const OpEnv& env, const Json& json) {
  Input in(json, {"key", "model", "tenant", "label", "older_than_ms", "all", "after"});
  const std::string after = read_key(in, "after");
  CacheFilter filter;
  filter.cache_key = read_key(in);
  filter.model = in.text("model");
  filter.tenant = in.text("tenant");
  std::tie(filter.label_key, filter.label_value) = in.label("label");
  if (const auto age = in.duration("older_than_ms"))
    filter.created_before = env.clock.wall_ms() - *age;
  filter.all = in.flag("all");
  const bool narrowed = !filter.cache_key.empty() || !filter.model.empty() ||
                        !filter.tenant.empty() || !filter.label_key.empty() ||
                        filter.created_before;
  if (!narrowed && !filter.all)
    in.problem("missing_option", "name what to remove, or say that it is all");
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([filter, after](Store& store) -> Expected<OpResult, Failure> {
    const CacheRemoval slice = store.invalidate_cache(filter, after, kInvalidateSlice);
    OpResult result;
    result.out = {{"removed", slice.removed}, {"next_after", json_text(slice.next)}};
    return result;
  });
}

constexpr Op kOps[] = {
    {.name = "cache.stats", .read = cache_stats},
    {.name = "cache.list", .read = list_cache},
    {.name = "cache.show", .read = show_cache},
    {.name = "cache.explain", .read = explain_cache, .prefers_daemon = true},
    {.name = "cache.invalidate",
     .prepare = prepare_invalidate,
     .priority = WritePriority::maintenance},
};

}  // namespace

std::span<const Op> cache_ops() {
  return kOps;
}

}  // namespace aiq
