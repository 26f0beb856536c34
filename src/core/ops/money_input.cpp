#include "core/ops/money_input.h"

#include "core/base/names.h"
#include "core/ops/money_render.h"

namespace aiq {

std::optional<UnixMs> read_hour(Input& in, const char* name) {
  const auto at = in.instant(name);
  if (at && !is_hour(*at))
    in.problem("invalid_period", std::string(name) + " must be the start of an hour in UTC, " +
                                     format_rfc3339(*at) + " is none");
  return at;
}

PeriodScope read_scope(Input& in) {
  PeriodScope out;
  out.tenant = in.text("tenant");
  if (!out.tenant.empty() && !is_tenant_name(out.tenant))
    in.problem("invalid_tenant", out.tenant + " is not a tenant name");
  out.from = read_hour(in, "from");
  out.to = read_hour(in, "to");
  if (out.from && out.to && *out.from >= *out.to)
    in.problem("invalid_period", "from must be before to");
  return out;
}

std::string read_currency(Input& in) {
  std::string out = in.text("currency");
  if (!out.empty() && !is_currency(out))
    in.problem("invalid_currency", out + " is not a currency such as USD");
  return out;
}

std::string read_note(Input& in, const char* name) {
  std::string out = in.text(name);
  if (!is_plain_note(out))
    in.problem("invalid_" + std::string(name),
               std::string(name) + ": at most 500 bytes without control characters");
  return out;
}

std::string read_by(Input& in, const OpEnv& env) {
  std::string out = read_note(in, "by");
  return out.empty() ? env.actor : out;
}

}  // namespace aiq
