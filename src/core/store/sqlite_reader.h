#pragma once
// The read-only side: a connection that never writes and never makes a checkpoint.

#include <string>

#include "core/store/sqlite_queries.h"

namespace aiq {

class SqliteReader final : public SqliteReads<Reader> {
 public:
  // Throws StoreError: missing, version, readonly, corrupt.
  explicit SqliteReader(const std::string& path, DurationMs read_limit_ms = kReadLimitMs);
};

}  // namespace aiq
