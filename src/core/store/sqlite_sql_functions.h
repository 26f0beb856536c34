#pragma once
// What the views of sql_query.h are made with.

#include <sqlite3.h>

#include <string>
#include <string_view>

namespace aiq {

// Registers on a connection: aiq_time(ms), aiq_money(whole, pico), aiq_sign(whole, pico), an exact
// sum(), and the collation aiq_time.
void register_sql_functions(sqlite3* handle);

// A number with a fraction as SQLite has it: a plain decimal of at most 15 significant digits, with
// two places at least.
[[nodiscard]] std::string decimal_text(sqlite3_value* value);
[[nodiscard]] std::string decimal_text(sqlite3_stmt* statement, int column);

}  // namespace aiq
