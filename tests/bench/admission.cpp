// What one decision costs: a view of the store and the choice of one job, with few and many active
// tenants, few and many queued jobs. Not a test: it prints numbers.
//
//     build/release/tests/bench_admission [JOBS]...

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/engine/admission.h"
#include "core/store/sqlite_store.h"

namespace aiq::test {
namespace {

constexpr UnixMs kStart = 1'700'000'000'000;

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "aiq-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file() const { return (path_ / "aiq.db").string(); }

 private:
  std::filesystem::path path_;
};

void add_jobs(SqliteDb& db, int tenants, int jobs) {
  const std::string n = std::to_string(jobs), t = std::to_string(tenants);
  db.exec("BEGIN IMMEDIATE");
  db.exec(("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < " + t +
           ") INSERT INTO lanes (tenant, vendor, model) SELECT 'tenant-' || i, 'v', 'm' FROM c")
              .c_str());
  db.exec(("WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < " + n +
           " - 1) INSERT INTO jobs (lane_id, kind, endpoint, state, wait, live, priority, rank, "
           "created_at, run_at, max_attempts, idempotency_key, cache_key, cache_owner, cache_read, "
           "cache_store, coalesce, soft_ttl, hard_ttl, correlation_id, prompt_tokens) "
           "SELECT 1 + i % " +
           t +
           ", 'request', 'chat', 'queued', 'ready', 1, 0, i, i, i, 5, "
           "randomblob(32), randomblob(32), 'tenant:t', 1, 1, 1, 1, 1, 'c', 100 FROM c")
              .c_str());
  db.exec("INSERT INTO requests (job_id, body) SELECT job_id, x'7b7d' FROM jobs");
  db.exec(("UPDATE job_counts SET n = " + n + " WHERE state = 'queued'").c_str());
  db.exec("COMMIT");
}

struct Cost {
  double median_us, most_us;
};

// One place free: view, choice, lease, and the next job of that lane.
Cost measure(Store& store, const Config& config) {
  std::vector<double> times;
  UnixMs now = kStart;
  for (int i = 0; i < 60; ++i) {
    ++now;
    const auto begun = std::chrono::steady_clock::now();
    store.begin();
    const AdmissionView view = store.admission_view(now);
    Admission admission(config, view, now);
    const auto lane = admission.next();
    if (!lane) std::abort();
    (void)store.lease({*lane, "t" + std::to_string(i), now, now + 60'000, "bench"});
    admission.started(store.lane_head(*lane));
    const auto changes = admission.changes();
    for (const RateRow& row : changes.rates)
      store.save_rate(row);
    for (const ShareRow& row : changes.shares)
      store.save_share(row);
    const auto ended = std::chrono::steady_clock::now();
    store.rollback();
    times.push_back(std::chrono::duration<double, std::micro>(ended - begun).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.back()};
}

Config config_of(int rpm) {
  Config config;
  VendorConfig vendor;
  vendor.name = "v";
  vendor.api = "openai";
  vendor.max_in_flight = 0;
  vendor.rpm = rpm;
  config.vendors["v"] = vendor;
  return config;
}

}  // namespace
}  // namespace aiq::test

int main(int argc, char** argv) {
  using namespace aiq;
  using namespace aiq::test;
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i)
    sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {1'000, 100'000, 1'000'000};
  std::printf("%10s %10s %12s %12s %16s\n", "tenants", "jobs", "median us", "most us",
              "with rpm, median");
  for (const int tenants : {1, 100, 10'000}) {
    for (const int jobs : sizes) {
      const Folder folder;
      (void)open_store(folder.file(), {}, kStart, false);
      SqliteStore store(folder.file(), {}, kStart, false);
      add_jobs(store.db(), tenants, std::max(jobs, tenants));
      store.begin();
      store.register_vendor("v", "s", true);
      store.mark_proven("v");
      store.commit();
      const Cost plain = measure(store, config_of(0));
      const Cost limited = measure(store, config_of(1'000'000'000));
      std::printf("%10d %10d %12.0f %12.0f %16.0f\n", tenants, std::max(jobs, tenants),
                  plain.median_us, plain.most_us, limited.median_us);
      std::fflush(stdout);
    }
  }
}
