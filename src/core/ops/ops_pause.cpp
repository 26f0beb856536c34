#include "core/base/names.h"
#include "core/base/redact.h"
#include "core/base/spelling.h"
#include "core/engine/submit.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

constexpr std::size_t kReasonBytes = 500;

struct Scope {
  std::string vendor, model, tenant;  // "" = any
};

Json json_scope(const Scope& scope) {
  return {{"vendor", json_text(scope.vendor)},
          {"model", json_text(scope.model)},
          {"tenant", json_text(scope.tenant)}};
}

Scope read_scope(Input& in) {
  Scope out{in.text("vendor"), in.text("model"), in.text("tenant")};
  if (!out.model.empty() && out.vendor.empty())
    in.problem("missing_option", "a model is paused at a vendor: name the vendor too");
  if (!out.vendor.empty() && !is_label_name(out.vendor))
    in.problem("invalid_vendor", out.vendor + " is not a vendor name");
  if (!out.model.empty() && !is_label_name(out.model))
    in.problem("invalid_model", out.model + " is not a model name");
  if (!out.tenant.empty() && !is_tenant_name(out.tenant))
    in.problem("invalid_tenant", out.tenant + " is not a tenant name");
  return out;
}

// A name of a scope that is in no section of the configuration.
struct Unconfigured {
  Failure failure;
  Scope seen;  // a lane of it would make it known all the same
};

Failure unknown(const std::string& kind, const std::string& name,
                const std::vector<std::string>& known) {
  return {Exit::not_found, "no_such_" + kind, kind + " " + name + " is not configured",
          did_you_mean(name, known)};
}

std::vector<Unconfigured> unconfigured(const Config& config, const Scope& scope) {
  std::vector<Unconfigured> out;
  if (!scope.vendor.empty() && !config.vendors.contains(scope.vendor)) {
    out.push_back({unknown("vendor", scope.vendor, names_of(config.vendors)), {}});
    out.back().seen.vendor = scope.vendor;
  }
  if (!scope.model.empty() && !config.models.contains(scope.model)) {
    out.push_back({unknown("model", scope.model, names_of(config.models)), {}});
    out.back().seen.vendor = scope.vendor;
    out.back().seen.model = scope.model;
  }
  if (!scope.tenant.empty() && !accepts_tenant(config, scope.tenant)) {
    out.push_back({unknown("tenant", scope.tenant, names_of(config.tenants)), {}});
    out.back().seen.tenant = scope.tenant;
  }
  return out;
}

// Models and tenants need no section; one that ever had a job is no misspelling.
std::optional<Failure> first_unknown(Reader& reader, const std::vector<Unconfigured>& names) {
  for (const Unconfigured& name : names) {
    const Scope& seen = name.seen;
    if (!reader.lane_exists(seen.vendor, seen.model, seen.tenant)) return name.failure;
  }
  return std::nullopt;
}

Expected<WriteStep, Failure> prepare_pause(const OpEnv& env, const Json& json) {
  Input in(json, {"vendor", "model", "tenant", "reason", "until"});
  const Scope scope = read_scope(in);
  const std::string reason = redact(in.text("reason"));
  if (!is_plain_text(reason, kReasonBytes))
    in.problem("invalid_reason", "the reason is longer than 500 bytes or has control characters");
  const auto until = in.instant("until");
  const UnixMs now = env.clock.wall_ms();
  if (until && *until <= now) in.problem("invalid_option", "until: that time has passed");
  if (in.failure()) return Unexpected{*in.failure()};

  const Pause pause{.vendor = scope.vendor,
                    .model = scope.model,
                    .tenant = scope.tenant,
                    .cause = "operator",
                    .reason = reason,
                    .until = until,
                    .actor = env.actor,
                    .created_at = now};
  return WriteStep([pause, scope, names = unconfigured(env.config, scope)](
                       Store& store) -> Expected<OpResult, Failure> {
    if (auto failure = first_unknown(store, names)) return Unexpected{*failure};
    store.set_pause(pause);
    Json paused = json_scope(scope);
    paused["reason"] = json_text(pause.reason);
    paused["until"] = json_time(pause.until);
    OpResult result;
    result.out["paused"] = std::move(paused);
    return result;
  });
}

Expected<WriteStep, Failure> prepare_resume(const OpEnv& env, const Json& json) {
  Input in(json, {"vendor", "model", "tenant"});
  const Scope scope = read_scope(in);
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([scope, names = unconfigured(env.config, scope)](
                       Store& store) -> Expected<OpResult, Failure> {
    const int resumed = store.clear_pause(scope.vendor, scope.model, scope.tenant);
    OpResult result;
    result.out["resumed"] = resumed;
    // Nothing was paused: fine when asked twice, worth a word when the name is a misspelling.
    if (resumed == 0) {
      if (const auto failure = first_unknown(store, names)) {
        const std::string hint = failure->hint.empty() ? "" : "; " + failure->hint;
        result.out["warnings"] = Json::array({failure->message + hint});
      }
    }
    return result;
  });
}

constexpr Op kOps[] = {
    {.name = "pause", .prepare = prepare_pause},
    {.name = "resume", .prepare = prepare_resume},
};

}  // namespace

std::span<const Op> pause_ops() {
  return kOps;
}

}  // namespace aiq
