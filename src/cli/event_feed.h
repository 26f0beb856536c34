#pragma once
// Following what happens to jobs: one short read after another, also across restarts of the daemon.

#include <cstdint>
#include <functional>

#include "cli/session.h"

namespace aiq::cli {

class EventFeed {
 public:
  // Begins after event `after`; nullopt: with what happens from now on.
  EventFeed(Session& session, std::optional<std::int64_t> after);

  // Hands over what is new, oldest first, at most a page. False: there was nothing. A database that
  // is busy for a moment counts as nothing; other failures are CommandFailed.
  bool poll(const std::function<void(const Json& event)>& each);
  // Waits a little before the next poll, longer while nothing happens.
  void pause();

 private:
  Session& session_;
  std::int64_t after_ = 0;
  DurationMs pause_ms_ = 0;
};

}  // namespace aiq::cli
