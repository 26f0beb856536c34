#pragma once
// CostLedger over SQLite, on the connection of a reader or of the writer.

#include "core/store/cost_ledger.h"
#include "core/store/sqlite_db.h"

namespace aiq {

class SqliteLedger final : public CostLedger {
 public:
  explicit SqliteLedger(SqliteDb& db) : db_(db) {}

 private:
  [[maybe_unused]] SqliteDb& db_;
};

}  // namespace aiq
