// What a submission comes to: the order of the operator's contract, section 4.1, in one place for
// submit and for its preview.

#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

constexpr const char* kFindClientKey =
    "SELECT fingerprint, job_id, submission_id FROM client_keys "
    "WHERE tenant = ?1 AND client_key = ?2";
constexpr const char* kFindEntry =
    "SELECT result_id, truncated, created_at, soft_until, hard_until, tokens "
    "FROM cache_entries WHERE cache_key = ?1";
constexpr const char* kFindLive =
    "SELECT job_id FROM jobs INDEXED BY jobs_live_key "
    "WHERE idempotency_key = ?1 AND live = 1 AND idempotency_key IS NOT NULL";
constexpr const char* kFindRejected =
    "SELECT job_id FROM dead_letters INDEXED BY dead_letters_rejected "
    "WHERE idempotency_key = ?1 AND state = 'open' AND reason = 'rejected' "
    "ORDER BY dlq_id DESC LIMIT 1";

bool is_young_enough(const CacheHit& hit, const CacheControl& cache, UnixMs now) {
  return !cache.max_age || now - hit.created_at <= *cache.max_age;
}

}  // namespace

std::optional<CacheHit> SqliteQueries::find_entry(const KeyBlob& cache_key) {
  Query query(db_, kFindEntry, cache_key);
  if (!query.step()) return std::nullopt;
  CacheHit hit;
  hit.result_id = query.i64(0);
  hit.truncated = query.flag(1);
  hit.created_at = query.i64(2);
  hit.soft_until = query.i64(3);
  hit.hard_until = query.i64(4);
  hit.tokens = query.i64(5);
  return hit;
}

SubmitDecision SqliteQueries::decide(const NewSubmission& s, UnixMs now) {
  using Kind = SubmitDecision::Kind;
  SubmitDecision decision;
  const KeyBlob derived = key_blob(s.keys.idempotency_key);
  if (!s.client_key.empty()) {
    Query query(db_, kFindClientKey, s.tenant, s.client_key);
    if (query.step()) {
      decision.kind = query.hex(0) == s.keys.idempotency_key ? Kind::known_key : Kind::key_conflict;
      decision.job_id = query.i64(1);
      decision.submission_id = query.i64(2);
      return decision;
    }
  }
  if (s.cache.read) {
    const auto hit = find_entry(key_blob(s.keys.cache_key));
    if (hit && hit->hard_until > now && is_young_enough(*hit, s.cache, now)) {
      decision.kind = hit->soft_until > now ? Kind::fresh : Kind::stale;
      decision.hit = *hit;
      return decision;
    }
  }
  if (s.cache.only_if_cached) {
    decision.kind = Kind::not_cached;
    return decision;
  }
  if (!s.cache.coalesce) return decision;
  if (Query query(db_, kFindLive, derived); query.step()) {
    decision.kind = Kind::live;
    decision.job_id = query.i64(0);
    return decision;
  }
  if (s.resubmit) return decision;
  if (Query query(db_, kFindRejected, derived); query.step()) {
    decision.kind = Kind::rejected;
    decision.job_id = query.i64(0);
  }
  return decision;
}

SubmitPreview SqliteQueries::preview(const NewSubmission& submission, UnixMs now) {
  using Kind = SubmitDecision::Kind;
  using Receipt = SubmitReceipt::Outcome;
  const SubmitDecision decision = decide(submission, now);
  SubmitPreview preview;
  switch (decision.kind) {
    case Kind::known_key:
    case Kind::live:
    case Kind::rejected:
      preview.outcome = Receipt::existing;
      preview.job_id = decision.job_id;
      break;
    case Kind::key_conflict:
      preview.outcome = Receipt::key_conflict;
      preview.job_id = decision.job_id;
      break;
    case Kind::fresh:
    case Kind::stale:
      preview.outcome = Receipt::cached;
      preview.stale = decision.kind == Kind::stale;
      break;
    case Kind::not_cached:
      preview.outcome = Receipt::not_cached;
      break;
    case Kind::create:
      preview.outcome = Receipt::created;
      break;
  }
  return preview;
}

}  // namespace aiq
