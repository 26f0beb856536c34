#pragma once
// Batches: files of requests, each line a request of its own. Store (store.h) takes the lines in;
// here is what is taken in and what can be read of it.
//
// A line's number is its line in the file, from 1. `read_to` is the last line that was taken in:
// a slice of lines that is taken in twice, by a second shell or after a crash, changes nothing.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/store/rows.h"

namespace aiq {

enum class BatchState : std::uint8_t {
  staging,  // read and checked; nothing of it is visible (all or nothing)
  loading,  // its lines become jobs
  loaded,   // all of them did
};
[[nodiscard]] std::string_view to_string(BatchState state);

struct NewBatch {
  std::string tenant;
  std::string client_key;   // "" = none
  std::string fingerprint;  // hex SHA-256 of the file and of the options for its lines
  std::string correlation_id;
  std::string actor;
  bool atomic = false;  // begins as `staging`
};

struct BatchRow {
  std::int64_t batch_id = 0;
  std::string tenant, client_key, correlation_id;
  BatchState state = BatchState::loading;
  std::optional<std::int64_t> stage_id;
  UnixMs created_at = 0;
  std::optional<UnixMs> loaded_at;
  std::int64_t read_to = 0;
  // `lines`: taken in, blank ones left out; the sum of the others, once it is loaded.
  std::int64_t lines = 0, created = 0, existing = 0, cached = 0, rejected = 0;
};

struct BatchOpened {
  enum class Kind {
    made,
    joined,        // one of the same file: goes on at read_to
    key_conflict,  // the client key belongs to another file; nothing written
  };
  Kind kind = Kind::made;
  BatchRow batch;
};

struct BatchLine {
  std::int64_t line = 0;
  std::string custom_id;
  std::optional<NewSubmission> submission;  // nullopt: refused, by code and message, or staged
  std::string staged;                       // of a staging batch: the submission as a text
  std::string code, message;                // refused; redacted
};

// Lines `first` .. `last` of the file; blank ones are absent. No gap before `first`.
struct BatchSlice {
  std::int64_t batch_id = 0;
  std::int64_t first = 0, last = 0;
  std::vector<BatchLine> lines;
};

struct BatchError {
  std::int64_t line = 0;
  std::string code, message;
};

// One accepted line and its job.
struct BatchLineRow {
  std::int64_t line = 0;
  std::string custom_id;
  std::optional<JobId> job_id;  // nullopt: staged
  SubmissionId submission_id = 0;
  std::optional<JobState> state;  // of the job; nullopt: staged, or the job was pruned
  bool withdrawn = false;         // the line's own submission
};

// What became of one line whose job is final, or that was withdrawn.
struct BatchResult {
  BatchLineRow line;
  std::string body;  // of the vendor's answer; completed only
  std::string
      vendor_request_id;    // of the attempt that completed it, or of the last one that failed
  std::string excerpt;      // of the last failing answer
  std::string dead_reason;  // dead letters
  std::string error_class, error_code, error_message;
  std::optional<int> http_status;  // of the last failing attempt
};

// Lines by state; a withdrawn line counts as cancelled, a staged one as queued.
struct BatchCounts {
  std::array<std::int64_t, kJobStateCount> lines{};
  std::int64_t pruned = 0;      // their jobs are gone
  std::int64_t next_after = 0;  // where the next page begins; 0: that was the last
};

// Every call is one short read of at most 2 s. Lines go upwards from `after` (0 = the first).
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  virtual std::optional<BatchRow> find(std::int64_t batch_id) = 0;
  // Newest first, without those that are staging.
  virtual std::vector<BatchRow> list(const Page& page) = 0;
  virtual std::vector<BatchError> errors(std::int64_t batch_id, std::int64_t after, int limit) = 0;
  virtual std::vector<BatchLineRow> lines(std::int64_t batch_id, std::int64_t after, int limit) = 0;
  virtual BatchCounts count(std::int64_t batch_id, std::int64_t after, int limit) = 0;

  struct Results {
    std::vector<BatchResult> rows;  // final ones only
    std::int64_t open = 0;          // lines of this page that are not
    std::int64_t next_after = 0;    // 0: that was the last page
  };
  // Looks at `limit` lines, or fewer once the bodies have `max_bytes` together.
  virtual Results results(std::int64_t batch_id, std::int64_t after, int limit,
                          std::int64_t max_bytes) = 0;
};

}  // namespace aiq
