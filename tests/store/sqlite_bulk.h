#pragma once
// Many rows quickly, by SQL. The kept counts follow, so that check() stays clean.

#include "core/store/sqlite_db.h"

namespace aiq::test {

// Completed jobs, each with request, attempt, result, submission and outbox row.
void add_finished_jobs(SqliteDb& db, int n);
// Jobs that are due in a year.
void add_later_jobs(SqliteDb& db, int n);

}  // namespace aiq::test
