#pragma once
// One connection and its statements: opening with the settings that durability rests on, mapping
// of SQLite's codes to StoreError, and statements that are prepared once and kept.
//
// The connection is SQLiteCpp's. Statements are our own thin class: these run at every operation,
// and SQLiteCpp counts a shared reference for each column it reads and can't ask SQLite to keep a
// statement out of its short-lived memory (SQLITE_PREPARE_PERSISTENT).

#include <SQLiteCpp/Database.h>
#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/store/store_error.h"

namespace aiq {

// What the connection is for; settled at opening.
enum class SqliteMode { read, write };

class SqliteDb {
 public:
  // Throws StoreError. Makes nothing: the file is there (or `path` is ":memory:").
  SqliteDb(const std::string& path, SqliteMode mode, DurationMs busy_ms);
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  [[nodiscard]] SQLite::Database& database() noexcept { return *database_; }
  [[nodiscard]] sqlite3* handle() const noexcept { return handle_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool in_memory() const noexcept { return path_ == ":memory:"; }
  [[nodiscard]] std::int64_t last_id() const noexcept { return sqlite3_last_insert_rowid(handle_); }
  [[nodiscard]] bool in_transaction() const noexcept {
    return sqlite3_get_autocommit(handle_) == 0;
  }

  // Runs a text of one or more statements that takes no values and gives no rows.
  void exec(const char* sql);
  // The first column of the first row of a statement that is run once in a while.
  [[nodiscard]] std::string pragma(const char* sql);
  [[noreturn]] void fail(int code) const;

  // From now until clear_deadline() statements are interrupted after `ms` (StoreError busy).
  void set_deadline(DurationMs ms);
  void clear_deadline() noexcept { deadline_.reset(); }

 private:
  friend class Query;
  struct Cached {
    sqlite3_stmt* statement = nullptr;
    bool in_use = false;
  };
  Cached& prepared(const char* sql);
  static int on_progress(void* self);

  std::string path_;
  std::optional<SQLite::Database> database_;
  sqlite3* handle_ = nullptr;
  // By the address of the text: every statement is a constant.
  std::unordered_map<const char*, Cached> statements_;
  std::optional<MonoMs> deadline_;
};

// Limits what runs inside a block. Not nested.
class SqliteDeadline {
 public:
  SqliteDeadline(SqliteDb& db, DurationMs ms) : db_(db) { db_.set_deadline(ms); }
  ~SqliteDeadline() { db_.clear_deadline(); }
  SqliteDeadline(const SqliteDeadline&) = delete;
  SqliteDeadline& operator=(const SqliteDeadline&) = delete;

 private:
  SqliteDb& db_;
};

// StoreError by SQLite's result code. `said`: SQLite's own words.
[[noreturn]] void throw_sqlite_error(const std::string& path, int code, const std::string& said);

// A SHA-256 as it stands in a row.
struct KeyBlob {
  std::array<unsigned char, 32> bytes{};
};
[[nodiscard]] std::optional<KeyBlob> parse_key(std::string_view hex);  // 64 lower-case hex digits
[[nodiscard]] KeyBlob key_blob(std::string_view hex);                  // aborts unless it is one
[[nodiscard]] std::string key_hex(std::string_view bytes);

// Values whose SQL type is not that of their C++ type. The text must outlive the Query.
struct BlobView {
  std::string_view bytes;
};
struct TextOrNull {  // "" becomes NULL
  std::string_view text;
};

// One run of a kept statement: binds all its values, steps, gives columns; resets at the end of
// the block. Text and blobs given as lvalues or views are not copied and must outlive the Query;
// temporary strings and keys are copied.
class Query {
 public:
  template <class... Values>
  Query(SqliteDb& db, const char* sql, Values&&... values)
      : Query(Begin{static_cast<int>(sizeof...(Values))}, db, sql) {
    (bind(std::forward<Values>(values)), ...);
  }
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // True: there is a row. Throws StoreError.
  bool step();

  [[nodiscard]] bool null(int column) const {
    return sqlite3_column_type(statement(), column) == SQLITE_NULL;
  }
  [[nodiscard]] std::int64_t i64(int column) const {
    return sqlite3_column_int64(statement(), column);
  }
  [[nodiscard]] double real(int column) const { return sqlite3_column_double(statement(), column); }
  [[nodiscard]] int i32(int column) const { return sqlite3_column_int(statement(), column); }
  [[nodiscard]] bool flag(int column) const { return i32(column) != 0; }
  [[nodiscard]] std::optional<std::int64_t> opt_i64(int column) const {
    return null(column) ? std::nullopt : std::optional(i64(column));
  }
  [[nodiscard]] std::optional<int> opt_i32(int column) const {
    return null(column) ? std::nullopt : std::optional(i32(column));
  }
  // Valid until the next step; "" for NULL.
  [[nodiscard]] std::string_view view(int column) const;
  [[nodiscard]] std::string text(int column) const { return std::string(view(column)); }
  [[nodiscard]] std::string hex(int column) const { return key_hex(view(column)); }
  [[nodiscard]] KeyBlob key(int column) const;  // not NULL

 private:
  struct Begin {
    int values;
  };
  // Apart from the binding, so that the destructor also runs when a value can't be bound.
  Query(Begin begin, SqliteDb& db, const char* sql);
  [[nodiscard]] sqlite3_stmt* statement() const { return cached_.statement; }
  void check(int code) const {
    if (code != SQLITE_OK) db_.fail(code);
  }
  void bind_text(std::string_view text, sqlite3_destructor_type life);
  void bind_blob(const void* data, std::size_t size, sqlite3_destructor_type life);

  template <class T>
  void bind(T&& value) {
    using V = std::remove_cvref_t<T>;
    ++position_;
    if constexpr (std::is_integral_v<V>) {
      check(sqlite3_bind_int64(statement(), position_, static_cast<sqlite3_int64>(value)));
    } else if constexpr (std::is_floating_point_v<V>) {
      check(sqlite3_bind_double(statement(), position_, static_cast<double>(value)));
    } else if constexpr (std::is_same_v<V, std::nullopt_t>) {
      check(sqlite3_bind_null(statement(), position_));
    } else if constexpr (std::is_same_v<V, KeyBlob>) {
      bind_blob(value.bytes.data(), value.bytes.size(),
                std::is_lvalue_reference_v<T> ? SQLITE_STATIC : SQLITE_TRANSIENT);
    } else if constexpr (std::is_same_v<V, BlobView>) {
      bind_blob(value.bytes.data(), value.bytes.size(), SQLITE_STATIC);
    } else if constexpr (std::is_same_v<V, TextOrNull>) {
      if (value.text.empty()) {
        check(sqlite3_bind_null(statement(), position_));
      } else {
        bind_text(value.text, SQLITE_STATIC);
      }
    } else if constexpr (std::is_same_v<V, std::string>) {
      bind_text(value, std::is_lvalue_reference_v<T> ? SQLITE_STATIC : SQLITE_TRANSIENT);
    } else if constexpr (std::is_convertible_v<V, std::string_view>) {
      bind_text(value, SQLITE_STATIC);
    } else {  // std::optional
      --position_;
      if (value.has_value()) {
        bind(*std::forward<T>(value));
      } else {
        bind(std::nullopt);
      }
    }
  }

  SqliteDb& db_;
  SqliteDb::Cached& cached_;
  int position_ = 0;
};

// Runs a statement that gives no row; returns the rows it changed.
template <class... Values>
int run(SqliteDb& db, const char* sql, Values&&... values) {
  Query query(db, sql, std::forward<Values>(values)...);
  query.step();
  return sqlite3_changes(db.handle());
}

}  // namespace aiq
