// aiq cost aggregate, rebuild, credit, reverse, reprice, freeze, unfreeze

#include <map>

#include "cli/commands.h"
#include "cli/cost_options.h"
#include "cli/render.h"
#include "cli/values.h"
#include "core/base/money.h"
#include "core/base/process.h"
#include "core/base/random.h"

namespace aiq::cli {
namespace {

void print_object(Session& session, const Json& object, const std::vector<std::string>& skip = {}) {
  if (session.out.json()) {
    session.out.object(object);
  } else {
    print_members(session.out, object, skip);
  }
}

// ---- aggregate, rebuild: step by step, so that nobody waits long for the database

Exit aggregate(Session& session, const ScopeOptions& scope) {
  Json in = scope.input();
  const std::string call = system_random().token();
  in["call_id"] = call;
  in["owner"] = process_name() + ":" + call;
  for (;;) {
    Json answer = session.call("cost.aggregate", in);
    if (answer.at("done").get<bool>()) {
      session.out.progress("");
      answer.erase("done");
      print_object(session, answer);
      const bool all_busy = answer.at("busy").get<std::int64_t>() > 0 &&
                            answer.at("periods").get<std::int64_t>() == 0;
      if (!all_busy) return Exit::ok;
      throw CommandFailed({Exit::busy, "busy", "another process is aggregating these hours",
                           "it will post them; `aiq cost runs` shows how far it is"});
    }
    session.out.progress(answer.at("posted").dump() + " posted");
    in["state"] = answer.at("state");
  }
}

struct RebuildOptions {
  ScopeOptions scope;
  bool verify = false;
};

Exit rebuild(Session& session, const RebuildOptions& o) {
  Json in = o.scope.input();
  std::int64_t periods = 0, changed = 0, held = 0;
  Json deltas = Json::array();
  std::string hash;
  for (;;) {
    const Json answer = session.call(o.verify ? "cost.verify" : "cost.rebuild", in);
    periods += answer.at("periods").get<std::int64_t>();
    changed += answer.at("changed").get<std::int64_t>();
    held += answer.at("held").get<std::int64_t>();
    for (const Json& delta : answer.at("deltas"))
      deltas.push_back(delta);
    hash = answer.at("content_hash").get<std::string>();
    if (answer.at("done").get<bool>()) break;
    in["after"] = answer.at("after");
    in["content_hash"] = hash;
    session.out.progress(std::to_string(periods) + " hours");
  }
  session.out.progress("");
  Output& out = session.out;
  if (held > 0) {
    out.warn(std::to_string(held) +
             " tenant-hours of an import stay as they were found until `aiq repair apply` or "
             "`aiq cost unfreeze`");
  }
  const Json answer = {
      {"periods", periods}, {"changed", changed}, {"deltas", deltas}, {"content_hash", hash}};
  print_object(session, answer, {"deltas"});
  if (!out.json() && !deltas.empty()) {
    Table table = out.table({{"TENANT", false, true},
                             {"HOUR"},
                             {"CURRENCY"},
                             {"BEFORE", true},
                             {"AFTER", true},
                             {"DELTA", true}});
    for (const Json& delta : deltas)
      table.add({member_text(delta, "tenant"), member_text(delta, "period_start"),
                 member_text(delta, "currency"), member_text(delta, "before"),
                 member_text(delta, "after"), member_text(delta, "delta")});
    out.line("");
    out.text(table.take());
  }
  return o.verify && changed > 0 ? Exit::no : Exit::ok;
}

// ---- credit, reverse

struct CreditOptions {
  Text tenant, period, amount, currency, reason, approved_by, id;
  bool allow_negative = false;
};

Exit credit(Session& session, const CreditOptions& o) {
  Json in = Json::object();
  set_text(in, "tenant", o.tenant);
  set_time(in, "period", "--period", o.period);
  set_text(in, "amount", o.amount);
  set_text(in, "currency", o.currency);
  set_text(in, "reason", o.reason);
  set_text(in, "approved_by", o.approved_by);
  set_text(in, "id", o.id);
  set_flag(in, "allow_negative", o.allow_negative);
  print_object(session, session.call("cost.credit", in));
  return Exit::ok;
}

struct ReverseOptions {
  Text id, reason, by;
};

Exit reverse(Session& session, const ReverseOptions& o) {
  Json in = {{"ledger_id", *o.id}};
  set_text(in, "reason", o.reason);
  set_text(in, "by", o.by);
  print_object(session, session.call("cost.reverse", in));
  return Exit::ok;
}

struct RepriceOptions {
  ScopeOptions scope;
  Text reason, by;
  bool dry_run = false;
};

void print_changes(Output& out, const Json& rows) {
  if (rows.empty()) return;
  Table table = out.table({{"ROW", true},
                           {"TENANT", false, true},
                           {"EVENT", false, true},
                           {"HOUR"},
                           {"BEFORE", true},
                           {"AFTER", true},
                           {"DELTA", true},
                           {"CURRENCY"}});
  for (const Json& row : rows)
    table.add({member_text(row, "ledger_id"), member_text(row, "tenant"),
               member_text(row, "event_id"), member_text(row, "period_start"),
               member_text(row, "before"), member_text(row, "after"), member_text(row, "delta"),
               member_text(row, "currency")});
  out.text(table.take());
}

Exit reprice(Session& session, const RepriceOptions& o) {
  Json in = o.scope.input();
  set_text(in, "reason", o.reason);
  set_text(in, "by", o.by);
  Output& out = session.out;
  std::int64_t changed = 0, skipped = 0;
  std::map<std::string, Int128> totals;
  Json rows = Json::array();
  for (;;) {
    const Json answer = session.call(o.dry_run ? "cost.reprice.plan" : "cost.reprice", in);
    skipped += answer.at("skipped").get<std::int64_t>();
    for (const Json& row : answer.at("rows")) {
      if (!o.dry_run && row.at("posted").is_null()) continue;
      ++changed;
      totals[row.at("currency").get<std::string>()] +=
          parse_money(row.at("delta").get<std::string>()).value();
      rows.push_back(row);
    }
    if (!out.json()) {
      print_changes(out, rows);
      rows.clear();
    }
    if (answer.at("next_after").is_null()) break;
    in["after"] = answer.at("next_after");
  }
  Json delta = Json::object();
  for (const auto& [currency, total] : totals)
    delta[currency] = format_money(total);
  Json summary = {{"changed", changed}, {"skipped", skipped}, {"delta", delta}};
  if (out.json()) summary["rows"] = std::move(rows);
  if (skipped > 0) {
    out.warn(std::to_string(skipped) +
             " rows can't be corrected by a posting: the price is gone, in another currency, or "
             "its correction was taken back");
  }
  print_object(session, summary);
  return Exit::ok;
}

// ---- freezes

struct FreezeOptions {
  Text tenant, period, from, to, until, reason, by;

  [[nodiscard]] Json input(UnixMs now) const {
    Json in = Json::object();
    set_text(in, "tenant", tenant);
    set_time(in, "period", "--period", period);
    set_time(in, "from", "--from", from);
    set_time(in, "to", "--to", to);
    if (until) in["until"] = format_rfc3339(future_value("--until", *until, now));
    set_text(in, "reason", reason);
    set_text(in, "by", by);
    return in;
  }
};

void add_freeze_scope(Command& command, FreezeOptions& o) {
  command.option("tenant", "T", o.tenant, "Of this tenant", ValueKind::tenant)
      .option("period", "T", o.period, "The hour that begins then")
      .option("from", "T", o.from, "Or all hours from this one")
      .option("to", "T", o.to, "Up to this one, which is not included")
      .option("reason", "TEXT", o.reason, "Why")
      .option("by", "WHO", o.by, "Who decided");
}

void add_freezes(Command cost, Session& session) {
  auto freeze_options = std::make_shared<FreezeOptions>();
  Command freeze = cost.add("freeze", "stop postings of usage into hours of a tenant");
  add_freeze_scope(freeze, *freeze_options);
  freeze.option("until", "T", freeze_options->until, "Until a time, or for a duration");
  freeze.run([freeze_options, &session] {
    const Json in = freeze_options->input(session.clock().wall_ms());
    print_object(session, session.call("cost.freeze", in));
    return Exit::ok;
  });

  auto lift_options = std::make_shared<FreezeOptions>();
  Command unfreeze = cost.add("unfreeze", "lift the freezes that touch hours of a tenant");
  add_freeze_scope(unfreeze, *lift_options);
  unfreeze.run([lift_options, &session] {
    const Json in = lift_options->input(session.clock().wall_ms());
    print_object(session, session.call("cost.unfreeze", in));
    return Exit::ok;
  });
}

void add_postings(Command cost, Session& session) {
  auto credit_options = std::make_shared<CreditOptions>();
  CreditOptions& c = *credit_options;
  Command credit_command = cost.add("credit", "post a credit note");
  credit_command.option("tenant", "T", c.tenant, "To this tenant", ValueKind::tenant)
      .option("period", "T", c.period, "For the hour that begins then")
      .option("amount", "A", c.amount, "Above 0 reduces what is owed")
      .option("currency", "C", c.currency, "Default: the only one of the hour")
      .option("reason", "TEXT", c.reason, "Why")
      .option("approved-by", "WHO", c.approved_by, "Who approved it")
      .option("id", "ID", c.id, "Of the note; given again it is posted once")
      .flag("allow-negative", c.allow_negative, "Also above what the hour holds");
  credit_command.run([credit_options, &session] { return credit(session, *credit_options); });

  auto reprice_options = std::make_shared<RepriceOptions>();
  Command reprice_command = cost.add("reprice", "post the differences after a price was corrected");
  reprice_options->scope.add_to(reprice_command);
  reprice_command.option("reason", "TEXT", reprice_options->reason, "Why")
      .option("by", "WHO", reprice_options->by, "Who decided; default: who runs this")
      .flag("dry-run", reprice_options->dry_run, "Tell the differences; post nothing");
  reprice_command.run([reprice_options, &session] { return reprice(session, *reprice_options); });

  auto reverse_options = std::make_shared<ReverseOptions>();
  Command reverse_command = cost.add("reverse", "take a ledger row back, once");
  reverse_command.operand("LEDGER_ID", reverse_options->id, "As cost ledger shows it; SOURCE/ID")
      .option("reason", "TEXT", reverse_options->reason, "Why")
      .option("by", "WHO", reverse_options->by, "Who decided; default: who runs this");
  reverse_command.run([reverse_options, &session] { return reverse(session, *reverse_options); });
}

}  // namespace

void add_cost(Command root, Session& session) {
  Command cost = root.add("cost", "what is owed: post it, sum it up, explain it, correct it");

  auto scope = std::make_shared<ScopeOptions>();
  Command aggregate_command =
      cost.add("aggregate", "post what was used and not posted yet, and sum it up");
  scope->add_to(aggregate_command);
  aggregate_command.run([scope, &session] { return aggregate(session, *scope); });

  add_cost_views(cost, session);

  auto rebuild_options = std::make_shared<RebuildOptions>();
  Command rebuild_command = cost.add("rebuild", "compute the summaries anew from the ledger");
  rebuild_options->scope.add_to(rebuild_command);
  rebuild_command.flag("verify", rebuild_options->verify,
                       "Compare only; exit 1 if anything differs");
  rebuild_command.run([rebuild_options, &session] { return rebuild(session, *rebuild_options); });

  add_postings(cost, session);
  add_freezes(cost, session);
}

}  // namespace aiq::cli
