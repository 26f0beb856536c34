#pragma once
// BatchReader over SQLite, on the connection of a reader or of the writer.

#include "core/store/batches.h"
#include "core/store/sqlite_db.h"

namespace aiq {

class SqliteBatches final : public BatchReader {
 public:
  explicit SqliteBatches(SqliteDb& db) : db_(db) {}

  std::optional<BatchRow> find(std::int64_t batch_id) override;
  std::vector<BatchRow> list(const Page& page) override;
  std::vector<BatchError> errors(std::int64_t batch_id, std::int64_t after, int limit) override;
  std::vector<BatchLineRow> lines(std::int64_t batch_id, std::int64_t after, int limit) override;
  BatchCounts count(std::int64_t batch_id, std::int64_t after, int limit) override;
  Results results(std::int64_t batch_id, std::int64_t after, int limit,
                  std::int64_t max_bytes) override;

  // For the writer, without a time limit.
  std::optional<BatchRow> row(std::int64_t batch_id);
  std::optional<BatchRow> by_key(const std::string& tenant, const std::string& client_key);
  std::optional<BatchRow> unfinished(const KeyBlob& fingerprint);

 private:
  void explain_failure(BatchResult& result);
  void read_answer(BatchResult& result, std::int64_t result_id);

  SqliteDb& db_;
};

}  // namespace aiq
