// aiq db prune

#include <array>
#include <memory>

#include "cli/db_file.h"

namespace aiq::cli {
namespace {

constexpr std::array<const char*, 6> kCounts = {"jobs",    "attempts",    "results",
                                                "batches", "client_keys", "events"};
constexpr std::array<const char*, 6> kOne = {"job",   "attempt",    "result",
                                             "batch", "client key", "event"};
constexpr std::array<const char*, 6> kMany = {"jobs",    "attempts",    "results",
                                              "batches", "client keys", "events"};

std::string counts_text(const Json& totals) {
  std::string text;
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    const auto n = totals.at(kCounts[i]).get<std::int64_t>();
    if (n == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(n) + " " + (n == 1 ? kOne[i] : kMany[i]);
  }
  return text;
}

// Slice after slice; between two of them others write.
Json prune_all(Session& session, bool dry_run) {
  Json totals;
  for (const char* name : kCounts)
    totals[name] = 0;
  Json from = Json::object();
  for (;;) {
    const Json slice = session.call(dry_run ? "db.prunable" : "db.prune", from);
    for (const char* name : kCounts)
      totals[name] = totals[name].get<std::int64_t>() + slice.at(name).get<std::int64_t>();
    from = slice.at("next");
    if (from.is_null()) break;
    session.out.progress(counts_text(totals));
  }
  session.out.progress("");
  return totals;
}

Exit prune(Session& session, bool dry_run) {
  require_database(session);
  const Json totals = prune_all(session, dry_run);
  if (session.out.json()) {
    session.out.object(totals);
    return Exit::ok;
  }
  const std::string text = counts_text(totals);
  if (text.empty()) {
    session.out.line("nothing is old enough");
  } else {
    session.out.line((dry_run ? "would remove " : "removed ") + text);
  }
  return Exit::ok;
}

}  // namespace

void add_db_prune(Command db, Session& session) {
  const auto dry_run = std::make_shared<bool>(false);
  Command command = db.add("prune", "remove what is older than [retention] wants it kept");
  command.flag("dry-run", *dry_run, "only count it");
  command.run([&session, dry_run] { return prune(session, *dry_run); });
}

}  // namespace aiq::cli
