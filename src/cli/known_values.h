#pragma once
// The values that the database and the configuration know, for completion.

#include <vector>

#include "cli/complete.h"

namespace aiq::cli {

// A bounded number, the newest first; read-only, without the daemon. What can't be read is not
// there: nothing is thrown or printed.
[[nodiscard]] std::vector<Candidate> known_values(ValueKind kind, const GivenOptions& given);

}  // namespace aiq::cli
