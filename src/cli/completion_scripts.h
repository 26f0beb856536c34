#pragma once
// The scripts that `aiq completion` prints. They know nothing of aiq's commands: each asks
// `aiq __complete`, which reads the command tree.

#include <string_view>

namespace aiq::cli {

// `shell`: one of fixed_values(ValueKind::shell).
[[nodiscard]] std::string_view completion_script(std::string_view shell);

}  // namespace aiq::cli
