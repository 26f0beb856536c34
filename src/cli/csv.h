#pragma once
// Lists as files for other programs: --format table, csv or json.

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/pages.h"
#include "cli/session.h"

namespace aiq::cli {

// One record of RFC 4180, its CRLF included: cells that hold a comma, a quote or a line break are
// quoted.
[[nodiscard]] std::string csv_line(const std::vector<std::string>& cells);
// A value as a cell: null is empty, text as it is, arrays and objects as compact JSON.
[[nodiscard]] std::string csv_cell(const Json& value);

enum class Format { table, csv, json };

struct FormatOption {
  Text format;

  void add_to(Command& command);
  // --json counts as --format json. CommandFailed, exit 2, for another word.
  [[nodiscard]] Format get(const Session& session) const;
};

// A list in any of the formats.
struct ListSpec {
  std::string op;
  Json in;
  std::int64_t limit = 100;  // 0 = all
  bool paged = true;         // false: the operation gives all rows at once
  Format format = Format::table;
  std::vector<std::string> members;  // columns of the CSV, by member of the row
  std::vector<Column> columns;
  RowCells cells;
  std::string nothing;  // said when there is no row
};
// Of the options --limit and --after.
[[nodiscard]] ListSpec list_spec(const PageOptions& pages, std::string op, Json in);
Exit print_formatted(Session& session, ListSpec spec);

}  // namespace aiq::cli
