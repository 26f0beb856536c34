#pragma once
// The way of one leased job: encode -> vendor -> decode -> decide -> close. The one place where
// store and vendor meet. Everything that outlives the process is in the store; what is kept here
// is only which requests this process has on the wire.
//
// Thread-safe. Callbacks run on transfer threads and on the writer thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/engine/flow.h"
#include "core/engine/runtime.h"
#include "core/net/transport.h"
#include "core/store/rows.h"
#include "core/store/writer.h"
#include "core/vendor/vendor.h"

namespace aiq {

class AttemptRunner {
 public:
  struct Parts {
    Writer& writer;
    Transport& transport;
    RuntimeHolder& runtime;
    Clock& clock;
    Random& random;
  };
  // `ended`: called after an attempt was closed in the store: a place is free.
  AttemptRunner(Parts parts, std::function<void()> ended);

  // Puts a leased job on the wire. The lease is committed.
  void start(LeasedJob job);

  // Aborts the request of a lease that this process lost (cancelled, broken). No-op when it
  // ended before.
  void abort_lost(const std::string& token);
  // Gives every running request back (shutdown): aborted, outcome `released`.
  void release_all();

  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] std::vector<std::pair<JobId, std::string>> leases() const;
  [[nodiscard]] bool holds(const std::string& token) const;

  // Tries again to store results that the store could not take (disk full, busy). Returns how
  // many it tried.
  std::size_t retry_unstored();

 private:
  enum class Abort : std::uint8_t { none, lost, released };
  struct Running {
    LeasedJob job;
    std::shared_ptr<const Runtime> runtime;
    TransferId transfer = 0;
    Abort abort = Abort::none;
  };
  using RunningPtr = std::shared_ptr<Running>;

  [[nodiscard]] VendorCall call_of(const LeasedJob& job) const;
  void answered(const RunningPtr& running, const HttpResult& result);
  void decide_and_close(const RunningPtr& running, VendorReply reply);
  void close(std::shared_ptr<AttemptClose> close, RunningPtr running, RateReport rate);
  [[nodiscard]] static EndedRequest ended_of(const Running& running, const AttemptClose& close,
                                             const RateReport& rate);
  void closed(const std::shared_ptr<AttemptClose>& close, const RunningPtr& running,
              const CloseOutcome& outcome);

  struct Unstored {
    std::shared_ptr<AttemptClose> close;
    RunningPtr running;
    RateReport rate;
  };

  Parts parts_;
  std::function<void()> ended_;
  mutable std::mutex mutex_;
  std::map<std::string, RunningPtr> running_;  // by lease token; guarded by mutex_
  std::vector<Unstored> unstored_;             // guarded by mutex_
};

}  // namespace aiq
