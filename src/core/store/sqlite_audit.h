#pragma once
// CostAudit over SQLite, on the connection of a reader or of the writer.

#include "core/store/cost_audit.h"
#include "core/store/sqlite_db.h"

namespace aiq {

class SqliteAudit final : public CostAudit {
 public:
  explicit SqliteAudit(SqliteDb& db) : db_(db) {}

 private:
  [[maybe_unused]] SqliteDb& db_;
};

}  // namespace aiq
