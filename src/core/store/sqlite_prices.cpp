// prices: the price book.

#include "core/store/sqlite_prices.h"

#include <algorithm>

#include "core/store/sqlite_queries.h"

namespace aiq {
namespace {

#define AIQ_PRICE_SERIES "model = ?2 AND meter = ?3 AND vendor = ?1 AND effective_from <= ?4 "
#define AIQ_LATEST_FIRST "ORDER BY effective_from DESC, price_id DESC LIMIT 1"

// The step that the request reaches, among the series that hold at the time.
constexpr const char* kTier =
    "SELECT max(above_tokens) FROM prices INDEXED BY prices_of_model WHERE " AIQ_PRICE_SERIES
    "AND above_tokens < ?5";
constexpr const char* kHolds =
    "SELECT price_id, unit_pico, currency, effective_from FROM prices INDEXED BY prices_of_model "
    "WHERE " AIQ_PRICE_SERIES "AND above_tokens = ?5 " AIQ_LATEST_FIRST;
constexpr const char* kKnown = "SELECT 1 FROM prices WHERE vendor = ?1 AND model = ?2 LIMIT 1";
constexpr const char* kVendors =
    "SELECT DISTINCT vendor FROM prices WHERE model = ?1 AND meter = ?2 AND effective_from <= ?3";
constexpr const char* kInsert =
    "INSERT INTO prices (vendor, model, meter, currency, above_tokens, unit_pico, effective_from, "
    "origin, actor, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
constexpr const char* kList =
    "SELECT price_id, vendor, model, meter, currency, above_tokens, unit_pico, effective_from, "
    "origin, actor, created_at FROM prices p WHERE price_id < ?1 "
    "AND (?2 IS NULL OR vendor = ?2) AND (?3 IS NULL OR model = ?3) "
    "AND (?4 IS NULL OR meter = ?4) "
    "AND (?5 IS NULL OR (effective_from <= ?5 AND NOT EXISTS ("
    "SELECT 1 FROM prices n WHERE n.model = p.model AND n.meter = p.meter AND "
    "n.vendor = p.vendor AND n.above_tokens = p.above_tokens AND n.effective_from <= ?5 AND "
    "(n.effective_from, n.price_id) > (p.effective_from, p.price_id)))) "
    "ORDER BY price_id DESC LIMIT ?6";

// A request without a known size is an ordinary one: of the steps, only the first holds for it.
constexpr std::int64_t kBelowEveryStep = 1;

struct Found {
  bool series = false;  // one holds at the time, though perhaps without a price
  std::optional<Price> price;
};

Found find(SqliteDb& db, const std::string& vendor, const std::string& model,
           const std::string& meter, UnixMs at, std::int64_t context_tokens) {
  std::int64_t tier = 0;
  {
    // A step counts from above_tokens + 1 on; 0 stands for every request.
    Query query(db, kTier, vendor, model, meter, at, context_tokens);
    if (!query.step() || query.null(0)) return {};
    tier = query.i64(0);
  }
  Query query(db, kHolds, vendor, model, meter, at, tier);
  if (!query.step() || query.null(1)) return {true, std::nullopt};
  return {true, Price{query.i64(0), query.i64(1), query.text(2)}};
}

std::string prefixed(const std::string& vendor, const std::string& model) {
  return vendor + "/" + model;
}

std::optional<Price> holding(SqliteDb& db, const std::string& vendor, const std::string& model,
                             const std::string& meter, UnixMs at, std::int64_t context_tokens) {
  Found found = find(db, vendor, model, meter, at, context_tokens);
  if (!found.series) found = find(db, vendor, prefixed(vendor, model), meter, at, context_tokens);
  return found.price;
}

}  // namespace

std::optional<Price> SqlitePrices::price_at(const std::string& vendor, const std::string& model,
                                            const std::string& meter, UnixMs at,
                                            std::optional<std::int64_t> context_tokens) {
  const std::int64_t context = std::max(context_tokens.value_or(0), kBelowEveryStep);
  if (!vendor.empty()) return holding(db_, vendor, model, meter, at, context);
  std::vector<std::string> vendors;
  {
    Query query(db_, kVendors, model, meter, at);
    while (query.step())
      vendors.push_back(query.text(0));
  }
  std::optional<Price> common;
  for (const std::string& name : vendors) {
    const auto price = holding(db_, name, model, meter, at, context);
    if (!price) return std::nullopt;
    if (common && (common->unit_pico != price->unit_pico || common->currency != price->currency))
      return std::nullopt;
    if (!common) common = price;
  }
  return common;
}

std::optional<std::string> SqlitePrices::name_of(const std::string& vendor,
                                                 const std::string& model) {
  for (const std::string& name : {model, prefixed(vendor, model)}) {
    Query query(db_, kKnown, vendor, name);
    if (query.step()) return name;
  }
  return std::nullopt;
}

bool SqlitePrices::holds(const PriceRow& row) {
  Query query(db_, kHolds, row.vendor, row.model, row.meter, row.effective_from, row.above_tokens);
  return query.step() && query.opt_i64(1) == row.unit_pico && query.view(2) == row.currency;
}

std::optional<PriceId> SqlitePrices::add(const PriceRow& row) {
  {
    Query query(db_, kHolds, row.vendor, row.model, row.meter, row.effective_from,
                row.above_tokens);
    if (query.step() && query.opt_i64(1) == row.unit_pico && query.view(2) == row.currency &&
        query.i64(3) == row.effective_from)
      return std::nullopt;
  }
  run(db_, kInsert, row.vendor, row.model, row.meter, row.currency, row.above_tokens, row.unit_pico,
      row.effective_from, row.origin, row.actor, row.created_at);
  return db_.last_id();
}

std::vector<PriceRow> SqlitePrices::list(const PriceFilter& filter, const Page& page) {
  std::vector<PriceRow> rows;
  Query query(db_, kList, first_id_below(page), TextOrNull{filter.vendor}, TextOrNull{filter.model},
              TextOrNull{filter.meter}, filter.at, page.limit);
  while (query.step()) {
    PriceRow& row = rows.emplace_back();
    row.price_id = query.i64(0);
    row.vendor = query.text(1);
    row.model = query.text(2);
    row.meter = query.text(3);
    row.currency = query.text(4);
    row.above_tokens = query.i64(5);
    row.unit_pico = query.opt_i64(6);
    row.effective_from = query.i64(7);
    row.origin = query.text(8);
    row.actor = query.text(9);
    row.created_at = query.i64(10);
  }
  return rows;
}

}  // namespace aiq
