// request_edits: what a dead letter's request was before an operator changed it.

#include <utility>

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

// The request that the letter's job had in the generation after: as it was when a later letter was
// edited first, else as it is now.
constexpr const char* kPayload =
    "SELECT coalesce(e.body, r.body), l.vendor, l.model, coalesce(e.endpoint, j.endpoint), "
    "r.scope, r.locale, r.safety, "
    "(SELECT o.body FROM request_edits o WHERE o.job_id = d.job_id "
    "AND o.generation = d.generation ORDER BY o.edit_id LIMIT 1) "
    "FROM dead_letters d JOIN jobs j ON j.job_id = d.job_id "
    "JOIN requests r ON r.job_id = d.job_id "
    "LEFT JOIN request_edits e ON e.edit_id = (SELECT min(n.edit_id) FROM request_edits n "
    "WHERE n.job_id = d.job_id AND n.generation > d.generation) "
    "JOIN lanes l ON l.lane_id = coalesce(e.lane_id, j.lane_id) WHERE d.dlq_id = ?1";

constexpr const char* kLetter =
    "SELECT d.job_id, d.generation, d.state, j.kind, l.tenant FROM dead_letters d "
    "JOIN jobs j ON j.job_id = d.job_id JOIN lanes l ON l.lane_id = d.lane_id "
    "WHERE d.dlq_id = ?1";
constexpr const char* kKeep =
    "INSERT INTO request_edits (job_id, generation, lane_id, endpoint, body, edited_at, actor) "
    "SELECT j.job_id, j.generation, j.lane_id, j.endpoint, r.body, ?2, ?3 "
    "FROM jobs j JOIN requests r ON r.job_id = j.job_id WHERE j.job_id = ?1";
constexpr const char* kSetBody = "UPDATE requests SET body = ?2 WHERE job_id = ?1";
constexpr const char* kSetJob =
    "UPDATE jobs SET lane_id = ?2, endpoint = ?3, "
    "idempotency_key = CASE WHEN idempotency_key IS NULL THEN NULL ELSE ?4 END, cache_key = ?5, "
    "cache_owner = ?6, cache_read = cache_read AND ?7, cache_store = cache_store AND ?8, "
    "coalesce = coalesce AND ?8, prompt_tokens = ?10, output_tokens = ?11 "
    "WHERE job_id = ?1 AND state = 'dead_lettered' AND generation = ?9";
// The vendor refused the old request, not this one.
constexpr const char* kForgetKey =
    "UPDATE dead_letters SET idempotency_key = NULL WHERE dlq_id = ?1";

}  // namespace

std::optional<LetterPayload> SqliteQueries::letter_payload(std::int64_t dlq_id) {
  Query query(db_, kPayload, dlq_id);
  if (!query.step()) return std::nullopt;
  LetterPayload out;
  out.body = query.text(0);
  out.vendor = query.text(1);
  out.model = query.text(2);
  out.endpoint = parse_endpoint(query.view(3)).value();
  out.scope = query.text(4);
  out.locale = query.text(5);
  out.safety = query.text(6);
  if (!query.null(7)) out.original = query.text(7);
  return out;
}

Store::EditOutcome SqliteStore::edit_dead_letter(const DeadLetterEdit& edit) {
  JobId job_id = 0;
  int generation = 0;
  std::string tenant;
  {
    Query query(db_, kLetter, edit.dlq_id);
    if (!query.step()) return EditOutcome::not_found;
    if (query.view(2) != "open") return EditOutcome::already_resolved;
    if (parse_job_kind(query.view(3)) == JobKind::refresh) return EditOutcome::not_found;
    job_id = query.i64(0);
    generation = query.i32(1);
    tenant = query.text(4);
  }
  const LaneId lane_id = lane_for(tenant, edit.vendor, edit.model);
  AIQ_CHECK(run(db_, kKeep, job_id, edit.now, edit.actor) == 1);
  AIQ_CHECK(run(db_, kSetBody, job_id, BlobView{edit.body}) == 1);
  // An open letter is of the present generation of its job: it is resolved before the next begins.
  AIQ_CHECK(run(db_, kSetJob, job_id, lane_id, to_string(edit.endpoint),
                key_blob(edit.keys.idempotency_key), key_blob(edit.keys.cache_key),
                edit.cache_owner, edit.cache_read, edit.cache_store, generation, edit.prompt_tokens,
                edit.output_tokens) == 1);
  run(db_, kForgetKey, edit.dlq_id);
  return EditOutcome::edited;
}

}  // namespace aiq
