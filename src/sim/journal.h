#pragma once
// The journal: one JSON line per vendor call received, written before it is answered, so that
// "sent exactly once" can be proved from the other side of the wire.

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/file.h"
#include "sim/api_request.h"
#include "sim/message.h"

namespace aiq::sim {

struct JournalEntry {
  std::uint64_t sequence = 0;
  UnixMs at = 0;
  std::string rule;           // "" = null
  std::string limited;        // the limit that refused it; "" = null
  std::optional<int> status;  // none: no answer at all
  std::string ending;         // "close" "reset" "cut" "hold"; "" = answered whole and at once
  Json usage;                 // as in the answer, or null
};

// The line with its newline. Headers that carry credentials are left out; their presence is
// "authorized".
[[nodiscard]] std::string journal_line(const JournalEntry& entry, const Request& request,
                                       const ApiRequest& api);

// Whether a header (lower case) may carry a credential.
[[nodiscard]] bool is_secret_header(std::string_view name);

// The file, opened for appending (made with mode 0600). Not thread-safe.
class Journal {
 public:
  [[nodiscard]] static Expected<Journal, FileError> open(const std::string& path);

  // True when the whole line is with the kernel: it outlives this process.
  [[nodiscard]] bool write(std::string_view line);

 private:
  explicit Journal(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace aiq::sim
