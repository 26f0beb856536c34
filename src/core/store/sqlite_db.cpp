#include "core/store/sqlite_db.h"

#include <SQLiteCpp/Exception.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "core/base/check.h"
#include "core/store/sqlite_pico.h"

namespace aiq {
namespace {

constexpr int kStepsBetweenChecks = 20'000;  // of SQLite's machine: about a millisecond

StoreError::Kind kind_of(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_TOOBIG:
      return StoreError::Kind::full;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
      return StoreError::Kind::busy;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // a table or column that is not there: the version was looked at before
      return StoreError::Kind::corrupt;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return StoreError::Kind::readonly;
    default:
      return StoreError::Kind::io;
  }
}

const char* sentence_of(StoreError::Kind kind) {
  switch (kind) {
    case StoreError::Kind::full:
      return "no space is left for the database, or a size limit is reached";
    case StoreError::Kind::busy:
      return "another program holds the database";
    case StoreError::Kind::corrupt:
      return "this is not a database of aiq, or it is damaged";
    case StoreError::Kind::readonly:
      return "the file or its folder can't be opened as needed; check owner and modes";
    default:
      return "reading or writing the database failed";
  }
}

// A constraint or a misuse is a fault of this program, not of the outside world.
bool is_our_fault(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_CONSTRAINT || primary == SQLITE_MISUSE || primary == SQLITE_MISMATCH ||
         primary == SQLITE_RANGE;
}

// SQLite takes only ENOSPC for a full disk; a quota or a limit of the file's size is one as well.
bool is_no_space(int system_error) {
  return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG;
}

// The errno of the last failed access to the log or to the file. (sqlite3_system_errno() is asked
// too late: the rollback that follows a failed write has its own.)
int last_errno(sqlite3* handle) {
  for (const int which : {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}) {
    sqlite3_file* file = nullptr;
    int code = 0;
    if (sqlite3_file_control(handle, "main", which, &file) != SQLITE_OK) continue;
    if (file == nullptr || file->pMethods == nullptr) continue;
    file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &code);
    if (is_no_space(code)) return code;
  }
  return 0;
}

// Statistics cost a lock at every allocation. Possible only before SQLite's first use.
void configure_library() {
  static std::once_flag once;
  std::call_once(once, [] { (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); });
}

void configure(SqliteDb& db, SqliteMode mode, DurationMs busy_ms) {
  sqlite3* handle = db.handle();
  sqlite3_extended_result_codes(handle, 1);
  AIQ_CHECK(register_pico_functions(handle) == SQLITE_OK);
  // A checkpoint that runs beside a commit can lose pages (SQLite before 3.51.3): only the
  // writer's thread makes checkpoints, between its commits, and no connection at closing.
  sqlite3_wal_autocheckpoint(handle, 0);
  int on = 0;
  sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &on);
  AIQ_CHECK(on == 1);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_busy_timeout(handle, static_cast<int>(busy_ms));
  db.exec("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;");
  if (mode == SqliteMode::read) {
    db.exec("PRAGMA query_only = ON;");
    return;
  }
  db.exec("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;");
  AIQ_CHECK(db.pragma("PRAGMA synchronous") == "2");
  AIQ_CHECK(db.pragma("PRAGMA foreign_keys") == "1");
}

}  // namespace

const char* to_string(StoreError::Kind kind) {
  switch (kind) {
    case StoreError::Kind::busy:
      return "busy";
    case StoreError::Kind::full:
      return "full";
    case StoreError::Kind::io:
      return "io";
    case StoreError::Kind::corrupt:
      return "corrupt";
    case StoreError::Kind::readonly:
      return "readonly";
    case StoreError::Kind::version:
      return "version";
    case StoreError::Kind::missing:
      return "missing";
  }
  return "io";
}

void throw_sqlite_error(const std::string& path, int code, const std::string& said) {
  const StoreError::Kind kind = kind_of(code);
  std::string sentence = sentence_of(kind);
  if ((code & 0xff) == SQLITE_INTERRUPT) sentence = "reading took too long and was interrupted";
  throw StoreError(
      kind, path + ": " + sentence + " (" + said + ", SQLite code " + std::to_string(code) + ")");
}

SqliteDb::SqliteDb(const std::string& path, SqliteMode mode, DurationMs busy_ms) : path_(path) {
  configure_library();
  const int flags = mode == SqliteMode::write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  try {
    database_.emplace(path, flags | SQLITE_OPEN_NOMUTEX);
  } catch (const SQLite::Exception& error) {
    throw_sqlite_error(path_, error.getExtendedErrorCode(), error.what());
  }
  handle_ = database_->getHandle();
  configure(*this, mode, busy_ms);
  sqlite3_progress_handler(handle_, kStepsBetweenChecks, &SqliteDb::on_progress, this);
}

SqliteDb::~SqliteDb() {
  for (auto& [sql, cached] : statements_)
    sqlite3_finalize(cached.statement);
}

void SqliteDb::exec(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

std::string SqliteDb::pragma(const char* sql) {
  Query query(*this, sql);
  return query.step() ? query.text(0) : std::string();
}

void SqliteDb::fail(int code) const {
  const int extended = sqlite3_extended_errcode(handle_);
  const std::string said = sqlite3_errmsg(handle_);
  if (is_our_fault(code)) throw std::logic_error(path_ + ": " + said);
  if ((code & 0xff) == SQLITE_IOERR && is_no_space(last_errno(handle_))) {
    throw_sqlite_error(path_, SQLITE_FULL, said);
  }
  throw_sqlite_error(path_, (extended & 0xff) == (code & 0xff) ? extended : code, said);
}

void SqliteDb::set_deadline(DurationMs ms) {
  AIQ_CHECK(!deadline_);
  deadline_ = system_clock().mono_ms() + ms;
}

int SqliteDb::on_progress(void* self) {
  const auto* db = static_cast<SqliteDb*>(self);
  return db->deadline_ && system_clock().mono_ms() >= *db->deadline_ ? 1 : 0;
}

SqliteDb::Cached& SqliteDb::prepared(const char* sql) {
  Cached& cached = statements_[sql];
  if (cached.statement == nullptr) {
    const int code =
        sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &cached.statement, nullptr);
    if (code != SQLITE_OK) fail(code);
  }
  return cached;
}

Query::~Query() {
  // The error of the last step was thrown by it.
  sqlite3_reset(statement());
  cached_.in_use = false;
}

Query::Query(Begin begin, SqliteDb& db, const char* sql) : db_(db), cached_(db.prepared(sql)) {
  // A statement that is stepped while an outer loop steps it would restart that loop.
  AIQ_CHECK(!cached_.in_use);
  // All are bound at every run, so that none is left over from the last.
  AIQ_CHECK(sqlite3_bind_parameter_count(statement()) == begin.values);
  cached_.in_use = true;
}

bool Query::step() {
  const int code = sqlite3_step(statement());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  db_.fail(code);
}

std::string_view Query::view(int column) const {
  // The pointer first: asking for it may convert, which changes the length.
  const void* data = sqlite3_column_blob(statement(), column);
  const int size = sqlite3_column_bytes(statement(), column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

KeyBlob Query::key(int column) const {
  const std::string_view bytes = view(column);
  KeyBlob key;
  AIQ_CHECK(bytes.size() == key.bytes.size());
  std::copy(bytes.begin(), bytes.end(), key.bytes.begin());
  return key;
}

void Query::bind_text(std::string_view text, sqlite3_destructor_type life) {
  // A null pointer would bind NULL.
  const char* data = text.data() == nullptr ? "" : text.data();
  check(sqlite3_bind_text64(statement(), position_, data, text.size(), life, SQLITE_UTF8));
}

void Query::bind_blob(const void* data, std::size_t size, sqlite3_destructor_type life) {
  if (data == nullptr) {
    check(sqlite3_bind_zeroblob(statement(), position_, 0));
  } else {
    check(sqlite3_bind_blob64(statement(), position_, data, size, life));
  }
}

namespace {
int nibble(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}
}  // namespace

std::optional<KeyBlob> parse_key(std::string_view hex) {
  KeyBlob key;
  if (hex.size() != 2 * key.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) {
    const int high = nibble(hex[2 * i]);
    const int low = nibble(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    key.bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return key;
}

KeyBlob key_blob(std::string_view hex) {
  const auto key = parse_key(hex);
  AIQ_CHECK(key.has_value());
  return *key;
}

std::string key_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex.push_back(kDigits[value >> 4]);
    hex.push_back(kDigits[value & 15]);
  }
  return hex;
}

}  // namespace aiq
