#include "cli/event_feed.h"

#include <algorithm>

#include "core/base/sleep.h"

namespace aiq::cli {
namespace {

constexpr DurationMs kShortestPauseMs = 20;
constexpr DurationMs kLongestPauseMs = 200;

}  // namespace

EventFeed::EventFeed(Session& session, std::optional<std::int64_t> after) : session_(session) {
  if (after) {
    after_ = *after;
  } else {
    after_ = session.call("events", {{"from_now", true}}).at("next_after").get<std::int64_t>();
  }
}

bool EventFeed::poll(const std::function<void(const Json&)>& each) {
  const auto page = session_.try_call("events", {{"after", after_}});
  if (!page) {
    if (page.error().exit == Exit::busy) return false;
    throw CommandFailed(page.error());
  }
  for (const Json& event : page->at("rows"))
    each(event);
  after_ = page->at("next_after").get<std::int64_t>();
  const bool any = !page->at("rows").empty();
  if (any) pause_ms_ = 0;
  return any;
}

void EventFeed::pause() {
  pause_ms_ = std::clamp(pause_ms_ * 2, kShortestPauseMs, kLongestPauseMs);
  sleep_ms(pause_ms_);
}

}  // namespace aiq::cli
