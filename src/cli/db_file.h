#pragma once
// What the commands under `aiq db` share: owning the file, and paths that people give.

#include <string>

#include "cli/command.h"
#include "cli/session.h"
#include "core/store/owner_lock.h"
#include "core/store/store.h"

namespace aiq::cli {

// Waits for the owner lock for --busy-timeout, then CommandFailed, exit 7.
[[nodiscard]] OwnerLock own_database(Session& session);
// The same, but at once exit 7 when a daemon answers: `what` is not for a database in use.
[[nodiscard]] OwnerLock own_without_daemon(Session& session, const std::string& what);

[[nodiscard]] StoreOptions store_options(Session& session);

// Makes the folder of the database when it is absent.
void make_database_folder(Session& session);

// To read an empty database where there is none is kind; to call it sound would be false.
void require_database(Session& session);

// db migrate, backup, restore.
void add_db_keeping(Command db, Session& session);
// db prune.
void add_db_prune(Command db, Session& session);

}  // namespace aiq::cli
