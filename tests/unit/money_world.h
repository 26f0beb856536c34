#pragma once
// A database in a file, money in it, and a second connection for what no operation does.

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "core/base/duration.h"
#include "core/base/process.h"
#include "core/money/aggregate.h"
#include "core/money/postings.h"
#include "core/store/store.h"

namespace money_world {

using namespace aiq;

inline constexpr UnixMs kMarch = 1'772'323'200'000;  // 2026-03-01T00:00:00Z

struct World {
  World() {
    std::string name = (std::filesystem::temp_directory_path() / "aiq-money-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
    store = open_store(file(), StoreOptions{}, now, false);
  }
  ~World() {
    store.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] std::string file() const { return (folder / "aiq.db").string(); }

  template <class F>
  auto write(F f) -> decltype(f(std::declval<Store&>())) {
    store->begin();
    auto out = f(*store);
    store->commit();
    return out;
  }

  AddUsage deliver(const UsageEvent& event) {
    return write([&](Store& s) { return s.ledger().add_usage(event); });
  }

  AggregateCall call(const std::string& id = "c") const {
    AggregateCall out;
    out.call_id = id;
    out.owner = process_name() + ":" + id;
    out.initiator = "command";
    out.actor = "uid:1";
    out.correlation_id = id;
    return out;
  }
  AggregateState step(const AggregateCall& by, const AggregateState& state) {
    return write([&](Store& s) { return aggregate_step(s, config, by, state, now); });
  }
  AggregateTotals aggregate(const AggregateCall& by) {
    AggregateState state;
    while (state.phase != AggregateState::Phase::done)
      state = step(by, state);
    return state.totals;
  }
  AggregateTotals aggregate() { return aggregate(call()); }

  PostingContext context(const std::string& reason = "test") const {
    return {.config = config, .now = now, .actor = "uid:1", .reason = reason};
  }

  // Runs statements on a connection of its own, as an operator with sqlite3 would.
  std::string sql(const std::string& text) {
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(file().c_str(), &db) == SQLITE_OK);
    int on = 0;
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &on);
    char* message = nullptr;
    sqlite3_exec(db, text.c_str(), nullptr, nullptr, &message);
    std::string out = message == nullptr ? "" : message;
    sqlite3_free(message);
    sqlite3_close(db);
    return out;
  }
  // An issued invoice of one hour.
  void issue(const std::string& tenant, UnixMs hour) {
    const std::string start = std::to_string(hour), end = std::to_string(hour + kHourMs);
    const std::string failed = sql(
        "INSERT INTO invoices (tenant, currency, period_start, period_end, state, total_whole, "
        "total_pico, rounding_pico, lines, created_at, updated_at, issued_at, actor) VALUES ('" +
        tenant + "', 'USD', " + start + ", " + end +
        ", 'issued', 0, 0, 0, '[]', 0, 0, 0, 'test'); "
        "INSERT INTO invoice_hours (tenant, currency, period, invoice_key, issued) "
        "SELECT '" +
        tenant + "', 'USD', " + start + ", max(invoice_key), 1 FROM invoices");
    REQUIRE(failed == "");
  }

  // The whole ledger, oldest first.
  std::vector<LedgerRow> ledger() {
    std::vector<LedgerRow> out;
    Page page{.after = 0, .limit = 1000};
    for (;;) {
      const auto rows = store->ledger().list_rows({}, page);
      out.insert(out.begin(), rows.rbegin(), rows.rend());
      if (rows.size() < 1000) return out;
      page.after = rows.back().entry_id;
    }
  }
  std::vector<SummaryRow> summaries() { return store->ledger().list_summaries({}, {}, 100'000); }

  // What is wrong with the books; "" = nothing.
  std::string faults() {
    CostLedger& l = store->ledger();
    std::optional<TenantPeriod> unit;
    while ((unit = l.next_summary_unit(unit, {}))) {
      if (!l.recompute(*unit, now, false).empty())
        return "the summary of " + format_rfc3339(unit->period) + " is not what the ledger says";
    }
    std::map<std::string, Int128> service, billed;
    for (const SummaryRow& row : summaries()) {
      service[row.tenant + row.currency] += row.service_total;
      billed[row.tenant + row.currency] += row.billed_total.value_or(0);
    }
    if (service != billed) return "hours of use and hours that bill differ";
    std::map<std::string, int> in_force;
    for (const LedgerRow& row : ledger()) {
      if (row.source_type == "usage" && !is_reversed(l, row.entry_id) &&
          ++in_force[row.tenant + "|" + row.source_ref] > 1)
        return "event " + row.source_ref + " is charged twice";
    }
    return "";
  }

  Config config;
  UnixMs now = kMarch + 24 * kHourMs;
  std::filesystem::path folder;
  std::unique_ptr<Store> store;
};

inline UsageEvent event(const std::string& id, const std::string& tenant = "acme",
                        UnixMs at = kMarch, std::int64_t units = 1'000, Pico unit_pico = 150'000) {
  UsageEvent out;
  out.event_id = id;
  out.tenant = tenant;
  out.model = "m-small";
  out.meter = "input";
  out.units = units;
  out.unit_pico = unit_pico;
  out.currency = "USD";
  out.occurred_at = at;
  out.received_at = at + 1'000;
  return out;
}

}  // namespace money_world
