#include "core/engine/edit.h"

#include <utility>

#include "core/base/json_canonical.h"
#include "core/base/json_pointer.h"
#include "core/base/redact.h"
#include "core/engine/submit.h"
#include "core/model/request.h"
#include "core/vendor/vendor.h"

namespace aiq {
namespace {

Failure invalid(std::string code, const std::string& message, std::string hint = "") {
  return {Exit::usage, std::move(code), redact(message), std::move(hint)};
}

Expected<std::string, Failure> with_value(const std::string& body, const PointerValue& set) {
  auto edited = set_at_pointer(body, set.pointer, set.value);
  if (edited) return std::move(*edited);
  const PointerError error = std::move(edited).error();
  const bool syntax = error.kind == PointerError::Kind::syntax;
  return Unexpected{
      invalid(syntax ? "invalid_pointer" : "no_such_place", error.message,
              syntax ? "for example /messages/0/content" : "`aiq dlq show` prints the request")};
}

bool names_model(const std::string& body) {
  const auto checked = check_body(body);
  return checked && !checked->model.empty();
}

Expected<std::string, Failure> edited_body(const LetterPayload& payload, const EditInput& input) {
  if (input.request) return *input.request;
  std::string body = payload.body;
  // The model stands in most bodies; `set` comes after it, so that two that differ are seen.
  if (!input.model.empty() && names_model(body)) {
    std::string literal;
    append_json_string(literal, input.model);
    auto named = with_value(body, {"/model", literal});
    if (!named) return Unexpected{std::move(named).error()};
    body = std::move(*named);
  }
  for (const PointerValue& set : input.set) {
    auto edited = with_value(body, set);
    if (!edited) return Unexpected{std::move(edited).error()};
    body = std::move(*edited);
  }
  return body;
}

// The endpoint that a whole new body is for.
Endpoint endpoint_of(const Config& config, const std::string& vendor, Endpoint old) {
  const auto section = config.vendors.find(vendor);
  if (section == config.vendors.end()) return old;
  const Vendor* adapter = find_vendor(section->second.api);
  return adapter == nullptr || adapter->supports(old) ? old : adapter->default_endpoint();
}

}  // namespace

std::optional<Failure> check_edit(const EditInput& input) {
  if (input.request && !input.set.empty())
    return invalid("conflicting_options", "a whole request and single values exclude each other");
  if (!input.request && input.set.empty() && input.model.empty() && input.vendor.empty())
    return invalid("missing_option", "nothing is to be changed",
                   "give --set, --request, --model or --vendor");
  for (const PointerValue& set : input.set) {
    const auto value = canonicalize_json(set.value);
    if (value) continue;
    return invalid("invalid_json",
                   "the value for " + set.pointer + " is not JSON: " + value.error().message,
                   "text stands in double quotes: /user=\"ann\"");
  }
  return std::nullopt;
}

Expected<DeadLetterEdit, Failure> prepare_edit(const Config& config, const std::string& tenant,
                                               const LetterPayload& payload, const EditInput& input,
                                               UnixMs now, Random& random,
                                               std::vector<std::string>& warnings) {
  auto body = edited_body(payload, input);
  if (!body) return Unexpected{std::move(body).error()};
  SubmitInput submit;
  submit.tenant = tenant;
  submit.model = input.model;
  submit.vendor = input.vendor;
  submit.scope = payload.scope;
  submit.locale = payload.locale;
  submit.safety = payload.safety;
  if (const auto checked = check_body(*body)) {
    if (submit.model.empty() && checked->model.empty()) submit.model = payload.model;
    const std::string& model = checked->model.empty() ? submit.model : checked->model;
    if (submit.vendor.empty() && model == payload.model) submit.vendor = payload.vendor;
    if (submit.vendor.empty()) {
      if (const VendorConfig* chosen = config.vendor_of_model(model)) submit.vendor = chosen->name;
    }
  }
  submit.endpoint =
      input.request ? endpoint_of(config, submit.vendor, payload.endpoint) : payload.endpoint;
  submit.request = std::move(*body);
  auto prepared = prepare_submission(config, submit, "", now, random);
  if (!prepared) return Unexpected{std::move(prepared).error()};
  warnings.insert(warnings.end(), prepared->warnings.begin(), prepared->warnings.end());
  NewSubmission& s = prepared->submission;
  return DeadLetterEdit{.now = now,
                        .vendor = std::move(s.vendor),
                        .model = std::move(s.model),
                        .endpoint = s.endpoint,
                        .body = std::move(s.body),
                        .keys = std::move(s.keys),
                        .cache_owner = std::move(s.cache_owner),
                        .prompt_tokens = s.prompt_tokens,
                        .output_tokens = s.output_tokens,
                        .cache_read = s.cache.read,
                        .cache_store = s.cache.store};
}

}  // namespace aiq
