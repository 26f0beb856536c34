#include "core/base/names.h"
#include "core/base/redact.h"
#include "core/money/import_lines.h"
#include "core/ops/money_input.h"
#include "core/ops/op_groups.h"

namespace aiq {
namespace {

// Of one call; `aiq` cuts a file into as many as it needs.
constexpr std::size_t kLinesPerCall = 500;

struct ParsedRow {
  std::int64_t number = 0;
  ImportRow row;
};

struct ImportCall {
  std::string import_id, actor;
  UnixMs now = 0;
  std::vector<ParsedRow> rows;
  Json errors = Json::array();
};

Json line_error(std::int64_t number, const LineError& error) {
  return {{"line", number}, {"code", error.code}, {"message", redact(error.message)}};
}

Imported write(CostAudit& audit, const ImportRow& row, const ImportCall& call) {
  struct {
    CostAudit& audit;
    const ImportCall& call;
    Imported operator()(const UsageEvent& r) const { return audit.import_usage(r); }
    Imported operator()(const LedgerRow& r) const { return audit.import_ledger(r); }
    Imported operator()(const SummaryRow& r) const { return audit.import_summary(r, call.now); }
    Imported operator()(const RunRow& r) const { return audit.import_run(r); }
    Imported operator()(const CreditNote& r) const { return audit.import_credit(r); }
    Imported operator()(const ImportedInvoice& r) const {
      return audit.import_invoice(r, call.actor);
    }
  } const writer{audit, call};
  return std::visit(writer, row);
}

Expected<OpResult, Failure> carry_out(Store& store, const ImportCall& call) {
  std::int64_t imported = 0, duplicates = 0, conflicts = 0;
  std::set<TenantPeriod> touched;
  Json errors = call.errors;
  for (const ParsedRow& parsed : call.rows) {
    switch (write(store.audit(), parsed.row, call)) {
      case Imported::imported:
        ++imported;
        touched.merge(hours_of(parsed.row));
        break;
      case Imported::duplicate:
        ++duplicates;
        break;
      case Imported::conflict:
        ++conflicts;
        touched.merge(hours_of(parsed.row));
        errors.push_back(line_error(
            parsed.number,
            {"import_conflict", describe(parsed.row) + " is there with another content"}));
        break;
    }
  }
  store.audit().freeze_import("import:" + call.import_id, touched, call.actor, call.now);
  OpResult result;
  result.out = {{"imported", imported},
                {"duplicates", duplicates},
                {"conflicts", conflicts},
                {"errors", std::move(errors)},
                {"import_id", call.import_id}};
  return result;
}

template <ImportKind kind>
Expected<WriteStep, Failure> prepare(const OpEnv& env, const Json& json) {
  Input in(json, {"lines", "first_line", "source", "import_id"});
  const std::vector<std::string> lines = in.texts("lines");
  const std::int64_t first = in.whole("first_line", 1, INT64_MAX / 2).value_or(1);
  const std::string source = in.maybe_text("source").value_or("import");
  if (!is_label_name(source) || source.find('/') != std::string::npos)
    in.problem("invalid_source", "source is a name of letters, digits and . _ : -");
  ImportCall call;
  // The slices of one file share an id; the first answer gives it.
  call.import_id = in.maybe_text("import_id").value_or(env.random.token().substr(0, 12));
  if (!is_tenant_name(call.import_id)) in.problem("invalid_import_id", "import_id is a name");
  if (lines.size() > kLinesPerCall)
    in.problem("too_many_lines", "one call takes at most 500 lines");
  if (in.failure()) return Unexpected{*in.failure()};
  call.now = env.clock.wall_ms();
  call.actor = env.actor;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::int64_t number = first + static_cast<std::int64_t>(i);
    if (lines[i].find_first_not_of(" \t\r") == std::string::npos) continue;
    auto row = parse_import_line(kind, lines[i], source, call.now);
    if (!row) {
      call.errors.push_back(line_error(number, row.error()));
      continue;
    }
    if (auto* run = std::get_if<RunRow>(&*row)) run->actor = env.actor;
    call.rows.push_back({number, std::move(*row)});
  }
  return WriteStep([call = std::move(call)](Store& store) { return carry_out(store, call); });
}

constexpr Op kOps[] = {
    {.name = "import.usage",
     .prepare = prepare<ImportKind::usage>,
     .priority = WritePriority::maintenance},
    {.name = "import.ledger",
     .prepare = prepare<ImportKind::ledger>,
     .priority = WritePriority::maintenance},
    {.name = "import.summary",
     .prepare = prepare<ImportKind::summary>,
     .priority = WritePriority::maintenance},
    {.name = "import.runs",
     .prepare = prepare<ImportKind::runs>,
     .priority = WritePriority::maintenance},
    {.name = "import.credits",
     .prepare = prepare<ImportKind::credits>,
     .priority = WritePriority::maintenance},
    {.name = "import.invoices",
     .prepare = prepare<ImportKind::invoices>,
     .priority = WritePriority::maintenance},
};

}  // namespace

std::span<const Op> import_ops() {
  return kOps;
}

}  // namespace aiq
