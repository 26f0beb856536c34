// aiq pause, aiq resume

#include "cli/commands.h"
#include "cli/render.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

struct ScopeOptions {
  Text vendor, model, tenant;
  Text reason, until;

  void add_scope(Command& command) {
    command.option("vendor", "V", vendor, "Only calls to this vendor", ValueKind::vendor)
        .option("model", "M", model, "With --vendor: only this model of it", ValueKind::model)
        .option("tenant", "T", tenant, "Only jobs of this tenant", ValueKind::tenant);
  }

  [[nodiscard]] Json input() const {
    if (model && !vendor) {
      fail_usage("missing_option", "--model needs --vendor",
                 "a model is paused at one vendor: add --vendor V");
    }
    Json in = Json::object();
    set_text(in, "vendor", vendor);
    set_text(in, "model", model);
    set_text(in, "tenant", tenant);
    return in;
  }

  [[nodiscard]] std::string name() const {
    std::string out;
    if (vendor) out += " vendor " + *vendor;
    if (model) out += " model " + *model;
    if (tenant) out += " tenant " + *tenant;
    return out.empty() ? " the whole queue" : out;
  }
};

Exit pause(Session& session, const ScopeOptions& o) {
  Json in = o.input();
  set_text(in, "reason", o.reason);
  if (o.until) {
    const UnixMs until = future_value("--until", *o.until, session.clock().wall_ms());
    in["until"] = format_rfc3339(until);
  }
  const Json answer = session.call("pause", in);
  if (session.out.json()) {
    session.out.object(answer);
  } else {
    const std::string until = in.contains("until") ? " until " + scalar_text(in["until"]) : "";
    session.out.line("paused" + o.name() + until);
  }
  return Exit::ok;
}

Exit resume(Session& session, const ScopeOptions& o) {
  const Json answer = session.call("resume", o.input());
  if (session.out.json()) {
    session.out.object(answer);
  } else if (answer.at("resumed") == 0) {
    session.out.line("not paused:" + o.name());
  } else {
    session.out.line("resumed" + o.name());
  }
  return Exit::ok;
}

}  // namespace

void add_pause(Command root, Session& session) {
  auto options = std::make_shared<ScopeOptions>();
  Command command = root.add("pause", "start no more jobs: of a vendor, a tenant, or at all");
  options->add_scope(command);
  command.option("reason", "TEXT", options->reason, "Why; shown in stats and vendor list")
      .option("until", "T", options->until, "Resume by itself at a time, or after a duration")
      .run([options, &session] { return pause(session, *options); });

  auto resume_options = std::make_shared<ScopeOptions>();
  Command resume_command = root.add("resume", "lift a pause, also one that an answer has caused");
  resume_options->add_scope(resume_command);
  resume_command.run([resume_options, &session] { return resume(session, *resume_options); });
}

}  // namespace aiq::cli
