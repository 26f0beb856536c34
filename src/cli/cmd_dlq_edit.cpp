// aiq dlq edit

#include "cli/commands.h"
#include "cli/render.h"
#include "cli/values.h"
#include "core/base/json_canonical.h"

namespace aiq::cli {
namespace {

struct EditOptions {
  Text id, request, model, vendor;
  Texts set;
  bool replay = false;
};

// POINTER=JSON. A name may hold a "=": it ends at the first one after which JSON stands.
Json pointer_and_value(const std::string& text) {
  const std::size_t first = text.find('=');
  if (first == std::string::npos) {
    fail_usage("invalid_set",
               "--set " + text + " has no =", "for example --set '/messages/0/content=\"Hello\"'");
  }
  std::size_t at = first;
  for (std::size_t next = first; next != std::string::npos; next = text.find('=', next + 1)) {
    if (!canonicalize_json(std::string_view(text).substr(next + 1))) continue;
    at = next;
    break;
  }
  return {{"pointer", text.substr(0, at)}, {"value", text.substr(at + 1)}};
}

Json input(Session& session, const EditOptions& o) {
  Json in = {{"dlq_id", *o.id}};
  set_text(in, "model", o.model);
  set_text(in, "vendor", o.vendor);
  set_flag(in, "replay", o.replay);
  for (const std::string& text : o.set)
    in["set"].push_back(pointer_and_value(text));
  if (o.request && !o.set.empty()) {
    fail_usage("contradiction", "--request and --set exclude each other",
               "write the values into the request body");
  }
  if (o.request) {
    in["request"] = read_input("--request", *o.request, session.config().limits.request_bytes);
  }
  return in;
}

Exit edit(Session& session, const EditOptions& o) {
  const Json answer = session.call("dlq.edit", input(session, o));
  if (session.out.json()) {
    session.out.object(answer);
  } else {
    print_members(session.out, answer);
  }
  if (o.replay && answer.at("outcome") == "duplicate") {
    session.out.note("not replayed: live job " + member_text(answer, "duplicate_of") +
                     " asks the same");
  } else if (o.replay && session.executor().where() == Executor::Where::file) {
    session.out.note("queued, but nothing is running: start aiqd, or aiqd --until-idle");
  }
  return Exit::ok;
}

}  // namespace

void add_dlq_edit(Command dlq, Session& session) {
  auto options = std::make_shared<EditOptions>();
  dlq.add("edit", "change the request of a dead letter; what failed is kept")
      .operand("ID", options->id, "As dlq list shows it; not the job's", ValueKind::dead_letter)
      .repeated("set", "POINTER=JSON", options->set,
                "Put this value at a JSON Pointer; may be given again")
      .option("request", "FILE", options->request, "A whole new body in JSON; - = standard input",
              ValueKind::file)
      .option("model", "M", options->model, "For this model", ValueKind::model)
      .option("vendor", "V", options->vendor,
              "At this vendor; default as before, or by the new model's section", ValueKind::vendor)
      .flag("replay", options->replay, "Queue its job again, in the same step")
      .run([options, &session] { return edit(session, *options); });
}

}  // namespace aiq::cli
