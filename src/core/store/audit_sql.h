#pragma once
// The texts of audit/*.sql, compiled in. A check is kAuditCommonSql, which defines what several of
// them use, and its own text.

#include <cstddef>

namespace aiq {

struct AuditSql {
  const char* code;
  const char* sql;
};
extern const AuditSql kAuditSql[];
extern const std::size_t kAuditSqlCount;
extern const char* const kAuditCommonSql;

}  // namespace aiq
