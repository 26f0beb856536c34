#pragma once
// Members that the operations of money share.

#include <string>

#include "core/ops/input.h"
#include "core/store/cost_ledger.h"

namespace aiq {

// tenant, from, to: hours, "" and absent = no bound. Problems: invalid_tenant, invalid_period.
[[nodiscard]] PeriodScope read_scope(Input& in);
// A time that begins an hour; nullopt when absent.
[[nodiscard]] std::optional<UnixMs> read_hour(Input& in, const char* name);
// Three capital letters; "" when absent.
[[nodiscard]] std::string read_currency(Input& in);
// A note of a person: a reason, a name. "" when absent.
[[nodiscard]] std::string read_note(Input& in, const char* name);
// `by`, or who runs the command.
[[nodiscard]] std::string read_by(Input& in, const OpEnv& env);

}  // namespace aiq
