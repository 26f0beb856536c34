#pragma once
// PriceBook over SQLite, on the connection of a reader or of the writer.

#include "core/store/price_book.h"
#include "core/store/sqlite_db.h"

namespace aiq {

class SqlitePrices final : public PriceBook {
 public:
  explicit SqlitePrices(SqliteDb& db) : db_(db) {}

  std::optional<Price> price_at(const std::string& vendor, const std::string& model,
                                const std::string& meter, UnixMs at,
                                std::optional<std::int64_t> context_tokens) override;
  std::optional<std::string> name_of(const std::string& vendor, const std::string& model) override;
  std::vector<PriceRow> list(const PriceFilter& filter, const Page& page) override;
  std::optional<PriceId> add(const PriceRow& row) override;
  bool holds(const PriceRow& row) override;

 private:
  SqliteDb& db_;
};

}  // namespace aiq
