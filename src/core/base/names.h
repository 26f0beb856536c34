#pragma once
// Grammar of the names that reach the database (contract, section 2).

#include <cstddef>
#include <string_view>

namespace aiq {

// Tenant: [A-Za-z0-9._-]{1,64}
[[nodiscard]] bool is_tenant_name(std::string_view name);
// Vendor, model, label key: [A-Za-z0-9._:/-]{1,128}
[[nodiscard]] bool is_label_name(std::string_view name);
// Free text that becomes part of a row: at most `max_bytes`, valid UTF-8, no control characters.
[[nodiscard]] bool is_plain_text(std::string_view text, std::size_t max_bytes);

}  // namespace aiq
