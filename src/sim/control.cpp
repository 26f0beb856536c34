#include "sim/control.h"

#include <utility>

namespace aiq::sim {
namespace {

Plan reply(int status, const Json& body) {
  Plan plan;
  plan.status = status;
  plan.headers.emplace_back("Content-Type", "application/json");
  plan.body = dump(body) + "\n";
  return plan;
}

Plan error_reply(int status, const std::string& message) {
  return reply(status, {{"error", {{"message", message}}}});
}

Plan release(const Request& request, WaitingRoom& room) {
  std::optional<std::string> rule;
  if (!request.body.empty()) {
    const Json body = Json::parse(request.body, nullptr, false);
    if (!body.is_object()) return error_reply(400, "expected no body or {\"rule\": NAME}");
    for (const auto& [key, value] : body.items()) {
      if (key != "rule" || !value.is_string()) {
        return error_reply(400, "expected no body or {\"rule\": NAME}");
      }
      rule = value.get<std::string>();
    }
  }
  return reply(200, {{"released", room.release(rule)}});
}

Plan replace_rules(const Request& request, Simulator& simulator, MonoMs now) {
  auto rules = parse_rules(request.body);
  if (!rules) return error_reply(400, rules.error());
  const std::size_t count = rules->size();
  simulator.replace_rules(RuleSet(std::move(*rules), now));
  return reply(200, {{"rules", count}});
}

Plan state(const Simulator& simulator, const WaitingRoom& room) {
  Json rules = Json::array();
  for (std::size_t i = 0; i < simulator.rules().rules().size(); ++i) {
    const RuleSet::Counts& counts = simulator.rules().counts()[i];
    rules.push_back({{"name", simulator.rules().rules()[i].name},
                     {"matched", counts.matched},
                     {"used", counts.used}});
  }
  return reply(200, {{"received", simulator.received()},
                     {"held", room.held()},
                     {"in_flight", simulator.in_flight()},
                     {"clients_gone", room.clients_gone()},
                     {"rules", std::move(rules)}});
}

}  // namespace

Plan control(const Request& request, Simulator& simulator, WaitingRoom& room, MonoMs now) {
  const bool post = request.method == "POST";
  if (request.path == "/__sim/release" && post) return release(request, room);
  if (request.path == "/__sim/rules" && post) return replace_rules(request, simulator, now);
  if (request.path == "/__sim/state" && request.method == "GET") return state(simulator, room);
  return error_reply(404, "there is POST /__sim/release, POST /__sim/rules and GET /__sim/state");
}

}  // namespace aiq::sim
