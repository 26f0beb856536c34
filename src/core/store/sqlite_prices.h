#pragma once
// PriceBook over SQLite, on the connection of a reader or of the writer.

#include "core/store/price_book.h"
#include "core/store/sqlite_db.h"

namespace aiq {

class SqlitePrices final : public PriceBook {
 public:
  explicit SqlitePrices(SqliteDb& db) : db_(db) {}

 private:
  [[maybe_unused]] SqliteDb& db_;
};

}  // namespace aiq
