#pragma once
// A dead letter's request, changed by an operator: the same checks and keys as a submit of the new
// one would have. No database.

#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/expected.h"
#include "core/base/random.h"
#include "core/config/config.h"
#include "core/store/rows.h"

namespace aiq {

struct PointerValue {
  std::string pointer;  // RFC 6901
  std::string value;    // JSON, as it will stand in the body
};

// What to change; nothing set changes nothing.
struct EditInput {
  std::vector<PointerValue> set;       // in this order
  std::optional<std::string> request;  // a whole body; excludes `set`
  std::string model, vendor;           // "" = as the body and the configuration say
};

// Whether the pointers and values can be read at all. Failure: exit 2.
[[nodiscard]] std::optional<Failure> check_edit(const EditInput& input);

// The edit of `payload`, which was asked for by `tenant`. The vendor stays unless it is named or
// the model changes. The endpoint stays; with a whole new body, it is the vendor's default when it
// has not the old one. Failures: as prepare_submission(), and exit 2 (no_such_place) for a pointer
// that leads nowhere. Adds to `warnings`.
[[nodiscard]] Expected<DeadLetterEdit, Failure> prepare_edit(
    const Config& config, const std::string& tenant, const LetterPayload& payload,
    const EditInput& input, UnixMs now, Random& random, std::vector<std::string>& warnings);

}  // namespace aiq
