#pragma once
// The simulator's own paths, under /__sim/: release, rules, state. Not vendor calls: neither in
// the journal nor under the limits.

#include <string_view>

#include "core/base/clock.h"
#include "sim/message.h"
#include "sim/plan.h"
#include "sim/simulator.h"
#include "sim/waiting_room.h"

namespace aiq::sim {

[[nodiscard]] inline bool is_control_path(std::string_view path) {
  return path.substr(0, 7) == "/__sim/";
}

// Does what the request asks and gives the answer.
[[nodiscard]] Plan control(const Request& request, Simulator& simulator, WaitingRoom& room,
                           MonoMs now);

}  // namespace aiq::sim
