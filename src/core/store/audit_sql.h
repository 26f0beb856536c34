#pragma once
// The texts of audit/*.sql, compiled in. A check is kAuditCommonSql, its own text, which ends with
// the definition of `found`, and a SELECT from it.

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
