#pragma once
// The adapters, one static object each; find_vendor() hands them out.

#include "core/vendor/vendor.h"

namespace aiq {

[[nodiscard]] const Vendor& openai_vendor();
[[nodiscard]] const Vendor& anthropic_vendor();
[[nodiscard]] const Vendor& echo_vendor();

}  // namespace aiq
