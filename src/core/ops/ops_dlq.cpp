#include <algorithm>
#include <array>
#include <tuple>

#include "core/ops/op_groups.h"

namespace aiq {
namespace {

constexpr std::array<std::string_view, 6> kReasons = {"rejected",      "attempts_exhausted",
                                                      "deadline",      "crash_limit",
                                                      "unknown_limit", "rate_limit_exhausted"};

DeadLetterFilter read_filter(Input& in) {
  DeadLetterFilter out;
  out.tenant = in.text("tenant");
  out.model = in.text("model");
  out.vendor = in.text("vendor");
  out.reason = in.text("reason");
  if (!out.reason.empty() &&
      std::find(kReasons.begin(), kReasons.end(), out.reason) == kReasons.end())
    in.problem("invalid_reason", out.reason + " is no reason of a dead letter");
  out.error_class = in.text("class");
  if (!out.error_class.empty() && !parse_outcome(out.error_class))
    in.problem("invalid_class", out.error_class + " is no outcome of an attempt");
  out.correlation_id = in.text("correlation_id");
  std::tie(out.label_key, out.label_value) = in.label("label");
  out.since = in.instant("since");
  out.until = in.instant("until");
  out.state = in.maybe_text("state").value_or("open");
  if (out.state == "all")
    out.state = "";
  else if (out.state != "open" && out.state != "replayed" && out.state != "discarded")
    in.problem("invalid_state", out.state + " is none of open, replayed, discarded, all");
  return out;
}

Expected<Json, Failure> list_dead(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"tenant", "model", "vendor", "reason", "class", "correlation_id", "label",
                  "since", "until", "state", "limit", "after"});
  const DeadLetterFilter filter = read_filter(in);
  const Page page = in.page();
  if (in.failure()) return Unexpected{*in.failure()};
  Json rows = Json::array();
  std::int64_t last = 0;
  for (const DeadLetter& letter : reader.list_dead_letters(filter, page)) {
    rows.push_back(json_dead_letter(letter));
    last = letter.dlq_id;
  }
  return json_page(std::move(rows), page, last);
}

Expected<Json, Failure> show_dead(const OpEnv&, Reader& reader, const Json& json) {
  Input in(json, {"dlq_id"});
  const std::int64_t id = in.id("dlq_id");
  if (in.failure()) return Unexpected{*in.failure()};
  const auto letter = reader.dead_letter(id);
  if (!letter)
    return Unexpected{Failure{Exit::not_found, "no_such_dead_letter",
                              "there is no dead letter " + std::to_string(id),
                              "the id is the dlq_id of `aiq dlq list`, not the job's"}};
  Json out = json_dead_letter(*letter);
  const auto body = reader.request_body(letter->job_id);
  out["payload"] = body ? json_body(*body) : Json(nullptr);
  out["attempt_log"] = json_attempts(reader.attempts_of(letter->job_id));
  return out;
}

constexpr Op kOps[] = {
    {.name = "dlq.list", .read = list_dead},
    {.name = "dlq.show", .read = show_dead},
};

}  // namespace

std::span<const Op> dlq_ops() {
  return kOps;
}

}  // namespace aiq
