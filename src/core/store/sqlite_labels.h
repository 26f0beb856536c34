#pragma once
// requests.labels: a JSON object of strings, as this program writes it.

#include <string>
#include <string_view>

#include "core/store/rows.h"

namespace aiq {

[[nodiscard]] std::string print_labels(const Labels& labels);
[[nodiscard]] Labels parse_labels(std::string_view json);

}  // namespace aiq
