#pragma once
// A store to try things on: in a file of a folder that is removed at the end, or in memory. The
// conformance tests run over both through the same functions and assert only what store.h says.

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "core/base/sha256.h"
#include "core/store/store.h"

namespace aiq::test {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "aiq-store-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name = "aiq.db") const {
    return (path_ / name).string();
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline constexpr UnixMs kStart = 1'700'000'000'000;
inline constexpr DurationMs kSecond = 1'000;
inline constexpr DurationMs kHour = 3'600'000;

struct OnFile {
  TempFolder folder;
  std::unique_ptr<Store> store = open_store(folder.file(), StoreOptions{}, kStart, false);
};
struct InMemory {
  std::unique_ptr<Store> store = open_store(":memory:", StoreOptions{}, kStart, false);
};

// A request that differs from others by `text`.
inline NewSubmission request(const std::string& text, const std::string& tenant = "default") {
  NewSubmission s;
  s.tenant = tenant;
  s.vendor = "openai";
  s.model = "gpt-4o";
  s.body = R"({"prompt":")" + text + "\"}";
  s.keys.idempotency_key = sha256_hex("key|" + tenant + "|" + text);
  s.keys.cache_key = sha256_hex("cache|" + tenant + "|" + text);
  s.correlation_id = "c-" + text;
  s.cache_owner = "tenant:" + tenant;
  s.run_at = kStart;
  s.soft_ttl_ms = kHour;
  s.hard_ttl_ms = 2 * kHour;
  s.actor = "uid:1000";
  return s;
}

// Drives a store as the daemon would, one transaction per step.
template <class Place>
class World {
 public:
  Store& store() { return *place_.store; }

  template <class F>
  auto write(F f) -> decltype(f(std::declval<Store&>())) {
    store().begin();
    if constexpr (std::is_void_v<decltype(f(store()))>) {
      f(store());
      store().commit();
    } else {
      auto value = f(store());
      store().commit();
      return value;
    }
  }

  SubmitReceipt submit(const NewSubmission& s) {
    return write([&](Store& st) { return st.submit(s, now); });
  }
  LeaseOutcome lease(LaneId lane, const std::string& token) {
    return write([&](Store& st) {
      return st.lease({lane, token, now, now + 60 * kSecond, "pid:7"});
    });
  }
  // Leases the first ready job of the only lane that has one.
  LeasedJob lease_only(const std::string& token) {
    const AdmissionView view = write([&](Store& st) { return st.admission_view(now); });
    REQUIRE(view.lanes.size() == 1);
    LeaseOutcome outcome = lease(view.lanes[0].lane.lane_id, token);
    REQUIRE(outcome.kind == LeaseOutcome::Kind::leased);
    REQUIRE(outcome.job.has_value());
    return *outcome.job;
  }
  CloseOutcome close(const AttemptClose& c) {
    return write([&](Store& st) { return st.close_attempt(c); });
  }
  JobRow job(JobId id) {
    const auto row = store().job(id);
    REQUIRE(row.has_value());
    return *row;
  }
  JobState state(JobId id) { return job(id).status; }
  std::int64_t count(JobState state) {
    return store().stats(now).jobs[static_cast<std::size_t>(state)];
  }
  // Every test ends with a store that finds no fault in itself.
  void expect_sound() { CHECK(store().check() == std::vector<std::string>{}); }

  UnixMs now = kStart;

 private:
  Place place_;
};

inline AttemptClose closing(const LeasedJob& job, UnixMs now) {
  AttemptClose c;
  c.attempt_id = job.attempt_id;
  c.job_id = job.job_id;
  c.token = job.token;
  c.now = now;
  c.next.counters = job.counters;
  return c;
}

// The vendor answered `body`, 10 tokens in and 5 out.
inline AttemptClose answered(const LeasedJob& job, UnixMs now, const std::string& body = "{}") {
  AttemptClose c = closing(job, now);
  c.result.outcome = Outcome::completed;
  c.result.billed = Billed::yes;
  c.result.http_status = 200;
  c.result.body = body;
  c.result.usage_state = UsageState::ok;
  c.result.usage[Meter::input] = 10;
  c.result.usage[Meter::output] = 5;
  c.result.total_ms = 120;
  c.next.step = NextStep::complete;
  return c;
}

// It failed with a 500; tried again at `run_at`.
inline AttemptClose failed(const LeasedJob& job, UnixMs now, UnixMs run_at) {
  AttemptClose c = closing(job, now);
  c.result.outcome = Outcome::server_error;
  c.result.billed = Billed::no;
  c.result.http_status = 500;
  c.result.error_code = "server_error";
  c.result.error_message = "it failed";
  c.next.step = NextStep::retry;
  c.next.run_at = run_at;
  c.next.counters.counted = job.counters.counted + 1;
  return c;
}

inline AttemptClose refused(const LeasedJob& job, UnixMs now) {
  AttemptClose c = failed(job, now, now);
  c.result.outcome = Outcome::rejected;
  c.result.http_status = 400;
  c.result.retryable = false;
  c.next.step = NextStep::dead_letter;
  c.next.reason = DeadReason::rejected;
  return c;
}

}  // namespace aiq::test
