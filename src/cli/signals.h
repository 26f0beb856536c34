#pragma once
// SIGINT and SIGTERM end `aiq` at once with 130 and 143: what is durable stays, what is not is as
// if it had never been asked for. The exception is a line on standard output that is half written:
// it is finished first (a second signal ends that, too). SIGPIPE is ignored.

#include <string>
#include <string_view>

namespace aiq::cli {

void install_signals();

// What standard error gets when a signal ends the process: what goes on without it, and how to
// come back to it. At most 250 bytes are kept.
void set_farewell(std::string_view line);
// Whether a progress line stands on the terminal, to be cleared first.
void set_progress_shown(bool shown);

// Writes whole lines to standard output; after a signal only up to the end of the current line,
// then the process ends. Returns 0 or errno.
[[nodiscard]] int write_stdout(std::string_view lines);

}  // namespace aiq::cli
