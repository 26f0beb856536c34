#pragma once
// [retention] as moments in time.

#include "core/config/config.h"
#include "core/store/prune.h"

namespace aiq {

// What is older at `now` than the configuration wants it kept.
[[nodiscard]] PruneRules prune_rules(const RetentionConfig& retention, UnixMs now);

}  // namespace aiq
