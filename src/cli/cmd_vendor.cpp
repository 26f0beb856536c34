// aiq vendor list, aiq vendor show

#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/render.h"

namespace aiq::cli {
namespace {

Exit list(Session& session) {
  const Json answer = session.call("vendor.list", Json::object());
  Output& out = session.out;
  Table table = out.table({{"VENDOR", false, true},
                           {"API"},
                           {"STATE"},
                           {"IN FLIGHT", true},
                           {"RPM", true},
                           {"TPM", true},
                           {"REASON", false, true}});
  for (const Json& v : answer.at("rows")) {
    if (out.json()) {
      out.object(v);
      continue;
    }
    const std::string state = member_text(v, "state");
    const std::string most = member_text(v, "max_in_flight");
    table.add({member_text(v, "vendor"),
               member_text(v, "api"),
               {state, tone_of(state)},
               member_text(v, "in_flight") + (most == "0" || most == "-" ? "" : "/" + most),
               member_text(v, "rpm"),
               member_text(v, "tpm"),
               member_text(v, "reason")});
  }
  if (!table.empty()) out.text(table.take());
  return Exit::ok;
}

// "45 of 600 requests, 900 of 60000 tokens": taken in the last minute.
std::string limits_text(const Json& limits) {
  std::string text;
  for (const auto& [unit, limit] : limits.items()) {
    if (!text.empty()) text += ", ";
    text += member_text(limit, "taken") + " of " + member_text(limit, "limit") + " " + unit;
  }
  return text;
}

std::string pace_text(const Json& model) {
  const double pace = model.value("pace", 1.0);
  return pace >= 1.0 ? "" : std::to_string(static_cast<int>(pace * 100)) + "%";
}

Exit show(Session& session, const std::string& name) {
  const Json answer = session.call("vendor.show", {{"vendor", name}});
  const Json& vendor = answer.contains("rows") ? answer["rows"].at(0) : answer;
  Output& out = session.out;
  if (out.json()) {
    out.object(vendor);
    return Exit::ok;
  }
  Json members = vendor;
  members["limits"] = limits_text(vendor.value("limits", Json::object()));
  print_members(out, members, {"models"});
  const Json models = vendor.value("models", Json());
  if (!models.is_array() || models.empty()) return Exit::ok;
  Table table = out.table({{"MODEL", false, true},
                           {"STATE"},
                           {"IN FLIGHT", true},
                           {"PACE", true},
                           {"LAST MINUTE", false, true},
                           {"UNTIL"},
                           {"REASON", false, true}});
  for (const Json& m : models) {
    const std::string state = member_text(m, "state");
    table.add({member_text(m, "model"),
               {state, tone_of(state)},
               member_text(m, "in_flight"),
               pace_text(m),
               limits_text(m.value("limits", Json::object())),
               member_text(m, "until"),
               member_text(m, "reason")});
  }
  out.line("");
  out.text(table.take());
  return Exit::ok;
}

}  // namespace

void add_vendor(Command root, Session& session) {
  Command vendor = root.add("vendor", "show vendors: limits, state, what they last said");
  vendor.add("list", "list all vendors").run([&session] { return list(session); });
  auto name = std::make_shared<Text>();
  vendor.add("show", "show one vendor and its models")
      .operand("VENDOR", *name, "Name of its section in aiq.toml", ValueKind::vendor)
      .run([name, &session] { return show(session, **name); });
}

}  // namespace aiq::cli
