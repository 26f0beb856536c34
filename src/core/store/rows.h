#pragma once
// What the store gives and takes: plain values, no SQL, no JSON type. Times UTC ms.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/money.h"
#include "core/model/attempt.h"
#include "core/model/job.h"
#include "core/model/request.h"
#include "core/model/retry.h"

namespace aiq {

using Labels = std::map<std::string, std::string>;

struct Lane {
  LaneId lane_id = 0;
  std::string tenant, vendor, model;
};

// ---- submit

struct NewSubmission {
  std::string tenant, vendor, model;
  Endpoint endpoint = Endpoint::chat;
  std::string body;            // CheckedBody::sent
  RequestKeys keys;            // hex; always both
  std::string client_key;      // "" = none
  std::string correlation_id;  // never ""
  std::string cache_owner;     // "tenant:t" | "group:g"
  std::string scope, locale, safety;
  Labels labels;
  int priority = 0;
  UnixMs run_at = 0;  // <= now: at once
  std::optional<UnixMs> deadline;
  int max_attempts = 5;
  std::int64_t prompt_tokens = 0;             // an estimate
  std::optional<std::int64_t> output_tokens;  // the most that the request asks for
  CacheControl cache;                         // policy applied: read/store/coalesce say what holds
  DurationMs soft_ttl_ms = 0, hard_ttl_ms = 0;  // jitter applied
  bool resubmit = false;                       // also where a rejected dead letter has the same key
  std::string actor;                           // "uid:1000"
  std::optional<std::int64_t> batch_id, line;  // of the batch line that it stands for
};

struct SubmitReceipt {
  enum class Outcome {
    created,
    existing,
    cached,
    key_conflict,  // the client key belongs to another request; nothing written
    not_cached,    // only_if_cached and no entry; nothing written
  };
  Outcome outcome = Outcome::created;
  JobId job_id = 0;
  SubmissionId submission_id = 0;
  JobState status = JobState::queued;
  bool stale = false;                // answered by an entry past its soft TTL
  std::optional<JobId> refresh_job;  // the refresh job that this submit made
  bool rejected_before = false;      // existing: it is a dead letter of class rejected
  std::string correlation_id;        // of the job
};

// What submit() would do, without writing.
struct SubmitPreview {
  SubmitReceipt::Outcome outcome = SubmitReceipt::Outcome::created;
  std::optional<JobId> job_id;
  bool stale = false;
};

// ---- lease and close

struct LeasedJob {
  JobId job_id = 0;
  Lane lane;
  JobKind kind = JobKind::request;
  Endpoint endpoint = Endpoint::chat;
  std::string body;
  int generation = 1, attempt = 1, max_attempts = 5;
  std::int64_t prompt_tokens = 0;
  std::optional<std::int64_t> output_tokens;
  AttemptId attempt_id = 0;
  std::string token;
  AttemptCounters counters;                           // before this attempt
  UnixMs created_at = 0, run_at = 0, started_at = 0;  // started_at: of this attempt
  std::optional<UnixMs> deadline;
  std::string correlation_id;
  std::string idempotency_key;  // hex; "" = none
  // Ended attempts of this generation that the vendor answered with a known bill: an HTTP status,
  // billed no or yes. A refused connection is no answer, whatever it cost.
  int explicit_answers = 0;
};

struct LeaseRequest {
  LaneId lane_id = 0;
  std::string token;  // fresh, random
  UnixMs now = 0, lease_until = 0;
  std::string worker;  // "pid:123"
};

struct LeaseOutcome {
  enum class Kind {
    leased,
    served,  // completed from the cache instead (job_id)
    waits,   // its cache key is locked; it left the ready set (job_id)
    dead,    // its deadline had passed (job_id)
    empty,   // the lane has no ready job
  };
  Kind kind = Kind::empty;
  JobId job_id = 0;
  std::optional<LeasedJob> job;  // leased
};

struct AttemptClose {
  AttemptId attempt_id = 0;
  JobId job_id = 0;
  std::string token;
  UnixMs now = 0;
  AttemptResult result;
  // What becomes of the job; step `complete` needs outcome completed. A dead letter of reason
  // `deadline` is judged again by the deadline that the row has now, which a later submission may
  // have moved: none, or one after next.run_at, makes it a retry at next.run_at. So run_at is set
  // in this case too.
  Next next;
  std::string pause_reason;  // for result.spent_vendor / spent_model
  // The vendor's proof (contract 5.1): set when this outcome proves it, if the attempt was leased
  // after the vendor became unproven.
  bool proves_vendor = false;
  std::string price_vendor;  // the vendor's name in the price book, for what a cached answer saves
};

struct CloseOutcome {
  bool held = true;  // false: the token was lost; only the attempt's late answer was kept
  JobState status = JobState::completed;
};

// An open lease, for renewal, recovery and the list of what runs.
struct OpenLease {
  LeasedJob job;  // body left empty
  UnixMs lease_until = 0;
};

// ---- admission

struct LaneHead {
  Lane lane;
  std::int64_t rank = 0;  // of its first ready job; so are the following
  JobId job_id = 0;
  int in_flight = 0;  // live leases of this lane
  int priority = 0;
  UnixMs run_at = 0;
  std::int64_t prompt_tokens = 0;
  std::optional<std::int64_t> output_tokens;
};

struct Pause {
  std::string vendor, model, tenant;  // "" = any
  std::string cause;                  // operator | vendor_quota | auth | restored
  std::string reason;
  std::optional<UnixMs> until;
  std::string actor;
  UnixMs created_at = 0;
};

struct RateHold {
  std::string vendor, model;
  UnixMs until = 0, set_at = 0;
  // Once it is over, those who waited start one after the other: how many they were (nullopt: not
  // counted yet), and the time of the next start.
  std::optional<int> waiting;
  std::optional<double> next_start;

  [[nodiscard]] DurationMs spread() const { return spread_ms(until - set_at); }
};

// The table rate_windows; read and written by engine/rate_window.h.
struct RateRow {
  std::string scope;  // vendor | model | tenant
  std::string name;   // vendor; vendor, a space, model; tenant
  std::string unit;   // requests | tokens
  double level = 0;
  UnixMs at = 0;
  std::string recent;
  std::optional<std::int64_t> reported;  // limit per minute
  std::optional<UnixMs> reported_at;
};

// The table vendor_pace.
struct PaceRow {
  std::string vendor, model;
  double share = 1;  // of its limits, at `at`
  UnixMs at = 0;
};

// The table breakers; read and written by engine/breaker.h.
struct BreakerRow {
  std::string vendor, model;
  std::optional<UnixMs> open_until;
  int streak = 0, probes_ok = 0;
  std::string recent;
};

// The table tenant_shares; tenant "" is the clock.
struct ShareRow {
  std::string tenant;
  UnixMs served_at = 0;
  double finish = 0;
};

struct VendorRow {
  std::string vendor;
  bool proven = false;
  std::string section;
  std::optional<UnixMs> last_seen;
  std::string rate;                 // JSON object: what its rate headers said last
  std::int64_t unproven_after = 0;  // only an attempt with a greater id can prove it
};

// All that decides what may start now.
struct AdmissionView {
  std::vector<LaneHead> lanes;    // with a ready job, any order
  std::vector<LaneHead> running;  // every lane with live leases: lane, in_flight
  std::vector<Pause> pauses;      // in force
  std::vector<RateHold> holds;    // in force, or over so lately that starts are spread
  std::vector<VendorRow> vendors;
  std::vector<RateRow> rates;
  std::vector<PaceRow> paces;
  std::vector<BreakerRow> breakers;
  std::vector<ShareRow> shares;  // of the tenants that have a lane here, and the clock
  // By unproven vendor: start of the oldest of those open attempts that can prove it.
  std::map<std::string, UnixMs> oldest_start;
  std::optional<UnixMs> next_due;  // earliest run_at still in the future
  // Earliest deadline of a job that waits for anything; past ones too until expire_deadlines().
  std::optional<UnixMs> next_deadline;
};

// ---- reading

struct JobFilter {
  std::optional<JobState> status;
  std::string tenant, model, vendor, correlation_id;  // "" = any
  std::string label_key, label_value;                 // both or none
  std::optional<UnixMs> since, until;                 // created_at, half-open
  std::optional<std::int64_t> batch_id;               // a line of this batch asked for it
};

// Which submissions of a job are meant; nothing set = all.
struct SubmissionScope {
  std::optional<std::int64_t> batch_id;
  std::string correlation_id;
};

struct Page {
  std::int64_t after = 0;  // ids below it (newest first); 0 = from the newest
  int limit = 100;         // 1 .. 1000
};

struct JobRow {
  JobId job_id = 0;
  JobKind kind = JobKind::request;
  JobState status = JobState::queued;
  std::string wait;  // "" | ready | time | lock | serve
  std::string tenant, vendor, model;
  Endpoint endpoint = Endpoint::chat;
  int priority = 0;
  Labels labels;
  std::string idempotency_key, client_key, cache_key, correlation_id;  // keys hex, "" = none
  int generation = 1, attempts = 0, max_attempts = 5;  // attempts: of this generation
  UnixMs created_at = 0, run_at = 0;
  std::optional<UnixMs> deadline, started_at, finished_at;
  std::string result_source;  // "" | vendor | cache
  bool stale = false, truncated = false;
  std::string error_class, error_code, error_message;
  std::optional<int> error_status;
  std::optional<Usage> usage;  // over all its attempts; nullopt = none recorded
  std::optional<std::int64_t> result_id;
  std::int64_t prompt_tokens = 0;  // an estimate
  std::optional<std::int64_t> output_tokens;
  // The first batch line that asked for it; with a filter by batch the first of that batch.
  std::optional<std::int64_t> batch_id;
  std::string custom_id;
};

// A change of a job's state, in the order of the changes.
struct OutboxRow {
  std::int64_t event_id = 0;
  UnixMs at = 0;
  JobId job_id = 0;
  std::string from;  // "" = the job is new
  std::string to, detail;
};

struct AttemptRow {
  AttemptId attempt_id = 0;
  int generation = 1, attempt = 1;
  std::optional<Outcome> outcome;  // nullopt = open
  std::optional<Billed> billed;
  bool counts = true;
  UnixMs started_at = 0;
  std::optional<UnixMs> ended_at;
  std::optional<int> http_status;
  std::string vendor, model, vendor_request_id, error_code, error_message, excerpt, worker;
  std::optional<DurationMs> connect_ms, first_byte_ms, total_ms, retry_after_ms;
  std::string usage_state;  // "" while open
};

struct DeadLetter {
  std::int64_t dlq_id = 0;
  JobId job_id = 0;
  std::string tenant, vendor, model, reason, error_class, error_code, error_message, state;
  std::optional<int> http_status;
  int attempts = 0, generation = 1;
  UnixMs dead_at = 0;
  std::optional<UnixMs> resolved_at;
  std::string resolved_by, note, correlation_id;
};

struct DeadLetterFilter {
  std::string state = "open";  // open | replayed | discarded | "" = all
  std::string tenant, model, vendor, reason, error_class, correlation_id;  // "" = any
  std::string label_key, label_value;
  std::optional<UnixMs> since, until;  // dead_at, half-open
};

// Sends a dead letter's job again: the same job, its next generation.
struct ReplayRequest {
  std::int64_t dlq_id = 0;
  UnixMs now = 0;
  UnixMs run_at = 0;               // <= now: at once
  std::optional<UnixMs> deadline;  // nullopt: none
  std::string actor, note;
};

struct ReplayOutcome {
  enum class Kind {
    replayed,
    already_resolved,  // replayed or discarded before
    duplicate,         // a live job has its key: it stays as it is
    not_found,
  };
  Kind kind = Kind::not_found;
  JobId job_id = 0;
  int generation = 0;      // of the job after a replay; else of the letter
  JobId duplicate_of = 0;  // duplicate
};

// Open dead letters by one of their properties.
struct DeadLetterGroup {
  std::string by;    // class | reason | model | tenant
  std::string name;  // "" = never sent (class)
  std::int64_t count = 0;
  UnixMs oldest = 0, newest = 0;  // dead_at
};

// The request of a dead letter's job, before and after an operator's edit.
struct LetterPayload {
  std::string body;                     // sent in the generation after, or what would be sent now
  std::optional<std::string> original;  // as it failed; nullopt: never edited after this failure
  std::string vendor, model;            // of `body`
  Endpoint endpoint = Endpoint::chat;
  std::string scope, locale, safety;
};

struct DeadLetterEdit {
  std::int64_t dlq_id = 0;
  UnixMs now = 0;
  std::string vendor, model;
  Endpoint endpoint = Endpoint::chat;
  std::string body;
  RequestKeys keys;
  std::string cache_owner;
  std::int64_t prompt_tokens = 0;
  std::optional<std::int64_t> output_tokens;
  // The policy for the new request; what the job did not want before it does not get.
  bool cache_read = true, cache_store = true;
  std::string actor;
};

struct CacheEntry {
  std::string cache_key, owner, vendor, model;
  JobId job_id = 0;
  std::int64_t result_id = 0;
  bool truncated = false;
  UnixMs created_at = 0, soft_until = 0, hard_until = 0, last_used_at = 0;
  std::int64_t hits = 0, bytes = 0, tokens = 0;
};

struct CacheFilter {  // conditions are joined by AND; none set = nothing is removed unless `all`
  bool all = false;
  std::string cache_key, model, tenant, label_key, label_value;
  std::optional<UnixMs> created_before;
};

// What became of one slice of the entries.
struct CacheRemoval {
  int removed = 0;
  std::string next;  // cache key after which to go on; "" = all were looked at
};

// What besides the request's body makes a job's cache key.
struct CacheQuestion {
  std::string cache_key, owner, scope, locale, safety;
};

struct CacheStats {
  std::int64_t entries = 0, bytes = 0, hits = 0, stale_hits = 0, misses = 0, avoided_tokens = 0;
  // What the hits would have cost by the prices of their time, by currency.
  std::map<std::string, Int128> avoided_cost;
};

struct LockRow {
  std::string name, owner;
  std::optional<JobId> job_id;
  UnixMs acquired_at = 0, expires_at = 0;
};

struct StoreStats {
  std::array<std::int64_t, kJobStateCount> jobs{};  // by JobState
  std::optional<UnixMs> oldest_due;                 // run_at of the longest waiting head of a lane
  std::vector<LaneHead> running;
  std::vector<Pause> pauses;
  std::vector<RateHold> holds;  // in force
  std::vector<VendorRow> vendors;
  std::vector<RateRow> rates;
  std::vector<PaceRow> paces;
  std::vector<BreakerRow> breakers;
  CacheStats cache;
  std::int64_t dlq_open = 0, locks = 0;
};

// A group of finished work by tenant, vendor or model (`aiq stats --by`).
struct StatsGroup {
  std::string name;
  std::int64_t attempts = 0, errors = 0;  // ended attempts; those that are not completed
  std::optional<DurationMs> latency_p50_ms, latency_p95_ms, latency_p99_ms;  // of completed ones
  std::optional<DurationMs> wait_p50_ms, wait_p95_ms, wait_p99_ms;  // run_at -> first start
};

struct DbInfo {
  std::string path, sqlite_version;
  std::int64_t schema_version = 0, page_size = 0, page_count = 0, free_pages = 0, wal_bytes = 0;
  UnixMs created_at = 0;
};

}  // namespace aiq
