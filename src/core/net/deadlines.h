#pragma once
// The next moment at which each transfer of a thread must be looked at, earliest first.

#include <limits>
#include <map>
#include <optional>

#include "core/base/clock.h"

namespace aiq {

class Transfer;

inline constexpr MonoMs kNoDeadline = std::numeric_limits<MonoMs>::max();

// Not thread-safe: each transfer thread has its own.
class Deadlines {
 public:
  using Entry = std::multimap<MonoMs, Transfer*>::iterator;

  [[nodiscard]] Entry add(Transfer* transfer, MonoMs at) { return entries_.emplace(at, transfer); }
  [[nodiscard]] Entry move(Entry entry, MonoMs at) {
    Transfer* const transfer = entry->second;
    entries_.erase(entry);
    return entries_.emplace(at, transfer);
  }
  void remove(Entry entry) { entries_.erase(entry); }
  [[nodiscard]] std::optional<MonoMs> earliest() const {
    if (entries_.empty() || entries_.begin()->first == kNoDeadline) return std::nullopt;
    return entries_.begin()->first;
  }
  // A transfer whose moment is not after `now`; nullptr when there is none.
  [[nodiscard]] Transfer* due(MonoMs now) const {
    const auto at = earliest();
    return at && *at <= now ? entries_.begin()->second : nullptr;
  }

 private:
  std::multimap<MonoMs, Transfer*> entries_;
};

}  // namespace aiq
