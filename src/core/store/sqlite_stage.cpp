// stages, stage_rows: long work collected in slices and made visible by one short commit.

#include "core/base/check.h"
#include "core/store/sqlite_store.h"

namespace aiq {
namespace {

constexpr const char* kInsertStage = "INSERT INTO stages (purpose, created_at) VALUES (?1, ?2)";
constexpr const char* kIsOpen = "SELECT 1 FROM stages WHERE stage_id = ?1 AND published_at IS NULL";
constexpr const char* kLastSeq = "SELECT max(seq) FROM stage_rows WHERE stage_id = ?1";
constexpr const char* kInsertRow =
    "INSERT INTO stage_rows (stage_id, seq, body) VALUES (?1, ?2, ?3)";
constexpr const char* kPublish =
    "UPDATE stages SET published_at = ?2 WHERE stage_id = ?1 AND published_at IS NULL";
constexpr const char* kRows =
    "SELECT r.seq, r.body FROM stages s JOIN stage_rows r ON r.stage_id = s.stage_id "
    "WHERE s.stage_id = ?1 AND s.published_at IS NOT NULL AND r.seq > ?2 "
    "ORDER BY r.seq LIMIT ?3";
constexpr const char* kDropRows =
    "DELETE FROM stage_rows WHERE stage_id = ?1 AND seq IN "
    "(SELECT seq FROM stage_rows WHERE stage_id = ?1 ORDER BY seq LIMIT ?2)";
constexpr const char* kDropStage = "DELETE FROM stages WHERE stage_id = ?1";
constexpr const char* kUnpublished =
    "SELECT stage_id FROM stages WHERE published_at IS NULL ORDER BY stage_id LIMIT 1";

}  // namespace

std::int64_t SqliteStore::stage_begin(const std::string& purpose, UnixMs now) {
  run(db_, kInsertStage, purpose, now);
  return db_.last_id();
}

void SqliteStore::stage_append(std::int64_t stage_id, const std::vector<std::string>& rows) {
  {
    Query query(db_, kIsOpen, stage_id);
    if (!query.step()) throw std::logic_error("rows are added to a stage that is not open");
  }
  std::int64_t seq = 0;
  {
    Query query(db_, kLastSeq, stage_id);
    if (query.step()) seq = query.i64(0);
  }
  for (const std::string& row : rows)
    run(db_, kInsertRow, stage_id, ++seq, BlobView{row});
}

void SqliteStore::stage_publish(std::int64_t stage_id, UnixMs now) {
  if (run(db_, kPublish, stage_id, now) != 1) {
    throw std::logic_error("a stage is published that is not open");
  }
}

std::vector<std::pair<std::int64_t, std::string>> SqliteStore::stage_rows(std::int64_t stage_id,
                                                                          std::int64_t after,
                                                                          int limit) {
  std::vector<std::pair<std::int64_t, std::string>> rows;
  Query query(db_, kRows, stage_id, after, limit);
  while (query.step())
    rows.emplace_back(query.i64(0), query.text(1));
  return rows;
}

bool SqliteStore::stage_drop(std::int64_t stage_id, int limit) {
  // Fewer than asked for: these were the last.
  if (run(db_, kDropRows, stage_id, limit) >= limit) return false;
  run(db_, kDropStage, stage_id);
  return true;
}

bool SqliteStore::drop_unpublished_stages(int limit) {
  std::int64_t stage_id = 0;
  {
    Query query(db_, kUnpublished);
    if (!query.step()) return true;
    stage_id = query.i64(0);
  }
  if (!stage_drop(stage_id, limit)) return false;
  Query query(db_, kUnpublished);
  return !query.step();
}

}  // namespace aiq
