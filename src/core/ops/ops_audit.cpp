#include <algorithm>

#include "core/money/audit.h"
#include "core/ops/money_input.h"
#include "core/ops/money_render.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

AuditScope read_audit_scope(Input& in, const OpEnv& env) {
  const PeriodScope hours = read_scope(in);
  AuditScope out = audit_scope(env.config, env.clock.wall_ms());
  out.tenant = hours.tenant;
  out.from = hours.from;
  out.to = hours.to;
  return out;
}

// Members that hold exact amounts come out of SQL as `NAME_pico` and are shown as decimals, too.
Json json_detail(const std::string& text) {
  Json out = Json::object();
  const Json detail = Json::parse(text);
  constexpr std::string_view kPicoSuffix = "_pico";
  for (const auto& [name, value] : detail.items()) {
    if (name.ends_with(kPicoSuffix) && value.is_string()) {
      const auto pico = parse_int128(value.get_ref<const std::string&>());
      AIQ_CHECK(pico.has_value());
      out[name.substr(0, name.size() - kPicoSuffix.size())] = json_money(*pico);
    } else {
      out[name] = value;
    }
  }
  return out;
}

Json json_finding(const Finding& f) {
  return {{"finding_id", f.finding_id},
          {"code", f.code},
          {"severity", to_string(f.severity)},
          {"tenant", f.row.tenant},
          {"period_start", format_rfc3339(f.row.period)},
          {"amount", f.row.amount ? json_money(*f.row.amount) : Json(nullptr)},
          {"currency", json_text(f.row.currency)},
          {"refs", Json::parse(f.row.refs)},
          {"detail", json_detail(f.row.detail)},
          {"acknowledged_by", json_text(f.acknowledged_by)}};
}

Expected<Json, Failure> audit(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "from", "to", "check"});
  const AuditScope scope = read_audit_scope(in, env);
  std::vector<std::string> checks = in.texts("check");
  const std::vector<std::string> known = reader.audit().codes();
  for (const std::string& code : checks) {
    if (std::find(known.begin(), known.end(), code) == known.end())
      in.problem("invalid_check", "there is no check " + code + "; `aiq audit --list` names them");
  }
  if (in.failure()) return Unexpected{*in.failure()};
  if (checks.empty()) checks = default_checks(reader.audit());
  Json findings = Json::array(), by_code = Json::object();
  std::int64_t open = 0;
  for (const std::string& code : checks) {
    const std::vector<Finding> found = run_check(reader.audit(), code, scope);
    if (!found.empty()) by_code[code] = found.size();
    for (const Finding& finding : found) {
      open += is_open_error(finding) ? 1 : 0;
      findings.push_back(json_finding(finding));
    }
  }
  return Json{{"findings", std::move(findings)},
              {"checks", checks.size()},
              {"by_code", std::move(by_code)},
              {"unacknowledged_errors", open}};
}

Expected<Json, Failure> list_checks(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {});
  if (in.failure()) return Unexpected{*in.failure()};
  const std::vector<std::string> usual = default_checks(reader.audit());
  Json rows = Json::array();
  for (const std::string& code : reader.audit().codes()) {
    rows.push_back({{"code", code},
                    {"severity", to_string(severity_of(code))},
                    {"default", std::find(usual.begin(), usual.end(), code) != usual.end()}});
  }
  return Json{{"rows", std::move(rows)}, {"next_after", nullptr}};
}

Expected<Json, Failure> totals(const OpEnv& env, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "from", "to"});
  const AuditScope scope = read_audit_scope(in, env);
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array(), negative = Json::array();
  for (const AuditTotals& t : reader.audit().totals(scope)) {
    rows.push_back({{"tenant", t.tenant},
                    {"currency", json_text(t.currency)},
                    {"events", t.events},
                    {"units", format_int128(t.units)},
                    {"ledger_rows", t.ledger_rows},
                    {"amount", json_money(t.amount)}});
  }
  for (const NegativeSummary& n : reader.audit().negative_summaries(scope)) {
    negative.push_back({{"tenant", n.unit.tenant},
                        {"period_start", format_rfc3339(n.unit.period)},
                        {"currency", n.currency},
                        {"amount", json_money(n.total)}});
  }
  return Json{{"totals", std::move(rows)}, {"negative_summaries", std::move(negative)}};
}

std::optional<Finding> find(CostAudit& audit, const std::string& id, const AuditScope& scope) {
  for (const std::string& code : audit.codes()) {
    for (Finding& finding : run_check(audit, code, scope))
      if (finding.finding_id == id) return std::move(finding);
  }
  return std::nullopt;
}

Expected<WriteStep, Failure> prepare_ack(const OpEnv& env, const Json& json) {
  Input in(json, {"finding_id", "reason", "by"});
  const AuditScope scope = read_audit_scope(in, env);
  AuditAck ack{.finding_id = in.required_text("finding_id"),
               .reason = read_note(in, "reason"),
               .actor = read_by(in, env),
               .created_at = scope.now};
  if (ack.reason.empty()) in.problem("missing_option", "reason is missing: say why it is accepted");
  if (in.failure()) return Unexpected{*in.failure()};
  return WriteStep([ack, scope](Store& store) -> Expected<OpResult, Failure> {
    const auto finding = find(store.audit(), ack.finding_id, scope);
    if (!finding)
      return Unexpected{Failure{Exit::not_found, "no_such_finding",
                                "the audit has no finding " + ack.finding_id,
                                "`aiq audit` shows the findings there are"}};
    AuditAck row = ack;
    row.code = finding->code;
    row.tenant = finding->row.tenant;
    (void)store.audit().add_ack(row);
    Finding shown = *finding;
    shown.acknowledged_by = store.audit().ack(ack.finding_id)->actor;
    OpResult result;
    result.out = json_finding(shown);
    return result;
  });
}

constexpr Op kOps[] = {
    {.name = "audit", .read = audit},
    {.name = "audit.list", .read = list_checks},
    {.name = "audit.totals", .read = totals},
    {.name = "audit.ack", .prepare = prepare_ack},
};

}  // namespace

std::span<const Op> audit_ops() {
  return kOps;
}

}  // namespace aiq
