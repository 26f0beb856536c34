#include "core/engine/retention.h"

#include <optional>

namespace aiq {

PruneRules prune_rules(const RetentionConfig& retention, UnixMs now) {
  const auto before = [now](std::optional<DurationMs> age) -> std::optional<UnixMs> {
    if (!age) return std::nullopt;
    return now - *age;
  };
  return {.completed = before(retention.completed_ms),
          .failed = before(retention.failed_ms),
          .cancelled = before(retention.cancelled_ms),
          .client_keys = before(retention.client_keys_ms),
          .outbox = before(retention.outbox_ms),
          .attempts = before(retention.attempts_ms)};
}

}  // namespace aiq
