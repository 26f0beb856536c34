#pragma once
// SQL that an operator writes, read-only, over documented views: v_jobs v_attempts v_usage v_ledger
// v_summary v_runs v_invoices.
//
// In the views times are RFC 3339 UTC with milliseconds, and compare as times with any other way to
// write one ('2026-03-01T00:00:00Z', '2026-03-01'). Amounts are decimals. SQLite has no decimal
// type: an amount of up to 15 digits is a number, so that `amount < 0` says what it means; a longer
// one is exact text. sum() adds either exactly. The column `sign` (-1, 0, 1) holds for all.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/duration.h"
#include "core/base/errors.h"
#include "core/base/expected.h"

namespace aiq {

// NULL, a whole number, text. What has a fraction is text: a decimal with two places at least.
using SqlValue = std::variant<std::monostate, std::int64_t, std::string>;

struct SqlRows {
  std::vector<std::string> columns;
  std::vector<std::vector<SqlValue>> rows;
};

inline constexpr std::size_t kSqlRowsMax = 1'000'000;

// Runs one SELECT on a connection of its own. All rows are read before the answer, so that nothing
// stays open while they are printed. Failure: exit 2 (sql_error: not one SELECT, not over the
// views, too many rows), exit 6 (timeout). Throws StoreError.
[[nodiscard]] Expected<SqlRows, Failure> query_sql(const std::string& path, const std::string& sql,
                                                   DurationMs timeout_ms);

// The views as an operator reads them: name, then the columns.
struct SqlView {
  std::string name;
  std::vector<std::string> columns;
};
[[nodiscard]] std::vector<SqlView> sql_views(const std::string& path);

}  // namespace aiq
