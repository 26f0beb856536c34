// Invoices: rounding, late lines, whose hours are whose, and what may not be issued.

#include <nlohmann/json.hpp>
#include <random>

#include "core/money/invoice.h"
#include "core/store/cost_ledger.h"
#include "core/store/price_book.h"
#include "unit/money_world.h"

namespace {

using namespace money_world;
using Json = nlohmann::ordered_json;

struct Invoices : World {
  InvoiceBook& book() { return store->ledger().invoices(); }
  InvoiceActor by() const { return {.actor = "uid:1", .now = now}; }

  Expected<InvoiceRow, Failure> draft(UnixMs start, std::int64_t hours = 1,
                                      const std::string& tenant = "acme",
                                      const std::string& currency = "USD") {
    return write([&](Store& s) {
      return draft_invoice(s, {tenant, currency, start, start + hours * kHourMs}, by());
    });
  }
  Expected<InvoiceRow, Failure> move(const InvoiceRow& row, InvoiceMove to,
                                     const std::string& reason = "") {
    return write([&](Store& s) { return move_invoice(s, invoice_id(row), to, reason, by()); });
  }
  std::string code_of(const Expected<InvoiceRow, Failure>& row) {
    return row ? "" : row.error().code;
  }
};

std::vector<std::string> amounts_of(const InvoiceRow& row) {
  std::vector<std::string> out;
  for (const Json& line : Json::parse(row.lines))
    out.push_back(line.at("kind").get<std::string>() + " " + line.at("amount").get<std::string>() +
                  (line.at("late").get<bool>() ? " late" : ""));
  return out;
}

TEST_CASE("invoice: lines are exact, the total is rounded once, half away from zero") {
  struct Case {
    Pico unit_pico;
    const char* total;
    const char* rounding;
  };
  for (const auto& [unit_pico, total, rounding] :
       {Case{5'000'000'000, "0.01", "0.005"}, Case{4'999'999'999, "0.00", "-0.004999999999"},
        Case{15'000'000'000, "0.02", "0.005"}, Case{10'000'000'000, "0.01", "0.00"}}) {
    CAPTURE(unit_pico);
    Invoices w;
    w.deliver(event("e", "acme", kMarch, 1, unit_pico));
    w.aggregate();
    const auto row = w.draft(kMarch);
    REQUIRE(row.has_value());
    CHECK(format_money(row->total) == total);
    CHECK(format_money(row->rounding) == rounding);
    const Json lines = Json::parse(row->lines);
    CHECK(lines.size() == (row->rounding == 0 ? 1 : 2));
    Int128 sum = 0;
    for (const Json& line : lines)
      sum += parse_money(line.at("amount").get<std::string>()).value();
    CHECK(sum == row->total);
    CHECK(lines[0].at("units") == 1);
    CHECK(lines[0].at("model") == "m-small");
    CHECK(lines[0].at("meter") == "input");
    if (row->rounding != 0) CHECK(lines[1].at("kind") == "rounding");
  }
}

TEST_CASE("invoice: a negative total is rounded away from zero too, a currency to its own unit") {
  Invoices w;
  w.deliver(event("e", "acme", kMarch, 1, 500'000'000'000));
  w.aggregate();
  const auto ledger = w.ledger();
  REQUIRE(ledger.size() == 1);
  REQUIRE(w.write([&](Store& s) {
             return post_credit(s,
                                {.id = "c1",
                                 .tenant = "acme",
                                 .period = kMarch,
                                 .amount = 505'000'000'000,
                                 .currency = "USD",
                                 .approved_by = "uid:1",
                                 .allow_negative = true},
                                w.context());
           }).has_value());
  const auto row = w.draft(kMarch);
  REQUIRE(row.has_value());
  CHECK(format_money(row->total) == "-0.01");
  CHECK(format_money(row->rounding) == "-0.005");

  Invoices yen;
  UsageEvent e = event("y", "acme", kMarch, 1, 1'500'000'000'000);
  e.currency = "JPY";
  yen.deliver(e);
  yen.aggregate();
  CHECK(format_money(yen.draft(kMarch, 1, "acme", "JPY")->total) == "2.00");
  CHECK(format_money(yen.draft(kMarch)->total) == "0.00");  // dollars: nothing
}

TEST_CASE("invoice: sums beyond one row's range") {
  Invoices w;
  for (const char* id : {"a", "b", "c"})
    w.deliver(event(id, "acme", kMarch, 9, 1'000'000'000'000'000'000));
  w.aggregate();
  CHECK(format_money(w.draft(kMarch)->total) == "27000000.00");
}

TEST_CASE("invoice: what comes late is a marked line of the next one, and the issued one stays") {
  Invoices w;
  w.deliver(event("e1", "acme", kMarch, 1'000'000, 1'000'000));
  w.aggregate();
  const auto first = w.draft(kMarch);
  REQUIRE(first.has_value());
  const auto issued = w.move(*first, InvoiceMove::issue);
  REQUIRE(issued.has_value());
  CHECK(issued->state == InvoiceState::issued);
  w.deliver(event("e2", "acme", kMarch + 1, 200'000, 1'000'000));
  w.deliver(event("e3", "acme", kMarch + kHourMs, 100'000, 1'000'000));
  w.aggregate();
  const auto next = w.draft(kMarch + kHourMs);
  REQUIRE(next.has_value());
  CHECK(amounts_of(*next) == std::vector<std::string>{"usage 0.20 late", "usage 0.10"});
  CHECK(format_money(next->total) == "0.30");
  CHECK(w.book().invoice(first->key)->lines == first->lines);
  CHECK(verify_invoice(*w.store, *w.book().invoice(first->key)).delta == 0);
  CHECK(w.code_of(w.draft(kMarch)) == "issued");
  CHECK(w.faults() == "");
}

TEST_CASE("invoice: an hour belongs to one that is not void, per tenant and currency") {
  Invoices w;
  const auto hour = w.draft(kMarch + 2 * kHourMs);
  REQUIRE(hour.has_value());
  const auto day = w.draft(kMarch, 24);
  CHECK(w.code_of(day) == "period_invoiced");
  CHECK(day.error().exit == Exit::conflict);
  CHECK(w.draft(kMarch, 24, "bolt").has_value());
  CHECK(w.draft(kMarch, 24, "acme", "EUR").has_value());
  REQUIRE(w.move(*hour, InvoiceMove::make_void).has_value());
  const auto again = w.draft(kMarch, 24);
  REQUIRE(again.has_value());
  CHECK(w.code_of(w.draft(kMarch + 2 * kHourMs)) == "period_invoiced");
  // The same hours are the same invoice.
  CHECK(w.draft(kMarch, 24)->key == again->key);
}

TEST_CASE("invoice: from state to state") {
  Invoices w;
  const InvoiceRow row = *w.draft(kMarch);
  CHECK(w.move(row, InvoiceMove::hold, "look first")->held_reason == "look first");
  CHECK(w.code_of(w.move(row, InvoiceMove::issue)) == "held");
  CHECK(w.move(row, InvoiceMove::hold, "still")->state == InvoiceState::held);
  // Drafting a held one brings it up to date and leaves it held.
  w.deliver(event("e", "acme", kMarch, 1'000'000, 1'000'000));
  w.aggregate();
  CHECK(w.draft(kMarch)->state == InvoiceState::held);
  CHECK(format_money(w.book().invoice(row.key)->total) == "1.00");
  CHECK(w.move(row, InvoiceMove::release)->state == InvoiceState::draft);
  const auto issued = w.move(row, InvoiceMove::issue);
  REQUIRE(issued.has_value());
  CHECK(issued->issued_at == w.now);
  for (const InvoiceMove move :
       {InvoiceMove::hold, InvoiceMove::release, InvoiceMove::issue, InvoiceMove::make_void})
    CHECK(w.code_of(w.move(row, move)) == "issued");
  CHECK(w.code_of(w.write([&](Store& s) {
    return move_invoice(s, "77", InvoiceMove::hold, "", w.by());
  })) == "no_such_invoice");

  const InvoiceRow other = *w.draft(kMarch + kHourMs);
  REQUIRE(w.move(other, InvoiceMove::make_void).has_value());
  CHECK(w.move(other, InvoiceMove::make_void)->state == InvoiceState::voided);
  CHECK(w.code_of(w.move(other, InvoiceMove::release)) == "void");
  // A stock sqlite3 can't change it by accident.
  CHECK(w.sql("UPDATE invoices SET total_whole = 0 WHERE state = 'issued'") != "");
  CHECK(w.sql("DELETE FROM invoice_hours WHERE issued = 1") != "");
}

TEST_CASE("invoice: nothing is issued over what is open") {
  Invoices w;
  w.deliver(event("e1"));
  const InvoiceRow row = *w.draft(kMarch);
  CHECK(w.code_of(w.move(row, InvoiceMove::issue)) == "unposted_usage");
  w.aggregate();
  CHECK(w.code_of(w.move(*w.draft(kMarch), InvoiceMove::issue)) == "");

  const UnixMs second = kMarch + kHourMs;
  UsageEvent unpriced = event("e2", "acme", second);
  unpriced.unit_pico = std::nullopt;
  unpriced.currency = "";
  w.deliver(unpriced);
  w.aggregate();
  CHECK(w.code_of(w.move(*w.draft(second), InvoiceMove::issue)) == "unpriced_usage");

  const UnixMs third = second + kHourMs;
  w.deliver(event("e3", "acme", third));
  UsageEvent other = event("e3", "acme", third, 2'000);
  CHECK(w.deliver(other) == AddUsage::conflict);
  w.aggregate();
  CHECK(w.code_of(w.move(*w.draft(third), InvoiceMove::issue)) == "event_id_conflict");

  const UnixMs fourth = third + kHourMs;
  w.write([&](Store& s) {
    return s.ledger().freeze({.tenant = "acme",
                              .from = fourth,
                              .to = fourth + kHourMs,
                              .origin = "operator",
                              .reason = "look",
                              .actor = "uid:1",
                              .created_at = w.now});
  });
  CHECK(w.code_of(w.move(*w.draft(fourth), InvoiceMove::issue)) == "frozen");
}

TEST_CASE("invoice: a draft that does not say what is billed is not issued") {
  Invoices w;
  const InvoiceRow row = *w.draft(kMarch);
  w.deliver(event("e", "acme", kMarch, 1'000'000, 1'000'000));
  w.aggregate();
  REQUIRE(w.sql("UPDATE invoices SET total_whole = 7") == "");
  CHECK(format_money(verify_invoice(*w.store, *w.book().invoice(row.key)).delta) == "6.00");
  CHECK(w.code_of(w.move(row, InvoiceMove::issue)) == "outdated");
  w.write([&](Store& s) { return recompute_drafts(s.ledger(), {{"acme", kMarch}}, w.now); });
  CHECK(verify_invoice(*w.store, *w.book().invoice(row.key)).delta == 0);
  CHECK(w.code_of(w.move(row, InvoiceMove::issue)) == "");
}

TEST_CASE("invoice: drafts of the hours follow what is posted, held ones do not") {
  Invoices w;
  const InvoiceRow draft = *w.draft(kMarch);
  const InvoiceRow held = *w.draft(kMarch + kHourMs);
  const InvoiceRow later = *w.draft(kMarch + 2 * kHourMs);
  REQUIRE(w.move(held, InvoiceMove::hold).has_value());
  w.deliver(event("e1", "acme", kMarch, 1'000'000, 1'000'000));
  w.deliver(event("e2", "acme", kMarch + kHourMs, 1'000'000, 1'000'000));
  w.now += 1'000;
  w.aggregate();
  CHECK(format_money(w.book().invoice(draft.key)->total) == "1.00");
  CHECK(format_money(w.book().invoice(held.key)->total) == "0.00");
  CHECK(w.book().invoice(later.key)->updated_at == later.updated_at);
  CHECK(w.write([&](Store& s) {
           return recompute_drafts(s.ledger(), {{"acme", later.span.end}, {"bolt", kMarch}}, w.now);
         }).empty());
  // A reversal too.
  REQUIRE(w.write([&](Store& s) { return reverse_row(s, "1", w.context()); }).has_value());
  CHECK(format_money(w.book().invoice(draft.key)->total) == "0.00");
}

// Whatever happens in whatever order: each draft and issued invoice says what is billed.
TEST_CASE("invoice: random histories stay true") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 15; ++round) {
    Invoices w;
    for (int i = 0; i < 40; ++i) {
      const UnixMs hour = kMarch + upto(4) * kHourMs;
      switch (upto(5)) {
        case 0:
        case 1:
          w.deliver(event("e" + std::to_string(i), "acme", hour, 1 + upto(1'000), 1 + upto(9)));
          break;
        case 2:
          w.aggregate();
          break;
        case 3:
          (void)w.draft(hour);
          break;
        default:
          for (const InvoiceRow& row : w.book().list({}, {.after = 0, .limit = 100}))
            if (upto(3) == 0) (void)w.move(row, static_cast<InvoiceMove>(upto(4)), "r");
      }
    }
    w.aggregate();
    for (const InvoiceRow& row : w.book().list({}, {.after = 0, .limit = 1'000})) {
      if (row.state == InvoiceState::issued || row.state == InvoiceState::draft)
        CHECK(verify_invoice(*w.store, *w.book().invoice(row.key)).delta == 0);
    }
    CHECK(w.faults() == "");
  }
}

}  // namespace
