#pragma once
// What describes a request on the command line: for submit, run and cache explain.

#include "cli/command.h"
#include "cli/session.h"

namespace aiq::cli {

struct RequestOptions {
  Text tenant, model, vendor, endpoint;
  Text prompt, prompt_file, request, system, max_tokens, temperature;
  Text scope, locale, safety;
  Text priority, delay, at, deadline, max_attempts;
  Text idempotency_key, correlation_id;
  Texts labels;
  Text ttl, max_age;
  bool no_cache = false, no_store = false, bypass_cache = false, only_if_cached = false;
  bool resubmit = false;

  // Tenant, model, vendor, endpoint, scope, locale, safety: what a key is made of besides the body.
  void add_key_options(Command& command);
  void add_to(Command& command);
  void set_key_members(Json& in) const;
  // What applies to every line of a batch: the input of `submit` without a body and its key, times
  // counted from now. CommandFailed when an option is given that is of one request only.
  [[nodiscard]] Json line_options(Session& session) const;
  // These options as given, for telling whether two batches have the same.
  [[nodiscard]] std::string line_options_as_given() const;
  // CommandFailed when it is given and empty.
  void check_key() const;
  // The input of the operation `submit`. Reads files and standard input; CommandFailed when
  // options contradict each other.
  [[nodiscard]] Json input(Session& session) const;

 private:
  void set_common(Json& in, UnixMs now) const;
};

}  // namespace aiq::cli
