// aiq sql

#include "cli/commands.h"
#include "cli/csv.h"
#include "cli/db_file.h"
#include "cli/text.h"
#include "cli/values.h"
#include "core/store/sql_query.h"

namespace aiq::cli {
namespace {

constexpr DurationMs kTimeoutMs = 2'000;

struct SqlOptions {
  Texts sql;
  Text timeout;
  FormatOption format;
};

Json json_value(const SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

std::string shown(const SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return printable(*text);
  return "-";
}

void print_csv(Output& out, const SqlRows& rows) {
  out.text(csv_line(rows.columns));
  for (const auto& row : rows.rows) {
    std::vector<std::string> cells;
    for (const SqlValue& value : row)
      cells.push_back(csv_cell(json_value(value)));
    out.text(csv_line(cells));
    out.flush();
    if (out.reader_gone()) return;
  }
}

void print_json(Output& out, const SqlRows& rows) {
  for (const auto& row : rows.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i)
      object[rows.columns[i]] = json_value(row[i]);
    out.object(object);
    out.flush();
    if (out.reader_gone()) return;
  }
}

void print_table(Output& out, const SqlRows& rows) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < rows.columns.size(); ++i) {
    const bool number = !rows.rows.empty() && std::holds_alternative<std::int64_t>(rows.rows[0][i]);
    columns.push_back({printable(rows.columns[i]), number, !number});
  }
  Table table = out.table(std::move(columns));
  for (const auto& row : rows.rows) {
    std::vector<Cell> cells;
    for (const SqlValue& value : row)
      cells.emplace_back(shown(value));
    table.add(std::move(cells));
  }
  if (table.empty())
    out.note("no row");
  else
    out.text(table.take());
}

Exit print_views(Session& session) {
  for (const SqlView& view : sql_views(session.db_path())) {
    if (session.out.json()) {
      session.out.object({{"view", view.name}, {"columns", view.columns}});
      continue;
    }
    std::string line = view.name + ":";
    for (const std::string& column : view.columns)
      line += " " + column;
    session.out.line(line);
  }
  return Exit::ok;
}

Exit sql(Session& session, const SqlOptions& o) {
  require_database(session);
  if (o.sql.empty()) return print_views(session);
  std::string text;
  for (const std::string& word : o.sql)
    text += (text.empty() ? "" : " ") + word;
  const DurationMs timeout = o.timeout ? duration_value("--timeout", *o.timeout) : kTimeoutMs;
  const Format format = o.format.get(session);
  auto rows = query_sql(session.db_path(), text, timeout);
  if (!rows) throw CommandFailed(std::move(rows).error());
  if (format == Format::json)
    print_json(session.out, *rows);
  else if (format == Format::csv)
    print_csv(session.out, *rows);
  else
    print_table(session.out, *rows);
  return Exit::ok;
}

}  // namespace

void add_sql(Command root, Session& session) {
  auto o = std::make_shared<SqlOptions>();
  Command command = root.add("sql", "read with a SELECT over documented views");
  command.operands("SELECT", o->sql, "Without one: the views and their columns", false)
      .option("timeout", "D", o->timeout, "Stop the query after this time; default 2s");
  o->format.add_to(command);
  command.run([o, &session] { return sql(session, *o); });
}

}  // namespace aiq::cli
