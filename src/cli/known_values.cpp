#include "cli/known_values.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <set>

#include "cli/text.h"
#include "core/base/clock.h"
#include "core/config/config.h"
#include "core/store/batches.h"
#include "core/store/store.h"

namespace aiq::cli {
namespace {

constexpr int kIds = 50;    // ids that are offered
constexpr int kJobs = 200;  // newest jobs whose names are offered

// A word that needs no quotes in any shell; others are not offered.
bool is_plain_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/=+@,-";
  return !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
}

class Known {
 public:
  explicit Known(const GivenOptions& given) {
    config_ = load_config(find_config_path(given_value(given, "config"), process_env));
    path_ = resolve_db_path(given_value(given, "db"), config_, process_env, ::geteuid() == 0);
  }

  void add(const std::string& word, const std::string& about = "") {
    if (is_plain_word(word) && seen_.insert(word).second) out_.push_back({word, printable(about)});
  }

  void add_jobs(const JobFilter& filter) {
    const UnixMs now = system_clock().wall_ms();
    for (const JobRow& job : reader().list_jobs(filter, {.limit = kIds})) {
      add(std::to_string(job.job_id), std::string(to_string(job.status)) + ", " + job.tenant +
                                          ", " + job.model + ", " +
                                          short_age(now - job.created_at) + " ago");
    }
  }

  void add_live_jobs() {
    for (const JobState state : {JobState::processing, JobState::retrying, JobState::queued})
      add_jobs({.status = state});
  }

  void add_dead_letters() {
    for (const DeadLetter& letter : reader().list_dead_letters({}, {.limit = kIds})) {
      add(std::to_string(letter.dlq_id),
          letter.reason + ", job " + std::to_string(letter.job_id) + ", " + letter.model);
    }
  }

  void add_cache_keys() {
    for (const CacheEntry& entry : reader().list_cache({.limit = kIds}))
      add(entry.cache_key, entry.model + ", " + counted(entry.hits, "hit", "hits"));
  }

  void add_batches() {
    for (const BatchRow& batch : reader().batches().list({.limit = kIds}))
      add("b" + std::to_string(batch.batch_id), std::to_string(batch.lines) + " lines");
  }

  void add_locks() {
    for (const LockRow& lock : reader().list_locks()) {
      add(lock.name, lock.job_id ? "job " + std::to_string(*lock.job_id) : "");
      if (out_.size() >= kIds) return;
    }
  }

  // Of the configuration, and of the newest jobs.
  void add_names(ValueKind kind) {
    if (kind == ValueKind::tenant) add_sections(config_.tenants);
    if (kind == ValueKind::vendor) add_sections(config_.vendors);
    if (kind == ValueKind::model) add_sections(config_.models);
    for (const JobRow& job : reader().list_jobs({}, {.limit = kJobs})) {
      if (kind == ValueKind::tenant) add(job.tenant);
      if (kind == ValueKind::vendor) add(job.vendor);
      if (kind == ValueKind::model) add(job.model);
      if (kind != ValueKind::label) continue;
      for (const auto& [key, value] : job.labels)
        add(key + "=");
    }
  }

  std::vector<Candidate> take() { return std::move(out_); }

 private:
  static std::string given_value(const GivenOptions& given, const std::string& name) {
    const auto found = given.find(name);
    return found == given.end() ? "" : found->second;
  }

  template <class Map>
  void add_sections(const Map& sections) {
    for (const auto& [name, section] : sections)
      add(name, "in aiq.toml");
  }

  Reader& reader() {
    if (!reader_) reader_ = open_reader(path_);
    return *reader_;
  }

  Config config_;
  std::string path_;
  std::unique_ptr<Reader> reader_;
  std::vector<Candidate> out_;
  std::set<std::string> seen_;
};

void add_values(Known& known, ValueKind kind) {
  switch (kind) {
    case ValueKind::job:
    case ValueKind::job_or_file:
      return known.add_jobs({});
    case ValueKind::live_job:
      return known.add_live_jobs();
    case ValueKind::dead_letter:
      return known.add_dead_letters();
    case ValueKind::batch:
      return known.add_batches();
    case ValueKind::cache_key:
      return known.add_cache_keys();
    case ValueKind::lock:
      return known.add_locks();
    case ValueKind::tenant:
    case ValueKind::vendor:
    case ValueKind::model:
    case ValueKind::label:
      return known.add_names(kind);
    default:
      return;
  }
}

}  // namespace

std::vector<Candidate> known_values(ValueKind kind, const GivenOptions& given) {
  std::optional<Known> known;
  try {
    known.emplace(given);
    add_values(*known, kind);
  } catch (const std::exception&) {
    // A shell shows nothing while somebody types. What was found before stays: names of the
    // configuration need no database.
  }
  return known ? known->take() : std::vector<Candidate>();
}

}  // namespace aiq::cli
