#include "sim/simulator.h"

#include <algorithm>
#include <utility>

#include "sim/vendor_error.h"

namespace aiq::sim {

struct Simulator::Case {
  const Request& request;
  ApiRequest api;
  Now now;
  std::vector<Completion> completions;  // empty when the request has a problem
  std::string request_id;
  Plan plan;
  Json body;  // null = the plan's body is final text
  JournalEntry entry;
};

namespace {

constexpr const char* kHtmlHead = "<html>\r\n<head><title>";
constexpr const char* kHtmlMiddle = "</title></head>\r\n<body>\r\n<center><h1>";
constexpr const char* kHtmlTail =
    "</h1></center>\r\n<hr><center>gateway</center>\r\n</body></html>\r\n";

bool equal_names(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

void set_header(Headers& headers, const std::string& name, const std::string& value) {
  std::erase_if(headers, [&](const auto& header) { return equal_names(header.first, name); });
  headers.emplace_back(name, value);
}

std::string received_credential(const Headers& headers) {
  std::string_view credential = find_header(headers, "x-api-key");
  if (credential.empty()) credential = find_header(headers, "authorization");
  constexpr std::string_view kBearer = "bearer ";
  if (credential.size() > kBearer.size() &&
      equal_names(credential.substr(0, kBearer.size()), kBearer)) {
    credential.remove_prefix(kBearer.size());
  }
  return std::string(credential);
}

// What a request takes from the token window: prompt and the output it may have at most, or the
// answer it gets when it sets no limit.
std::int64_t charged_tokens(const ApiRequest& api, const std::vector<Completion>& completions) {
  std::int64_t output = 0;
  if (api.max_tokens) {
    output = *api.max_tokens * api.choices;
  } else {
    for (const Completion& completion : completions)
      output += completion.tokens;
  }
  return api.prompt_tokens() + output;
}

std::string html_page(int status) {
  const std::string title = std::to_string(status) + " from the gateway";
  return kHtmlHead + title + kHtmlMiddle + title + kHtmlTail;
}

std::string ending_name(const Plan& plan) {
  switch (plan.ending) {
    case Ending::close:
      return "close";
    case Ending::reset:
      return "reset";
    case Ending::cut:
    case Ending::cut_chunked:
      return "cut";
    case Ending::complete:
      break;
  }
  return plan.hold ? "hold" : "";
}

}  // namespace

Simulator::Simulator(const SimulatorOptions& options, RuleSet rules)
    : options_(options),
      rules_(std::move(rules)),
      limits_(options.limits),
      latencies_(options.seed) {}

Plan Simulator::decide(const Request& request, Now now) {
  Case c{.request = request,
         .api = read_api_request(request),
         .now = now,
         .completions = {},
         .request_id = "",
         .plan = {},
         .body = {},
         .entry = {}};
  c.entry.sequence = ++received_;
  c.entry.at = now.wall;
  c.request_id = "req_sim" + std::to_string(received_);
  c.plan.headers.emplace_back("Content-Type", "application/json");
  c.plan.headers.emplace_back(c.api.anthropic ? "request-id" : "x-request-id", c.request_id);
  if (!c.api.problem) c.completions = complete(c.api, options_.seed);

  if (const std::optional<Refusal> refusal = admit(c)) {
    refuse(c, *refusal);
  } else {
    c.plan.in_flight = true;
    ++in_flight_;
    c.plan.delay = draw_latency();
    const Rule* rule = rules_.choose(request, c.api, now.mono);
    if (rule != nullptr) {
      apply(c, *rule);
    } else {
      answer(c);
    }
  }
  conclude(c);
  return std::move(c.plan);
}

std::optional<Refusal> Simulator::admit(Case& c) {
  if (c.api.api == Api::models || c.api.api == Api::unknown) return std::nullopt;
  auto refusal = limits_.admit(c.now.mono, charged_tokens(c.api, c.completions), in_flight_);
  const Headers rate = limits_.rate_headers(c.api.anthropic, c.now.mono, c.now.wall);
  c.plan.headers.insert(c.plan.headers.end(), rate.begin(), rate.end());
  return refusal;
}

void Simulator::conclude(Case& c) {
  if (!c.body.is_null()) c.plan.body = dump(c.body);
  const bool answers = c.plan.ending != Ending::close && c.plan.ending != Ending::reset;
  if (answers) c.entry.status = c.plan.status;
  c.entry.ending = ending_name(c.plan);
  c.entry.rule = c.plan.rule;
  c.plan.journal_line = journal_line(c.entry, c.request, c.api);
}

DurationMs Simulator::draw_latency() {
  const DurationMs span = options_.latency_max - options_.latency_min;
  if (span <= 0) return options_.latency_min;
  const auto drawn = latencies_.below(static_cast<std::uint64_t>(span) + 1);
  return options_.latency_min + static_cast<DurationMs>(drawn);
}

void Simulator::refuse(Case& c, const Refusal& refusal) {
  Problem problem = usual_problem(429);
  problem.message = refusal.message;
  c.plan.status = 429;
  set_header(c.plan.headers, "Retry-After", std::to_string(refusal.retry_after_s));
  c.body = error_body(c.api.anthropic, problem, c.request_id);
  c.entry.limited = refusal.limit;
}

void Simulator::answer(Case& c) {
  if (c.api.problem) {
    c.plan.status = c.api.problem->status;
    c.body = error_body(c.api.anthropic, *c.api.problem, c.request_id);
    return;
  }
  c.body = answer_body(c.api, c.completions, options_.seed,
                       {.sequence = c.entry.sequence, .at = c.now.wall});
  if (const auto usage = c.body.find("usage"); usage != c.body.end()) c.entry.usage = *usage;
}

void Simulator::use_usual_body(Case& c, const Act& act) {
  const std::string credential = received_credential(c.request.headers);
  if (act.status && *act.status >= 300) {
    Problem problem = usual_problem(*act.status);
    if (act.echo_secret) problem.message += " Received: " + credential;
    c.body = error_body(c.api.anthropic, problem, c.request_id);
  } else if (act.status && *act.status != 200) {
    // Accepted or without content: not a finished answer.
    return;
  } else {
    if (act.echo_secret && !c.api.problem) {
      c.completions = complete(c.api, options_.seed, " Received: " + credential);
    }
    answer(c);
  }
  if (act.usage_given) {
    c.entry.usage = act.usage;
    if (act.usage.is_null()) {
      c.body.erase("usage");
    } else {
      c.body["usage"] = act.usage;
    }
  }
}

void Simulator::use_body(Case& c, const Act& act) {
  c.plan.status = act.status.value_or(200);
  switch (act.body_kind) {
    case BodyKind::usual:
      use_usual_body(c, act);
      break;
    case BodyKind::given:
      c.plan.body = act.body;
      if (act.body_is_json) {
        const Json given = Json::parse(act.body);
        if (const auto usage = given.find("usage"); given.is_object() && usage != given.end()) {
          c.entry.usage = *usage;
        }
      }
      if (act.echo_secret) c.plan.body += received_credential(c.request.headers);
      break;
    case BodyKind::invalid_json:
      use_usual_body(c, act);
      c.plan.body = dump(c.body);
      c.plan.body.resize(c.plan.body.size() / 2);
      c.body = nullptr;
      c.entry.usage = nullptr;
      break;
    case BodyKind::empty:
      break;
    case BodyKind::html:
      set_header(c.plan.headers, "Content-Type", "text/html");
      c.plan.body = html_page(c.plan.status);
      break;
  }
}

void Simulator::apply(Case& c, const Rule& rule) {
  const Act& act = rule.act;
  c.plan.rule = rule.name;
  c.plan.hold = act.hold;
  c.plan.ending = act.ending;
  if (act.delay) c.plan.delay = *act.delay;
  if (act.ending == Ending::close || act.ending == Ending::reset) return;

  use_body(c, act);
  for (const auto& [name, value] : act.headers)
    set_header(c.plan.headers, name, value);
  if (act.echo_secret) {
    set_header(c.plan.headers, "x-received-credential", received_credential(c.request.headers));
  }
  c.plan.body_delay = act.body_delay;
  if (act.ending == Ending::cut || act.ending == Ending::cut_chunked) {
    if (!c.body.is_null()) c.plan.body = dump(c.body);
    c.body = nullptr;
    const std::size_t size = c.plan.body.size();
    // At least one byte must be missing, or nothing would be cut.
    c.plan.cut_at = act.cut_at
                        ? std::min(static_cast<std::size_t>(*act.cut_at), size > 0 ? size - 1 : 0)
                        : size / 2;
    c.entry.usage = nullptr;
  }
}

}  // namespace aiq::sim
