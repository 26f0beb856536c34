#include "core/model/attempt.h"

#include <array>
#include <cstddef>

#include "core/base/check.h"

namespace aiq {
namespace {

constexpr std::array<std::string_view, 18> kOutcomeNames = {
    "completed",       "rate_limited",       "vendor_quota",  "overloaded", "server_error",
    "connect_timeout", "first_byte_timeout", "total_timeout", "network",    "bad_response",
    "empty_response",  "rejected",           "auth",          "unknown",    "lease_lost",
    "cancelled",       "released",           "crashed"};
static_assert(static_cast<std::size_t>(Outcome::crashed) + 1 == kOutcomeNames.size());

}  // namespace

std::string_view to_string(Outcome outcome) {
  return kOutcomeNames.at(static_cast<std::size_t>(outcome));
}

std::optional<Outcome> parse_outcome(std::string_view name) {
  for (std::size_t i = 0; i < kOutcomeNames.size(); ++i) {
    if (kOutcomeNames[i] == name) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

bool counts(Outcome outcome) {
  switch (outcome) {
    case Outcome::rate_limited:
    case Outcome::vendor_quota:
    case Outcome::auth:
    case Outcome::released:
    case Outcome::cancelled:
    case Outcome::lease_lost:
      return false;
    default:
      return true;
  }
}

std::string_view to_string(Billed billed) {
  switch (billed) {
    case Billed::no:
      return "no";
    case Billed::yes:
      return "yes";
    case Billed::maybe:
      return "maybe";
  }
  AIQ_CHECK(false);
}

std::string_view to_string(UsageState state) {
  switch (state) {
    case UsageState::none:
      return "none";
    case UsageState::ok:
      return "ok";
    case UsageState::missing:
      return "missing";
    case UsageState::invalid:
      return "invalid";
  }
  AIQ_CHECK(false);
}

}  // namespace aiq
