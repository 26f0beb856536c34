// The price book. `price import` is price.add in slices of rows that the command line read from a
// file; see money/price_import.h.

#include <algorithm>
#include <tuple>

#include "core/base/names.h"
#include "core/money/usage_lines.h"
#include "core/ops/op_groups.h"
#include "core/store/price_book.h"

namespace aiq {
namespace {

// Rows that one transaction adds: some 20 ms.
constexpr std::size_t kAddRowsMax = 500;
constexpr std::size_t kModelBytesMax = 200;
constexpr std::int64_t kTokensMax = 1'000'000'000'000;

Json json_price(const PriceRow& row) {
  return {{"price_id", json_id(row.price_id)},
          {"vendor", row.vendor},
          {"model", json_text(row.model)},
          {"meter", row.meter},
          {"currency", row.currency},
          {"above_tokens", row.above_tokens},
          {"price_per_million",
           row.unit_pico ? Json(format_price_per_million(*row.unit_pico)) : Json(nullptr)},
          {"effective_from", json_time(row.effective_from)},
          {"origin", row.origin},
          {"actor", row.actor},
          {"created_at", json_time(row.created_at)}};
}

Expected<Json, Failure> list_prices(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"vendor", "model", "meter", "at", "all", "limit", "after"});
  PriceFilter filter{
      .vendor = in.text("vendor"), .model = in.text("model"), .meter = in.text("meter")};
  const auto at = in.instant("at");
  const bool all = in.flag("all");
  if (at && all) in.problem("contradiction", "a time and all rows exclude each other");
  if (!all) filter.at = at.value_or(env.clock.wall_ms());
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const PriceRow& row : reader.prices().list(filter, page)) {
    rows.push_back(json_price(row));
    last = row.price_id;
  }
  return json_page(std::move(rows), page, last);
}

Failure no_price(const std::string& vendor, const std::string& model, UnixMs at) {
  return {Exit::not_found, "no_such_price",
          "the price book has no price of " + model + (vendor.empty() ? "" : " at " + vendor) +
              " for " + format_rfc3339(at),
          "`aiq price list --all` shows every row; `aiq price set` adds one"};
}

Expected<Json, Failure> show_price(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"model", "vendor", "at"});
  const std::string model = in.required_text("model");
  const std::string vendor = in.text("vendor");
  const UnixMs at = in.instant("at").value_or(env.clock.wall_ms());
  if (in.failure()) return Unexpected{*in.failure()};
  PriceBook& book = reader.prices();
  const std::string name = vendor.empty() ? model : book.name_of(vendor, model).value_or(model);
  std::vector<PriceRow> rows =
      book.list({.vendor = vendor, .model = name, .meter = "", .at = at}, {.limit = 1000});
  if (rows.empty()) return Unexpected{no_price(vendor, model, at)};
  std::stable_sort(rows.begin(), rows.end(), [](const PriceRow& a, const PriceRow& b) {
    return std::tie(a.vendor, a.meter, a.above_tokens) <
           std::tie(b.vendor, b.meter, b.above_tokens);
  });
  Json prices = Json::array();
  for (const PriceRow& row : rows)
    prices.push_back(json_price(row));
  return Json{{"model", name},
              {"vendor", json_text(vendor)},
              {"at", json_time(at)},
              {"prices", std::move(prices)}};
}

void read_price(Input& in, const std::string& text, PriceRow& row) {
  if (text == "none") return;  // known to have no price
  const auto pico = parse_price_per_million(text);
  if (pico && *pico >= 0) {
    row.unit_pico = *pico;
  } else if (!pico && pico.error() == DecimalError::not_representable) {
    in.problem("price_not_representable",
               text + " per million has more than six decimals, which can't be charged exactly");
  } else if (!pico && pico.error() == DecimalError::overflow) {
    in.problem("amount_overflow", text + " per million is beyond what an amount can hold");
  } else {
    in.problem("invalid_price", text + " is no price: a decimal number such as 2.50, or none");
  }
}

Expected<PriceRow, Failure> row_of(const Json& json) {
  Input in(json, {"vendor", "model", "meter", "currency", "above_tokens", "price_per_million",
                  "effective_from"});
  PriceRow row;
  row.vendor = in.required_text("vendor");
  row.model = in.required_text("model");
  row.meter = in.required_text("meter");
  row.currency = in.maybe_text("currency").value_or("USD");
  row.above_tokens = in.whole("above_tokens", 0, kTokensMax).value_or(0);
  const auto from = in.instant("effective_from");
  if (!from) in.problem("missing_option", "effective_from is missing");
  row.effective_from = from.value_or(0);
  read_price(in, in.required_text("price_per_million"), row);
  if (!row.vendor.empty() && !is_label_name(row.vendor))
    in.problem("invalid_vendor", row.vendor + " is no name of a vendor");
  if (!is_plain_text(row.model, kModelBytesMax))
    in.problem("invalid_model", row.model + " is no name of a model");
  if (!row.meter.empty() && !is_meter_name(row.meter))
    in.problem("invalid_meter", row.meter + " is no meter: lower-case letters, digits and _");
  if (!is_currency(row.currency))
    in.problem("invalid_currency", row.currency + " is no currency: three capital letters");
  if (in.failure()) return Unexpected{*in.failure()};
  return row;
}

Expected<OpResult, Failure> add_rows(Store& store, std::vector<PriceRow> rows) {
  PriceBook& book = store.prices();
  Json added = Json::array();
  std::int64_t unchanged = 0;
  for (PriceRow& row : rows) {
    // What an operator sets holds for the model as the book already names it.
    if (row.origin == "set") row.model = book.name_of(row.vendor, row.model).value_or(row.model);
    const auto id = book.holds(row) ? std::nullopt : book.add(row);
    if (!id) {
      ++unchanged;
      continue;
    }
    row.price_id = *id;
    added.push_back(json_price(row));
  }
  OpResult result;
  result.out = {{"imported", added.size()}, {"unchanged", unchanged}};
  if (!rows.empty() && rows.front().origin == "set") result.out["prices"] = std::move(added);
  return result;
}

Expected<WriteStep, Failure> prepare_add(const OpEnv& env, const Json& json) {
  Input in(json, {"rows", "origin"});
  const std::string origin = in.required_text("origin");
  if (origin != "set" && origin != "litellm" && origin != "aiq")
    in.problem("invalid_origin", origin + " is none of set, litellm, aiq");
  if (!json.contains("rows") || !json.at("rows").is_array() || json.at("rows").size() > kAddRowsMax)
    in.problem("invalid_rows",
               "rows is no array of at most " + std::to_string(kAddRowsMax) + " prices");
  if (in.failure()) return Unexpected{*in.failure()};
  std::vector<PriceRow> rows;
  for (const Json& item : json.at("rows")) {
    auto row = row_of(item);
    if (!row) return Unexpected{std::move(row).error()};
    row->origin = origin;
    row->actor = env.actor;
    row->created_at = env.clock.wall_ms();
    rows.push_back(*std::move(row));
  }
  return WriteStep([rows = std::move(rows)](Store& store) { return add_rows(store, rows); });
}

constexpr Op kOps[] = {
    {.name = "price.add", .prepare = prepare_add, .priority = WritePriority::maintenance},
    {.name = "price.list", .read = list_prices},
    {.name = "price.show", .read = show_price},
};

}  // namespace

std::span<const Op> price_ops() {
  return kOps;
}

}  // namespace aiq
