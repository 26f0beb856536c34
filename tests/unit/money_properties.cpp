// Laws over random histories: whatever is delivered, retried, broken off, frozen, invoiced and
// corrected in whatever order, nothing is charged twice and the books balance.

#include <doctest/doctest.h>

#include "core/base/random.h"
#include "money_world.h"

using namespace money_world;

namespace {

const char* const kTenants[] = {"acme", "bolt"};

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      act();
      world_.now += 1'000;
    }
    thaw();
    (void)world_.aggregate();
    check();
  }

 private:
  [[nodiscard]] int pick(int bound) {
    return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound)));
  }
  [[nodiscard]] UnixMs hour() { return kMarch + pick(5) * kHourMs; }

  void act() {
    switch (pick(14)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        deliver();
        break;
      case 5:
        (void)world_.aggregate();
        break;
      case 6:
        break_off();
        break;
      case 7:
        reverse();
        break;
      case 8:
        decide();
        break;
      case 9:
        issue();
        break;
      case 10:
        freeze();
        break;
      case 11:
        if (pick(3) == 0) thaw();
        break;
      case 12:
        credit();
        break;
      default:
        race();
    }
  }

  // New, again, or again with other contents.
  void deliver() {
    const std::string tenant = kTenants[pick(2)];
    const std::string id = "E" + std::to_string(pick(60));
    UsageEvent each = event(id, tenant, hour() + pick(3'600'000), 1 + pick(4), 1'000'000);
    const auto key = std::pair(tenant, id);
    const auto known = events_.find(key);
    if (known != events_.end() && pick(2) == 0) each = known->second;
    const AddUsage added = world_.deliver(each);
    if (added == AddUsage::accepted) events_[key] = each;
    CHECK((added == AddUsage::accepted) == (known == events_.end()));
  }

  // A process that dies after some steps.
  void break_off() {
    AggregateCall call = world_.call("b" + std::to_string(pick(1'000'000)));
    call.owner = "1:1:" + call.call_id;
    AggregateState state;
    for (int i = pick(4); i > 0 && state.phase != AggregateState::Phase::done; --i)
      state = world_.step(call, state);
  }

  // Two at once, step by step, and a step of which the answer was lost.
  void race() {
    AggregateState a, b;
    const AggregateCall ca = world_.call("a"), cb = world_.call("b");
    while (a.phase != AggregateState::Phase::done || b.phase != AggregateState::Phase::done) {
      AggregateState& one = pick(2) == 0 ? a : b;
      const AggregateCall& by = &one == &a ? ca : cb;
      const AggregateState next = world_.step(by, one);
      if (pick(5) != 0) one = next;
    }
  }

  void reverse() {
    const auto rows = world_.ledger();
    if (rows.empty()) return;
    const LedgerRow& row = rows[random_.below(rows.size())];
    (void)world_.write([&](Store& s) {
      return reverse_row(s, std::to_string(row.entry_id), world_.context()).has_value();
    });
  }

  void decide() {
    const auto open = world_.store->ledger().list_conflicts("open", Page{.after = 0, .limit = 100});
    if (open.empty()) return;
    const UsageConflict& conflict = open[random_.below(open.size())];
    const bool replaces = pick(2) == 0;
    const bool done = world_.write([&](Store& s) {
      return (replaces ? replace_conflict(s, conflict.conflict_id, world_.context())
                       : keep_conflict(s, conflict.conflict_id, world_.context()))
          .has_value();
    });
    if (done && replaces)
      events_[{conflict.event.tenant, conflict.event.event_id}] = conflict.event;
  }

  void issue() {
    const std::string tenant = kTenants[pick(2)];
    const UnixMs at = hour();
    if (world_.store->ledger().invoice_of_hour({tenant, at}, "USD")) return;
    world_.issue(tenant, at);
    issued_[{tenant, at}] = billed(tenant, at);
  }

  [[nodiscard]] Int128 billed(const std::string& tenant, UnixMs at) {
    Int128 out = 0;
    for (const LedgerRow& row : world_.ledger()) {
      if (row.tenant == tenant && row.posting_period == at) out += row.amount;
    }
    return out;
  }

  void freeze() {
    const UnixMs at = hour();
    (void)world_.write([&](Store& s) {
      return s.ledger().freeze({.tenant = kTenants[pick(2)],
                                .from = at,
                                .to = at + kHourMs,
                                .origin = "operator",
                                .until = std::nullopt,
                                .reason = "test",
                                .actor = "t",
                                .created_at = world_.now});
    });
  }

  void thaw() {
    for (const char* tenant : kTenants)
      (void)world_.write([&](Store& s) {
        return s.ledger().lift_freezes(tenant, 0, kMarch * 2, "t", world_.now);
      });
  }

  void credit() {
    (void)world_.write([&](Store& s) {
      return post_credit(s,
                         {.id = "CN" + std::to_string(pick(20)),
                          .tenant = kTenants[pick(2)],
                          .period = hour(),
                          .amount = 1 + pick(2'000'000),
                          .currency = "USD",
                          .approved_by = "ann"},
                         world_.context())
          .has_value();
    });
  }

  void check() {
    CHECK(world_.faults() == "");
    // Nothing was booked into an hour after its invoice.
    for (const auto& [unit, amount] : issued_)
      CHECK(billed(unit.first, unit.second) == amount);
    // Every event is posted; in force with the amount of the payload that counts, or waived.
    std::map<std::pair<std::string, std::string>, Int128> posted;
    std::map<std::pair<std::string, std::string>, bool> seen;
    for (const LedgerRow& row : world_.ledger()) {
      const auto use = row.usage_id ? world_.store->ledger().usage(*row.usage_id) : std::nullopt;
      if (!use) continue;
      posted[{use->tenant, use->event_id}] += row.amount;
      seen[{use->tenant, use->event_id}] = true;
    }
    for (const auto& [key, each] : events_) {
      CAPTURE(key.first);
      CAPTURE(key.second);
      CHECK(seen[key]);
      const Int128 amount = *rate(each.units, *each.unit_pico);
      CHECK((posted[key] == amount || posted[key] == 0));
    }
  }

  SeededRandom random_;
  World world_;
  std::map<std::pair<std::string, std::string>, UsageEvent> events_;  // the payload that counts
  std::map<std::pair<std::string, UnixMs>, Int128> issued_;
};

}  // namespace

TEST_CASE("money: random histories charge nothing twice and balance") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    History(seed).run(120);
  }
}
