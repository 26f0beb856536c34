#include <array>
#include <memory>

#include "core/store/sql_query.h"
#include "core/store/sqlite_reader.h"
#include "core/store/sqlite_sql_functions.h"

namespace aiq {

extern const char* const kSqlViewsSql;  // sql_views.sql

namespace {

constexpr DurationMs kBusyMs = 2'000;
constexpr std::array<std::string_view, 7> kViews = {
    "v_jobs", "v_attempts", "v_usage", "v_ledger", "v_summary", "v_runs", "v_invoices"};

bool is_view(const char* name) {
  for (const std::string_view view : kViews)
    if (name != nullptr && view == name) return true;
  return false;
}

// SELECT alone, and of the tables only what a view reads.
int authorize(void* seen, int action, const char* name, const char* column, const char*,
              const char* inner) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return SQLITE_OK;  // loading extensions is off
    case SQLITE_READ:
      // No column: count(*), also of what WITH names.
      if (is_view(name) || is_view(inner) || column == nullptr || *column == 0) return SQLITE_OK;
      static_cast<std::string*>(seen)->assign(name);
      return SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

class Connection {
 public:
  explicit Connection(const std::string& path) : db_(path, SqliteMode::read, kBusyMs) {
    register_sql_functions(db_.handle());
    db_.exec("PRAGMA query_only = OFF;");  // the file is read-only all the same
    db_.exec(kSqlViewsSql);
    db_.exec("PRAGMA query_only = ON;");
    sqlite3_set_authorizer(db_.handle(), authorize, &denied_);
  }
  ~Connection() { sqlite3_set_authorizer(db_.handle(), nullptr, nullptr); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] SqliteDb& db() { return db_; }
  // The table that was refused; "" = none.
  [[nodiscard]] const std::string& denied() const { return denied_; }

 private:
  SqliteDb db_;
  std::string denied_;
};

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Failure sql_error(std::string message) {
  return {Exit::usage, "sql_error", std::move(message),
          "one SELECT over v_jobs v_attempts v_usage v_ledger v_summary v_runs v_invoices; "
          "`aiq sql` without one lists their columns"};
}

Failure failure_here(Connection& connection, int code) {
  if ((code & 0xff) == SQLITE_INTERRUPT)
    return {Exit::timeout, "timeout", "the query took too long and was stopped",
            "give it longer with --timeout, or narrow it down"};
  if ((code & 0xff) == SQLITE_AUTH)
    return sql_error(connection.denied().empty()
                         ? "only SELECT is carried out here"
                         : connection.denied() + " is none of the views, and is not read here");
  if ((code & 0xff) == SQLITE_ERROR) return sql_error(sqlite3_errmsg(connection.db().handle()));
  connection.db().fail(code);
}

Expected<Statement, Failure> prepared(Connection& connection, const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v2(connection.db().handle(), sql.c_str(), -1, &raw, &tail);
  Statement statement(raw);
  if (code != SQLITE_OK) return Unexpected{failure_here(connection, code)};
  if (!statement) return Unexpected{sql_error("there is no statement")};
  sqlite3_stmt* second = nullptr;
  const int more = sqlite3_prepare_v2(connection.db().handle(), tail, -1, &second, nullptr);
  const Statement rest(second);
  if (more != SQLITE_OK || rest) return Unexpected{sql_error("there is more than one statement")};
  if (sqlite3_stmt_readonly(raw) == 0 || sqlite3_column_count(raw) == 0 ||
      sqlite3_stmt_isexplain(raw) != 0)
    return Unexpected{sql_error("only SELECT is carried out here")};
  return statement;
}

SqlValue value_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return std::monostate{};
    case SQLITE_INTEGER:
      return static_cast<std::int64_t>(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
      return decimal_text(statement, column);
    case SQLITE_BLOB: {
      const void* bytes = sqlite3_column_blob(statement, column);
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      return key_hex({static_cast<const char*>(bytes), size});
    }
    default: {
      const auto* text = sqlite3_column_text(statement, column);
      return std::string(reinterpret_cast<const char*>(text),
                         static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    }
  }
}

}  // namespace

Expected<SqlRows, Failure> query_sql(const std::string& path, const std::string& sql,
                                     DurationMs timeout_ms) {
  { const SqliteReader current(path); }  // is it ours, and of this version?
  Connection connection(path);
  auto statement = prepared(connection, sql);
  if (!statement) return Unexpected{std::move(statement).error()};
  sqlite3_stmt* raw = statement->get();
  SqlRows out;
  const int columns = sqlite3_column_count(raw);
  for (int i = 0; i < columns; ++i)
    out.columns.emplace_back(sqlite3_column_name(raw, i));
  const SqliteDeadline deadline(connection.db(), timeout_ms);
  for (;;) {
    const int code = sqlite3_step(raw);
    if (code == SQLITE_DONE) return out;
    if (code != SQLITE_ROW) return Unexpected{failure_here(connection, code)};
    if (out.rows.size() == kSqlRowsMax)
      return Unexpected{
          sql_error("there are more than " + std::to_string(kSqlRowsMax) + " rows; add a LIMIT")};
    auto& row = out.rows.emplace_back();
    for (int i = 0; i < columns; ++i)
      row.push_back(value_at(raw, i));
  }
}

std::vector<SqlView> sql_views(const std::string& path) {
  Connection connection(path);
  std::vector<SqlView> out;
  for (const std::string_view view : kViews) {
    const auto statement = prepared(connection, "SELECT * FROM " + std::string(view) + " LIMIT 0");
    AIQ_CHECK(statement.has_value());
    SqlView& entry = out.emplace_back(SqlView{std::string(view), {}});
    for (int i = 0; i < sqlite3_column_count(statement->get()); ++i)
      entry.columns.emplace_back(sqlite3_column_name(statement->get(), i));
  }
  return out;
}

}  // namespace aiq
