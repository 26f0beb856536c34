#pragma once
// Processes as owners of something: a name that no later process with the same id has.

#include <string>
#include <string_view>

namespace aiq {

// "PID:START" of this process; START is its start time as the kernel counts it, so that a process
// which got the same id later is another one.
[[nodiscard]] std::string process_name();

// Whether the process of a name that begins "PID:START" lives, as far as this machine tells.
// Another text: false.
[[nodiscard]] bool process_lives(std::string_view name);

}  // namespace aiq
