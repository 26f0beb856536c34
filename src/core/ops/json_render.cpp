#include "core/ops/json_render.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/json_canonical.h"
#include "core/base/money.h"

namespace aiq {
namespace {

Json json_usage(const std::optional<Usage>& usage) {
  if (!usage) return nullptr;
  Json out = Json::object();
  for (const Meter meter : {Meter::input, Meter::cache_read, Meter::cache_write_5m,
                            Meter::cache_write_1h, Meter::output})
    out[std::string(to_string(meter))] = (*usage)[meter];
  return out;
}

// What went wrong at last; a job that completed all the same has no error.
Json json_error(const JobRow& job) {
  if (job.error_class.empty() || job.status == JobState::completed) return nullptr;
  return {{"class", job.error_class},
          {"code", json_text(job.error_code)},
          {"message", json_text(job.error_message)},
          {"http_status", json_number(job.error_status)}};
}

Json json_labels(const Labels& labels) {
  Json out = Json::object();
  for (const auto& [key, value] : labels)
    out[key] = json_text(value).is_null() ? Json("") : json_text(value);
  return out;
}

// Of one currency as its amount, of several as an object; null: nothing that has a price.
Json json_avoided(const std::map<std::string, Int128>& by_currency) {
  if (by_currency.empty()) return nullptr;
  if (by_currency.size() == 1) return format_money(by_currency.begin()->second);
  Json out = Json::object();
  for (const auto& [currency, amount] : by_currency)
    out[currency] = format_money(amount);
  return out;
}

}  // namespace

Json json_time(std::optional<UnixMs> at) {
  return at ? Json(format_rfc3339(*at)) : Json(nullptr);
}

Json json_id(std::int64_t id) {
  return std::to_string(id);
}

Json json_batch_id(std::int64_t id) {
  return "b" + std::to_string(id);
}

Json json_text(std::string_view text) {
  if (text.empty()) return nullptr;
  if (is_valid_utf8(text)) return std::string(text);
  std::string literal;
  append_json_string(literal, text);
  return Json::parse(literal);
}

Json json_body_text(const std::optional<std::string>& body) {
  return body ? json_text(*body) : Json(nullptr);
}

Json json_job(const JobRow& job) {
  // No limit on attempts is the largest int in the row, and 0 for people, as in the configuration.
  const int max_attempts =
      job.max_attempts == std::numeric_limits<int>::max() ? 0 : job.max_attempts;
  return {{"job_id", json_id(job.job_id)},
          {"kind", to_string(job.kind)},
          {"status", to_string(job.status)},
          {"tenant", job.tenant},
          {"vendor", job.vendor},
          {"model", job.model},
          {"endpoint", to_string(job.endpoint)},
          {"priority", job.priority},
          {"labels", json_labels(job.labels)},
          {"batch_id", job.batch_id ? json_batch_id(*job.batch_id) : Json(nullptr)},
          {"custom_id", json_text(job.custom_id)},
          {"idempotency_key", json_text(job.idempotency_key)},
          {"client_key", json_text(job.client_key)},
          {"cache_key", json_text(job.cache_key)},
          {"correlation_id", json_text(job.correlation_id)},
          {"generation", job.generation},
          {"attempts", job.attempts},
          {"max_attempts", max_attempts},
          {"created_at", json_time(job.created_at)},
          {"run_at", json_time(job.run_at)},
          {"deadline", json_time(job.deadline)},
          {"started_at", json_time(job.started_at)},
          {"finished_at", json_time(job.finished_at)},
          {"result_source", json_text(job.result_source)},
          {"stale", job.stale},
          {"truncated", job.truncated},
          {"error", json_error(job)},
          {"usage", json_usage(job.usage)},
          {"cost", nullptr}};
}

Json json_attempts(const std::vector<AttemptRow>& attempts) {
  Json out = Json::array();
  for (const AttemptRow& a : attempts) {
    out.push_back({{"generation", a.generation},
                   {"attempt", a.attempt},
                   {"outcome", a.outcome ? Json(to_string(*a.outcome)) : Json(nullptr)},
                   {"billed", a.billed ? Json(to_string(*a.billed)) : Json(nullptr)},
                   {"counts", a.counts},
                   {"started_at", json_time(a.started_at)},
                   {"ended_at", json_time(a.ended_at)},
                   {"http_status", json_number(a.http_status)},
                   {"vendor_request_id", json_text(a.vendor_request_id)},
                   {"connect_ms", json_number(a.connect_ms)},
                   {"first_byte_ms", json_number(a.first_byte_ms)},
                   {"total_ms", json_number(a.total_ms)},
                   {"retry_after_ms", json_number(a.retry_after_ms)},
                   {"worker", json_text(a.worker)},
                   {"error_code", json_text(a.error_code)},
                   {"error_message", json_text(a.error_message)},
                   {"excerpt", json_text(a.excerpt)},
                   {"usage_state", json_text(a.usage_state)}});
  }
  return out;
}

Json json_dead_letter(const DeadLetter& d) {
  return {{"dlq_id", json_id(d.dlq_id)},
          {"job_id", json_id(d.job_id)},
          {"tenant", d.tenant},
          {"model", d.model},
          {"reason", d.reason},
          {"error_class", json_text(d.error_class)},
          {"http_status", json_number(d.http_status)},
          {"error", json_text(d.error_message.empty() ? d.error_code : d.error_message)},
          {"attempts", d.attempts},
          {"generation", d.generation},
          {"state", d.state},
          {"dead_at", json_time(d.dead_at)},
          {"resolved_at", json_time(d.resolved_at)},
          {"resolved_by", json_text(d.resolved_by)},
          {"note", json_text(d.note)},
          {"correlation_id", json_text(d.correlation_id)}};
}

Json json_cache_entry(const CacheEntry& e, UnixMs now) {
  const char* state = now < e.soft_until ? "fresh" : now < e.hard_until ? "stale" : "expired";
  return {{"cache_key", e.cache_key},
          {"owner", e.owner},
          {"vendor", e.vendor},
          {"model", e.model},
          {"job_id", json_id(e.job_id)},
          {"state", state},
          {"truncated", e.truncated},
          {"created_at", json_time(e.created_at)},
          {"soft_until", json_time(e.soft_until)},
          {"hard_until", json_time(e.hard_until)},
          {"last_used_at", json_time(e.last_used_at)},
          {"hits", e.hits},
          {"bytes", e.bytes},
          {"tokens", e.tokens}};
}

Json json_cache_stats(const CacheStats& s) {
  const std::int64_t answered = s.hits + s.stale_hits;
  const std::int64_t asked = answered + s.misses;
  return {
      {"entries", s.entries},
      {"bytes", s.bytes},
      {"hits", s.hits},
      {"stale_hits", s.stale_hits},
      {"misses", s.misses},
      {"hit_ratio", asked == 0 ? Json(nullptr)
                               : Json(static_cast<double>(answered) / static_cast<double>(asked))},
      {"avoided_tokens", s.avoided_tokens},
      {"avoided_cost", json_avoided(s.avoided_cost)}};
}

Json json_lock(const LockRow& l, UnixMs now) {
  return {{"name", l.name},
          {"owner", l.owner},
          {"job_id", l.job_id ? json_id(*l.job_id) : Json(nullptr)},
          {"age_seconds", std::max<UnixMs>(0, now - l.acquired_at) / 1000},
          {"acquired_at", json_time(l.acquired_at)},
          {"expires_at", json_time(l.expires_at)},
          {"expired", l.expires_at <= now}};
}

Json json_pause(const Pause& p) {
  return {{"vendor", json_text(p.vendor)}, {"model", json_text(p.model)},
          {"tenant", json_text(p.tenant)}, {"cause", p.cause},
          {"reason", json_text(p.reason)}, {"until", json_time(p.until)},
          {"actor", json_text(p.actor)},   {"created_at", json_time(p.created_at)}};
}

Json json_page(Json rows, const Page& page, std::int64_t last) {
  const bool full = rows.size() >= static_cast<std::size_t>(page.limit);
  Json out = Json::object();
  out["rows"] = std::move(rows);
  out["next_after"] = full ? json_id(last) : Json(nullptr);
  return out;
}

}  // namespace aiq
