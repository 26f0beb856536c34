#include "cli/csv.h"

#include "cli/values.h"

namespace aiq::cli {

std::string csv_line(const std::vector<std::string>& cells) {
  std::string out;
  for (const std::string& cell : cells) {
    if (&cell != cells.data()) out += ',';
    if (cell.find_first_of(",\"\r\n") == std::string::npos) {
      out += cell;
      continue;
    }
    out += '"';
    for (const char c : cell) {
      if (c == '"') out += '"';
      out += c;
    }
    out += '"';
  }
  return out + "\r\n";
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

void FormatOption::add_to(Command& command) {
  command.option("format", "F", format, "table, csv or json; default table",
                 ValueKind::table_format);
}

Format FormatOption::get(const Session& session) const {
  if (!format) return session.out.json() ? Format::json : Format::table;
  if (*format == "json") return Format::json;
  if (session.out.json()) {
    fail_usage("contradiction", "--json and --format " + *format + " exclude each other", "");
  }
  return *format == "csv" ? Format::csv : Format::table;
}

ListSpec list_spec(const PageOptions& pages, std::string op, Json in) {
  ListSpec out;
  out.op = std::move(op);
  out.in = std::move(in);
  if (pages.limit) out.limit = whole_value("--limit", *pages.limit, 0, INT64_MAX);
  set_text(out.in, "after", pages.after);
  return out;
}

Exit print_formatted(Session& session, ListSpec spec) {
  Output& out = session.out;
  Table table = out.table(std::move(spec.columns));
  bool any = false;
  if (spec.format == Format::csv) out.text(csv_line(spec.members));
  const auto print_row = [&](const Json& row) {
    any = true;
    if (spec.format == Format::json) {
      out.object(row);
    } else if (spec.format == Format::table) {
      table.add(spec.cells(row));
    } else {
      std::vector<std::string> cells;
      for (const std::string& member : spec.members)
        cells.push_back(csv_cell(row.value(member, Json())));
      out.text(csv_line(cells));
    }
  };
  const auto end_page = [&] {
    if (!table.empty()) out.text(table.take());
    out.flush();
  };
  if (spec.paged) {
    for_each_row(session, spec.op, std::move(spec.in), spec.limit, print_row, end_page);
  } else {
    const Json rows = session.call(spec.op, spec.in).at("rows");
    std::int64_t left = spec.limit == 0 ? INT64_MAX : spec.limit;
    for (const Json& row : rows) {
      if (left-- == 0) break;
      print_row(row);
    }
    end_page();
  }
  if (!any && spec.format == Format::table) out.note(spec.nothing);
  return Exit::ok;
}

}  // namespace aiq::cli
