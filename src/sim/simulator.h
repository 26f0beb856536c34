#pragma once
// The vendor's mind: takes a whole request and the time, gives the plan of the answer.
//
// No sockets, no clock of its own. Not thread-safe: the one server thread owns it.
//
// Order of decisions: the limits (refused requests reach no rule and use no window), then the
// first rule that applies, then the vendor's own validation, then the usual answer.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "sim/answer.h"
#include "sim/api_request.h"
#include "sim/journal.h"
#include "sim/limits.h"
#include "sim/message.h"
#include "sim/plan.h"
#include "sim/rules.h"

namespace aiq::sim {

struct SimulatorOptions {
  DurationMs latency_min = 0;  // before each answer, uniform in [min, max]
  DurationMs latency_max = 0;
  LimitOptions limits{};
  std::uint64_t seed = 0;  // of the answers and of the latencies
};

struct Now {
  UnixMs wall = 0;
  MonoMs mono = 0;
};

class Simulator {
 public:
  Simulator(const SimulatorOptions& options, RuleSet rules);

  // Decides about one vendor call.
  [[nodiscard]] Plan decide(const Request& request, Now now);
  // The exchange of a plan with `in_flight` has ended, in whatever way.
  void exchange_ended() { --in_flight_; }

  void replace_rules(RuleSet rules) { rules_ = std::move(rules); }

  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] std::int64_t in_flight() const { return in_flight_; }
  [[nodiscard]] const RuleSet& rules() const { return rules_; }

 private:
  // What is carried between the steps of one decision.
  struct Case;

  [[nodiscard]] std::optional<Refusal> admit(Case& c);
  void conclude(Case& c);
  void refuse(Case& c, const Refusal& refusal);
  void answer(Case& c);
  void apply(Case& c, const Rule& rule);
  void use_body(Case& c, const Act& act);
  void use_usual_body(Case& c, const Act& act);
  [[nodiscard]] DurationMs draw_latency();

  SimulatorOptions options_;
  RuleSet rules_;
  Limits limits_;
  SeededRandom latencies_;
  std::uint64_t received_ = 0;
  std::int64_t in_flight_ = 0;
};

}  // namespace aiq::sim
