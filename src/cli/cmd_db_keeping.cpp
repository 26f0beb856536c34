// aiq db migrate, aiq db backup, aiq db restore

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/db_file.h"
#include "cli/text.h"
#include "cli/values.h"
#include "core/base/duration.h"
#include "core/store/keeping.h"

namespace aiq::cli {
namespace {

// The path of a file that a person names; never a stream.
std::string path_operand(const std::string& given) {
  if (given.empty() || given == "-") {
    fail_usage("not_a_path", "a database is a file: standard input or output can't be one",
               "name a file");
  }
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(given, error);
  return error ? given : std::filesystem::absolute(resolved).string();
}

void refuse_own_files(const std::string& path, const std::string& db_path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal", ".lock", ".sock"}) {
    std::error_code none;
    const bool same =
        path == db_path + suffix || std::filesystem::equivalent(path, db_path + suffix, none);
    if (same) fail_usage("same_file", path + " belongs to the database itself", "name another");
  }
}

std::string jobs_text(std::int64_t jobs) {
  return counted(jobs, "job", "jobs");
}

Exit migrate(Session& session) {
  require_database(session);
  const OwnerLock lock = own_without_daemon(session, "the migration");
  const std::string& path = session.db_path();
  const MigrationReport report =
      migrate_database(path, store_options(session), session.clock().wall_ms());
  if (session.out.json()) {
    session.out.object({{"path", path},
                        {"from", report.from},
                        {"to", report.to},
                        {"backup", report.copy.empty() ? Json() : Json(report.copy)}});
  } else if (report.copy.empty()) {
    session.out.line("up to date: version " + std::to_string(report.to));
  } else {
    session.out.line("migrated from version " + std::to_string(report.from) + " to " +
                     std::to_string(report.to) + "; the file as it was: " + report.copy);
  }
  return Exit::ok;
}

// An earlier copy may be replaced: the new one has its name only when it is whole. Nothing else is.
void refuse_other_file(const std::string& target, DurationMs busy_ms) {
  try {
    static_cast<void>(summarize_database(target, busy_ms));
  } catch (const StoreError& error) {
    if (error.kind() == StoreError::Kind::busy) throw;
    fail_usage("exists", target + " is there and is not a copy of a database of aiq",
               "name another file");
  }
}

std::optional<BackupReport> back_up(Session& session, const std::string& target, bool force) {
  try {
    return back_up_database(session.db_path(), target, force, session.busy_timeout_ms());
  } catch (const StoreError& error) {
    Failure failure = failure_of(error);
    if (error.kind() == StoreError::Kind::full) {
      failure.hint = "nothing is left at " + target + "; make space there, or choose another place";
    }
    throw CommandFailed(std::move(failure));
  }
}

Exit backup(Session& session, const std::string& file) {
  require_database(session);
  const std::string target = path_operand(file);
  refuse_own_files(target, session.db_path());
  struct stat info {};
  const bool there = ::stat(target.c_str(), &info) == 0;
  if (there && !S_ISREG(info.st_mode)) {
    fail_usage("not_a_file", target + " is not a regular file", "name a file in it or beside it");
  }
  if (there) refuse_other_file(target, session.busy_timeout_ms());
  const auto report = back_up(session, target, there);
  if (!report) {
    fail_usage("exists", target + " was made meanwhile by another process", "try again");
  }
  if (session.out.json()) {
    session.out.object({{"path", target},
                        {"bytes", report->bytes},
                        {"schema_version", report->schema_version},
                        {"jobs", report->jobs}});
  } else {
    session.out.line("copied " + jobs_text(report->jobs) + " (" + human_bytes(report->bytes) +
                     ") to " + target);
  }
  return Exit::ok;
}

// "DATABASE.before-restore-20260301T101500Z", with "-2" and so on where it is taken.
std::string free_name(const std::string& db_path, UnixMs now) {
  std::string time = without_fraction(format_rfc3339(now));
  time.erase(std::remove_if(time.begin(), time.end(), [](char c) { return c == '-' || c == ':'; }),
             time.end());
  const std::string first = db_path + ".before-restore-" + time;
  std::string name = first;
  const auto taken = [&name] {
    return ::access(name.c_str(), F_OK) == 0 || ::access((name + "-wal").c_str(), F_OK) == 0;
  };
  for (int n = 2; taken(); ++n)
    name = first + "-" + std::to_string(n);
  return name;
}

// What stands where the copy is to go; "" = nothing that anybody would miss.
std::string what_is_there(Session& session) {
  const std::string& path = session.db_path();
  try {
    const auto present = summarize_database(path, session.busy_timeout_ms());
    if (!present || present->jobs == 0) return "";
    std::string text = path + " holds " + jobs_text(present->jobs);
    if (present->newest_job) {
      text += ", the newest of " + without_fraction(format_rfc3339(*present->newest_job));
    }
    return text;
  } catch (const StoreError& error) {
    if (error.kind() != StoreError::Kind::corrupt && error.kind() != StoreError::Kind::version)
      throw;
    return std::string("the present database can't be read (") + error.what() + ")";
  }
}

PreparedRestore prepare(Session& session, const std::string& source) {
  try {
    return prepare_restore(session.db_path(), source, store_options(session),
                           "uid:" + std::to_string(::getuid()), session.clock().wall_ms());
  } catch (const StoreError& error) {
    Failure failure = failure_of(error);
    if (error.kind() != StoreError::Kind::busy) failure.hint = "the present database is unchanged";
    throw CommandFailed(std::move(failure));
  }
}

void print_restored(Session& session, const std::string& source, const PreparedRestore& prepared,
                    const std::string& previous) {
  Output& out = session.out;
  if (out.json()) {
    out.object({{"path", session.db_path()},
                {"restored_from", source},
                {"previous", previous.empty() ? Json() : Json(previous)},
                {"schema_version", prepared.content.schema_version},
                {"migrated_from", prepared.migrated_from},
                {"jobs", prepared.content.jobs},
                {"open_attempts", prepared.open_attempts},
                {"faults", prepared.faults}});
    return;
  }
  out.line("restored " + jobs_text(prepared.content.jobs) + " from " + source);
  if (!previous.empty()) out.line("the database before: " + previous);
  if (prepared.open_attempts > 0) {
    out.line("running when it was copied, and unknown to aiqd: " +
             counted(prepared.open_attempts, "attempt", "attempts"));
  }
  out.line("the whole queue is paused: look at it with aiq stats, then aiq resume");
}

Exit restore(Session& session, const std::string& file) {
  const std::string source = path_operand(file);
  const std::string& path = session.db_path();
  refuse_own_files(source, path);
  if (::access(source.c_str(), F_OK) != 0) {
    fail_usage("no_such_file", "there is no file " + source, "aiq db backup makes one");
  }
  make_database_folder(session);
  const OwnerLock lock = own_without_daemon(session, "a restore");
  const std::string present = what_is_there(session);
  const std::string aside = free_name(path, session.clock().wall_ms());
  if (!present.empty()) session.out.note(present + "; it is kept as " + aside);
  PreparedRestore prepared = prepare(session, source);
  for (const std::string& fault : prepared.faults)
    session.out.warn("in " + source + ": " + fault);
  session.out.note("putting the copy in place; if this is interrupted and " + path +
                   " is missing, the database before is " + aside);
  const PreparedRestore report{.migrated_from = prepared.migrated_from,
                               .content = prepared.content,
                               .open_attempts = prepared.open_attempts,
                               .faults = prepared.faults};
  const std::string previous =
      complete_restore(path, std::move(prepared), aside, store_options(session));
  print_restored(session, source, report, previous);
  return Exit::ok;
}

struct KeepingOptions {
  Text backup_file, restore_file;
};

}  // namespace

void add_db_keeping(Command db, Session& session) {
  const auto options = std::make_shared<KeepingOptions>();
  db.add("migrate", "bring an older file up to date; a copy of it is kept").run([&session] {
    return migrate(session);
  });

  Command backup_command = db.add("backup", "copy the database, also while aiqd works");
  backup_command
      .operand("FILE", options->backup_file, "the copy; an earlier one is replaced",
               ValueKind::file)
      .run([&session, options] { return backup(session, *options->backup_file); });

  Command restore_command = db.add("restore", "put a copy in the place of the database");
  restore_command
      .operand("FILE", options->restore_file, "a copy that aiq db backup has made", ValueKind::file)
      .remark(
          "The database before is kept beside it. Nothing is sent until aiq resume: the whole\n"
          "queue is paused.");
  restore_command.run([&session, options] { return restore(session, *options->restore_file); });
}

}  // namespace aiq::cli
