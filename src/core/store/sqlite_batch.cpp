// Taking batches in: batches, batch_lines, batch_errors, and the stage of an all-or-nothing one.

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kInsertBatch =
    "INSERT INTO batches (tenant, client_key, fingerprint, state, stage_id, created_at, "
    "correlation_id, actor) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
constexpr const char* kFingerprint = "SELECT fingerprint FROM batches WHERE batch_id = ?1";
constexpr const char* kAdvance =
    "UPDATE batches SET read_to = ?2, lines = ?3, created = ?4, existing = ?5, cached = ?6, "
    "rejected = ?7 WHERE batch_id = ?1";
constexpr const char* kPublish = "UPDATE batches SET state = 'loading' WHERE batch_id = ?1";
constexpr const char* kLoaded =
    "UPDATE batches SET state = 'loaded', loaded_at = ?2, stage_id = NULL WHERE batch_id = ?1";
constexpr const char* kHasCustomId =
    "SELECT line FROM batch_lines INDEXED BY batch_lines_custom_id "
    "WHERE batch_id = ?1 AND custom_id = ?2";
constexpr const char* kInsertLine =
    "INSERT INTO batch_lines (batch_id, line, custom_id, job_id, submission_id) "
    "VALUES (?1, ?2, ?3, ?4, ?5)";
constexpr const char* kSetJob =
    "UPDATE batch_lines SET job_id = ?3, submission_id = ?4 "
    "WHERE batch_id = ?1 AND line = ?2 AND job_id IS NULL";
constexpr const char* kInsertError =
    "INSERT INTO batch_errors (batch_id, line, code, message) VALUES (?1, ?2, ?3, ?4)";
constexpr const char* kPublished =
    "SELECT batch_id FROM batches INDEXED BY batches_unfinished "
    "WHERE state <> 'loaded' AND state = 'loading' AND stage_id IS NOT NULL "
    "ORDER BY batch_id LIMIT 1";
constexpr const char* kStaging =
    "SELECT batch_id FROM batches INDEXED BY batches_unfinished "
    "WHERE state <> 'loaded' AND state = 'staging' ORDER BY batch_id LIMIT 1";
// From the first slice on: nobody joins what is being removed, and it can't be published.
constexpr const char* kGiveUp =
    "UPDATE batches SET client_key = NULL, fingerprint = randomblob(32), "
    "rejected = max(rejected, 1) WHERE batch_id = ?1";
constexpr const char* kDropLines =
    "DELETE FROM batch_lines WHERE batch_id = ?1 AND line IN "
    "(SELECT line FROM batch_lines WHERE batch_id = ?1 ORDER BY line LIMIT ?2)";
constexpr const char* kDropErrors =
    "DELETE FROM batch_errors WHERE batch_id = ?1 AND line IN "
    "(SELECT line FROM batch_errors WHERE batch_id = ?1 ORDER BY line LIMIT ?2)";
constexpr const char* kDropBatch = "DELETE FROM batches WHERE batch_id = ?1";

void save_counts(SqliteDb& db, const BatchRow& b) {
  run(db, kAdvance, b.batch_id, b.read_to, b.lines, b.created, b.existing, b.cached, b.rejected);
}

}  // namespace

BatchOpened SqliteStore::batch_begin(const NewBatch& batch, UnixMs now) {
  const KeyBlob fingerprint = key_blob(batch.fingerprint);
  auto known = batch.client_key.empty() ? batches_.unfinished(fingerprint)
                                        : batches_.by_key(batch.tenant, batch.client_key);
  // Without a key nobody says that it is the same batch, so it has to be of the same kind.
  if (known && batch.client_key.empty() && known->stage_id.has_value() != batch.atomic)
    known.reset();
  if (known) {
    Query query(db_, kFingerprint, known->batch_id);
    AIQ_CHECK(query.step());
    const bool same = query.hex(0) == batch.fingerprint;
    return {same ? BatchOpened::Kind::joined : BatchOpened::Kind::key_conflict, *known};
  }
  std::optional<std::int64_t> stage;
  if (batch.atomic) stage = stage_begin("batch", now);
  run(db_, kInsertBatch, batch.tenant, TextOrNull{batch.client_key}, fingerprint,
      batch.atomic ? "staging" : "loading", stage, now, batch.correlation_id, batch.actor);
  return {BatchOpened::Kind::made, batches_.row(db_.last_id()).value()};
}

void SqliteStore::refuse_line(BatchRow& batch, std::int64_t line, std::string_view code,
                              std::string_view message) {
  run(db_, kInsertError, batch.batch_id, line, code, message);
  ++batch.rejected;
}

// The job of a line, by the way of every submit; nullopt when it was refused.
std::optional<SubmitReceipt> SqliteStore::submit_line(BatchRow& batch, const BatchLine& line,
                                                      UnixMs now) {
  NewSubmission submission = *line.submission;
  submission.batch_id = batch.batch_id;
  submission.line = line.line;
  SubmitReceipt receipt = submit(submission, now);
  switch (receipt.outcome) {
    case SubmitReceipt::Outcome::created:
      ++batch.created;
      return receipt;
    case SubmitReceipt::Outcome::existing:
      ++batch.existing;
      return receipt;
    case SubmitReceipt::Outcome::cached:
      ++batch.cached;
      return receipt;
    case SubmitReceipt::Outcome::not_cached:
      refuse_line(batch, line.line, "invalid_request", "no fresh answer is in the cache");
      return std::nullopt;
    case SubmitReceipt::Outcome::key_conflict:
      break;
  }
  AIQ_CHECK(false);  // lines have no client keys
}

void SqliteStore::take_line(BatchRow& batch, const BatchLine& line, UnixMs now,
                            std::vector<std::string>& staged) {
  ++batch.lines;
  if (!line.code.empty()) {
    refuse_line(batch, line.line, line.code, line.message);
    return;
  }
  {
    Query query(db_, kHasCustomId, batch.batch_id, line.custom_id);
    if (query.step()) {
      const std::string message = "line " + std::to_string(query.i64(0)) + " has this custom_id";
      refuse_line(batch, line.line, "duplicate_custom_id", message);
      return;
    }
  }
  if (batch.state == BatchState::staging) {
    run(db_, kInsertLine, batch.batch_id, line.line, line.custom_id, std::nullopt, std::nullopt);
    staged.push_back(line.staged);
    return;
  }
  const auto receipt = submit_line(batch, line, now);
  if (!receipt) return;
  run(db_, kInsertLine, batch.batch_id, line.line, line.custom_id, receipt->job_id,
      receipt->submission_id);
}

std::optional<BatchRow> SqliteStore::batch_append(const BatchSlice& slice, UnixMs now) {
  auto batch = batches_.row(slice.batch_id);
  if (!batch) return std::nullopt;
  const bool takes = batch->state == BatchState::staging ||
                     (batch->state == BatchState::loading && !batch->stage_id);
  // A slice behind a gap comes from a reader that lost its place: it asks again from read_to on.
  if (!takes || slice.last <= batch->read_to || slice.first > batch->read_to + 1) return batch;
  std::vector<std::string> staged;
  for (const BatchLine& line : slice.lines) {
    if (line.line > batch->read_to) take_line(*batch, line, now, staged);
  }
  if (!staged.empty()) stage_append(*batch->stage_id, staged);
  batch->read_to = slice.last;
  save_counts(db_, *batch);
  return batch;
}

std::optional<BatchRow> SqliteStore::batch_finish(std::int64_t batch_id, UnixMs now) {
  const auto batch = batches_.row(batch_id);
  if (!batch) return std::nullopt;
  if (batch->state == BatchState::staging && batch->rejected == 0) {
    stage_publish(*batch->stage_id, now);
    run(db_, kPublish, batch_id);
  } else if (batch->state == BatchState::loading && !batch->stage_id) {
    run(db_, kLoaded, batch_id, now);
  }
  return batches_.row(batch_id);
}

std::optional<std::int64_t> SqliteStore::batch_to_load() {
  Query query(db_, kPublished);
  if (!query.step()) return std::nullopt;
  return query.i64(0);
}

std::optional<BatchRow> SqliteStore::batch_load(std::int64_t batch_id,
                                                const std::vector<BatchLine>& lines, UnixMs now) {
  auto batch = batches_.row(batch_id);
  if (!batch || batch->state != BatchState::loading || !batch->stage_id) return batch;
  for (const BatchLine& line : lines) {
    const auto receipt = submit_line(*batch, line, now);
    AIQ_CHECK(receipt.has_value());
    const int set = run(db_, kSetJob, batch_id, line.line, receipt->job_id, receipt->submission_id);
    AIQ_CHECK(set == 1);
  }
  save_counts(db_, *batch);
  const bool gone =
      stage_drop(*batch->stage_id, lines.empty() ? 1 : static_cast<int>(lines.size()));
  if (gone) run(db_, kLoaded, batch_id, now);
  return batches_.row(batch_id);
}

bool SqliteStore::batch_drop(std::int64_t batch_id, int limit) {
  const auto batch = batches_.row(batch_id);
  if (!batch || batch->state != BatchState::staging) return true;
  run(db_, kGiveUp, batch_id);
  if (run(db_, kDropLines, batch_id, limit) >= limit) return false;
  if (run(db_, kDropErrors, batch_id, limit) >= limit) return false;
  if (batch->stage_id && !stage_drop(*batch->stage_id, limit)) return false;
  run(db_, kDropBatch, batch_id);
  return true;
}

bool SqliteStore::drop_staging_batches(int limit) {
  std::int64_t batch_id = 0;
  {
    Query query(db_, kStaging);
    if (!query.step()) return true;
    batch_id = query.i64(0);
  }
  if (!batch_drop(batch_id, limit)) return false;
  Query query(db_, kStaging);
  return !query.step();
}

}  // namespace aiq
