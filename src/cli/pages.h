#pragma once
// Lists: one page at a time, so that nothing in the database stays open while a reader is slow.

#include <functional>
#include <string>

#include "cli/command.h"
#include "cli/session.h"

namespace aiq::cli {

struct PageOptions {
  Text limit, after;
  void add_to(Command& command, const std::string& after_what);
};

// The filters of `aiq list`, which `aiq cancel` takes too.
struct JobFilterOptions {
  Text status, tenant, model, vendor, batch, label, correlation_id, since, until;
  void add_to(Command& command);
  [[nodiscard]] bool any() const;
  [[nodiscard]] Json input(const Session& session) const;
};

// Calls `op` page by page and `row` for each row of the answers, `page_done` after each page,
// until `limit` rows (0 = all), the end, or a reader that went away.
void for_each_row(Session& session, const std::string& op, Json in, std::int64_t limit,
                  const std::function<void(const Json&)>& row,
                  const std::function<void()>& page_done);

// How one row looks in a table.
using RowCells = std::function<std::vector<Cell>(const Json&)>;

// Prints a list: JSON Lines with --json, else a table; `nothing` goes to standard error when
// there is no row.
Exit print_list(Session& session, const std::string& op, const Json& in, const PageOptions& pages,
                std::vector<Column> columns, const RowCells& cells, const std::string& nothing);

}  // namespace aiq::cli
