#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "core/base/duration.h"
#include "core/base/names.h"
#include "core/money/json_object.h"
#include "core/money/price_import.h"
#include "core/money/usage_lines.h"

namespace aiq {
namespace {

constexpr std::size_t kModelBytesMax = 200;

Failure bad_line(std::size_t number, const std::string& what) {
  return {Exit::usage, "invalid_price_file", "line " + std::to_string(number) + ": " + what,
          "expected are rows as `aiq price list --json` prints them; nothing was written"};
}

std::optional<std::int64_t> whole_of(std::string_view literal) {
  const std::string text =
      is_json_string(literal) ? decode_json_string(literal) : std::string(literal);
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out;
}

// What is wrong with the row; "" = nothing.
std::string read_names(const JsonObject& object, PriceRow& row) {
  row.vendor = object.text("vendor").value_or("");
  row.model = object.text("model").value_or("");
  row.meter = object.text("meter").value_or("");
  row.currency = object.text("currency").value_or("");
  if (!is_label_name(row.vendor)) return "vendor is missing or no name";
  if (row.model.empty() || !is_plain_text(row.model, kModelBytesMax))
    return "model is missing or no name";
  if (!is_meter_name(row.meter)) return "meter is missing or no name";
  if (!is_currency(row.currency)) return "currency is missing or not three capital letters";
  return "";
}

std::string read_values(const JsonObject& object, std::optional<UnixMs> effective_from,
                        PriceRow& row) {
  if (const auto above = object.literal("above_tokens")) {
    const auto tokens = whole_of(*above);
    if (!tokens) return "above_tokens is no whole number";
    row.above_tokens = *tokens;
  }
  if (const auto id = object.literal("price_id")) row.price_id = whole_of(*id).value_or(0);
  const auto price = object.literal("price_per_million");
  if (price) {
    const auto pico = parse_price_per_million(is_json_string(*price) ? decode_json_string(*price)
                                                                     : std::string(*price));
    if (!pico || *pico < 0) return "price_per_million is no price of at most six decimals";
    row.unit_pico = *pico;
  } else if (std::none_of(object.members().begin(), object.members().end(),
                          [](const auto& member) { return member.first == "price_per_million"; })) {
    return "price_per_million is missing (null: known to have no price)";
  }
  const auto from = parse_rfc3339(object.text("effective_from").value_or(""));
  if (!from && !effective_from) return "effective_from is missing or no time";
  row.effective_from = effective_from ? *effective_from : *from;
  return "";
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Rows that a later one of the same series and time replaced never hold again.
std::vector<PriceRow> only_last(std::vector<PriceRow> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const PriceRow& a, const PriceRow& b) { return a.price_id < b.price_id; });
  std::map<std::tuple<UnixMs, std::string, std::string, std::string, std::int64_t>, PriceRow> last;
  for (PriceRow& row : rows) {
    row.price_id = 0;
    auto key =
        std::make_tuple(row.effective_from, row.vendor, row.model, row.meter, row.above_tokens);
    last.insert_or_assign(std::move(key), std::move(row));
  }
  std::vector<PriceRow> out;
  for (auto& [key, row] : last)
    out.push_back(std::move(row));
  return out;
}

}  // namespace

Expected<PriceFile, Failure> read_aiq_prices(std::string_view text,
                                             std::optional<UnixMs> effective_from) {
  const std::vector<std::string_view> lines = lines_of(text);
  std::vector<PriceRow> rows;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto object = JsonObject::read(lines[i]);
    if (!object) return Unexpected{bad_line(i + 1, object.error().message)};
    PriceRow& row = rows.emplace_back();
    row.origin = "aiq";
    std::string wrong = read_names(*object, row);
    if (wrong.empty()) wrong = read_values(*object, effective_from, row);
    if (!wrong.empty()) return Unexpected{bad_line(i + 1, wrong)};
  }
  PriceFile file;
  file.rows = only_last(std::move(rows));
  return file;
}

}  // namespace aiq
