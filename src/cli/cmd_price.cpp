// aiq price import, set, list, show

#include "cli/commands.h"
#include "cli/csv.h"
#include "cli/render.h"
#include "cli/text.h"
#include "cli/values.h"
#include "core/money/price_import.h"

namespace aiq::cli {
namespace {

constexpr std::size_t kSlice = 500;                // rows per price.add
constexpr std::int64_t kFileBytesMax = 256 << 20;  // LiteLLM's file has 1 MB

std::string price_text(const Json& row) {
  const Json& price = row.at("price_per_million");
  return price.is_null() ? "none" : price.get<std::string>();
}

std::string above_text(const Json& row) {
  const auto above = row.at("above_tokens").get<std::int64_t>();
  return above == 0 ? "-" : std::to_string(above);
}

std::vector<Cell> price_cells(const Json& row) {
  return {member_text(row, "price_id"),
          member_text(row, "vendor"),
          member_text(row, "model"),
          member_text(row, "meter"),
          above_text(row),
          price_text(row),
          member_text(row, "currency"),
          member_text(row, "effective_from"),
          member_text(row, "origin")};
}

std::vector<Column> price_columns() {
  return {{"ID", true},
          {"VENDOR", false, true},
          {"MODEL", false, true},
          {"METER"},
          {"ABOVE", true},
          {"PER MILLION", true},
          {"CURRENCY"},
          {"FROM"},
          {.title = "ORIGIN", .extra = true}};
}

// ---- import

struct ImportOptions {
  Text file, format, effective_from;
  bool allow_outliers = false;
};

PriceFile read_file_of(const ImportOptions& o, UnixMs now) {
  const std::string format = o.format.value_or("litellm");
  if (format != "litellm" && format != "aiq")
    fail_usage("invalid_format", "--format " + format + " is neither litellm nor aiq", "");
  const std::string text = read_input("FILE", *o.file, kFileBytesMax);
  std::optional<UnixMs> from;
  if (o.effective_from) from = time_value("--effective-from", *o.effective_from);
  auto file = format == "litellm" ? read_litellm_prices(text, {.effective_from = from.value_or(now),
                                                               .allow_outliers = o.allow_outliers})
                                  : read_aiq_prices(text, from);
  if (!file) throw CommandFailed(std::move(file).error());
  return *std::move(file);
}

Json input_row(const PriceRow& row) {
  return {{"vendor", row.vendor},
          {"model", row.model},
          {"meter", row.meter},
          {"currency", row.currency},
          {"above_tokens", row.above_tokens},
          {"price_per_million",
           row.unit_pico ? format_price_per_million(*row.unit_pico) : std::string("none")},
          {"effective_from", format_rfc3339(row.effective_from)}};
}

void add_in_slices(Session& session, const std::vector<PriceRow>& rows, Json& totals) {
  for (std::size_t begin = 0; begin < rows.size(); begin += kSlice) {
    Json slice = Json::array();
    const std::size_t end = std::min(begin + kSlice, rows.size());
    for (std::size_t i = begin; i < end; ++i)
      slice.push_back(input_row(rows[i]));
    const Json answer =
        session.call("price.add", {{"rows", std::move(slice)}, {"origin", rows.front().origin}});
    for (const char* name : {"imported", "unchanged"})
      totals[name] = totals[name].get<std::int64_t>() + answer.at(name).get<std::int64_t>();
    session.out.progress(std::to_string(end) + " of " + std::to_string(rows.size()) + " prices");
  }
  session.out.progress("");
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

void print_problems(Output& out, const PriceFile& file) {
  Table table = out.table({{"MODEL", false, true}, {"KEY", false, true}, {"VALUE"}, {"CODE"}});
  for (const PriceProblem& problem : file.problems)
    table.add({printable(problem.model), problem.key.empty() ? "-" : printable(problem.key),
               problem.value.empty() ? "-" : printable(problem.value), problem.code});
  if (!table.empty()) out.text(table.take());
}

Exit import(Session& session, const ImportOptions& o) {
  const PriceFile file = read_file_of(o, session.clock().wall_ms());
  Json totals = {{"imported", 0},
                 {"unchanged", 0},
                 {"quarantined", file.quarantined},
                 {"skipped", file.skipped}};
  add_in_slices(session, file.rows, totals);
  Output& out = session.out;
  if (!out.json()) {
    print_problems(out, file);
    for (const auto& [name, count] : totals.items())
      out.line(name + ": " + count.dump());
  } else {
    Json problems = Json::array();
    for (const PriceProblem& problem : file.problems)
      problems.push_back({{"model", problem.model},
                          {"key", text_or_null(problem.key)},
                          {"value", text_or_null(problem.value)},
                          {"code", problem.code}});
    totals["problems"] = std::move(problems);
    out.object(totals);
  }
  return Exit::ok;
}

// ---- set

struct SetOptions {
  Text vendor, model, currency, effective_from, above_tokens;
  Texts meters;
};

Exit set(Session& session, const SetOptions& o) {
  if (!o.vendor || !o.model || o.meters.empty())
    fail_usage("missing_option", "a price has a vendor, a model and a meter",
               "give --vendor V --model M --meter input=2.50, per million units");
  const UnixMs from = o.effective_from ? time_value("--effective-from", *o.effective_from)
                                       : session.clock().wall_ms();
  Json rows = Json::array();
  for (const std::string& meter : o.meters) {
    const std::size_t equals = meter.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == meter.size())
      fail_usage("invalid_meter", "--meter " + meter + " is not METER=PRICE",
                 "for example --meter input=2.50, or --meter input=none");
    Json row = {{"vendor", *o.vendor},
                {"model", *o.model},
                {"meter", meter.substr(0, equals)},
                {"price_per_million", meter.substr(equals + 1)},
                {"effective_from", format_rfc3339(from)}};
    set_text(row, "currency", o.currency);
    if (o.above_tokens)
      row["above_tokens"] = whole_value("--above-tokens", *o.above_tokens, 1, 1'000'000'000'000);
    rows.push_back(std::move(row));
  }
  const Json answer = session.call("price.add", {{"rows", std::move(rows)}, {"origin", "set"}});
  Output& out = session.out;
  if (out.json()) {
    out.object(answer);
    return Exit::ok;
  }
  Table table = out.table(price_columns());
  for (const Json& row : answer.at("prices"))
    table.add(price_cells(row));
  if (!table.empty()) out.text(table.take());
  if (answer.at("prices").empty()) out.note("the price book says so already; nothing was added");
  return Exit::ok;
}

// ---- list, show

struct ListOptions {
  Text vendor, model, meter, at;
  bool all = false;
  PageOptions pages;
  FormatOption format;
};

Exit list(Session& session, const ListOptions& o) {
  Json in = Json::object();
  set_text(in, "vendor", o.vendor);
  set_text(in, "model", o.model);
  set_text(in, "meter", o.meter);
  if (o.at) in["at"] = format_rfc3339(time_value("--at", *o.at));
  set_flag(in, "all", o.all);
  ListSpec spec = list_spec(o.pages, "price.list", std::move(in));
  spec.format = o.format.get(session);
  spec.members = {
      "price_id",          "vendor",         "model",  "meter", "currency",  "above_tokens",
      "price_per_million", "effective_from", "origin", "actor", "created_at"};
  spec.columns = price_columns();
  spec.cells = price_cells;
  spec.nothing = "no price matches";
  return print_formatted(session, std::move(spec));
}

struct ShowOptions {
  Text model, vendor, at;
};

Exit show(Session& session, const ShowOptions& o) {
  Json in = {{"model", *o.model}};
  set_text(in, "vendor", o.vendor);
  if (o.at) in["at"] = format_rfc3339(time_value("--at", *o.at));
  const Json answer = session.call("price.show", in);
  Output& out = session.out;
  if (out.json()) {
    out.object(answer);
    return Exit::ok;
  }
  Table table = out.table(price_columns());
  for (const Json& row : answer.at("prices"))
    table.add(price_cells(row));
  out.text(table.take());
  return Exit::ok;
}

void add_import(Command price, Session& session) {
  auto o = std::make_shared<ImportOptions>();
  price.add("import", "take in a price book: LiteLLM's file, or rows of another aiq")
      .operand("FILE", o->file, "- = standard input")
      .option("format", "F", o->format, "litellm or aiq; default litellm")
      .option("effective-from", "T", o->effective_from,
              "From when the prices hold; default now, with aiq as the rows say")
      .flag("allow-outliers", o->allow_outliers, "Take prices above 200 per million too")
      .run([o, &session] { return import(session, *o); });
}

void add_set(Command price, Session& session) {
  auto o = std::make_shared<SetOptions>();
  price.add("set", "set prices of a model, per million units")
      .option("vendor", "V", o->vendor, "Name in the price book, see price_vendor in aiq.toml(5)")
      .option("model", "M", o->model, "Model")
      .repeated("meter", "METER=PRICE", o->meters, "input=2.50; may be given again")
      .option("currency", "CUR", o->currency, "Default USD")
      .option("above-tokens", "N", o->above_tokens, "For requests with more prompt tokens")
      .option("effective-from", "T", o->effective_from, "From when it holds; default now")
      .run([o, &session] { return set(session, *o); });
}

void add_list(Command price, Session& session) {
  auto o = std::make_shared<ListOptions>();
  Command command = price.add("list", "list the prices that hold, newest row first");
  command.section("Filters")
      .option("vendor", "V", o->vendor, "Of this vendor")
      .option("model", "M", o->model, "Of this model, as the book names it")
      .option("meter", "METER", o->meter, "Of this meter")
      .option("at", "T", o->at, "That hold at this time; default now")
      .flag("all", o->all, "Every row, past and future ones too");
  command.section("Output");
  o->format.add_to(command);
  command.section("Pages");
  o->pages.add_to(command, "ID");
  command.run([o, &session] { return list(session, *o); });
}

}  // namespace

void add_price(Command root, Session& session) {
  Command price = root.add("price", "the price book: what a unit of use costs, and from when");
  add_import(price, session);
  add_set(price, session);
  add_list(price, session);
  auto o = std::make_shared<ShowOptions>();
  price.add("show", "show what a model costs at a time")
      .operand("MODEL", o->model, "Model")
      .option("vendor", "V", o->vendor, "At this vendor")
      .option("at", "T", o->at, "Default now")
      .run([o, &session] { return show(session, *o); });
}

}  // namespace aiq::cli
