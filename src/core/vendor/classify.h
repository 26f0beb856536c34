#pragma once
// What an answer means: the table of the operator's contract (section 5.1) as data. classify.cpp
// holds the rows; the functions only look them up.

#include <string_view>

#include "core/model/attempt.h"
#include "core/model/http.h"

namespace aiq {

enum class PauseScope { none, vendor, model };

struct Verdict {
  Outcome outcome = Outcome::bad_response;
  Billed billed = Billed::maybe;  // before usage is looked at
  bool retryable = true;          // before x-should-retry
  PauseScope pause = PauseScope::none;
  std::string_view code;  // ours, for when the vendor names none
};

// An exchange without a whole answer. `failure` is not Failure::none.
[[nodiscard]] Verdict judge_failure(HttpResult::Failure failure, bool sent);

// A whole answer by its status alone. 200 is the row of a 200 that can't be an answer.
[[nodiscard]] Verdict judge_status(int status);

// The names by which an error goes, each "" when absent.
struct ErrorNames {
  std::string_view code, type;
  std::string_view detail_code;  // Anthropic: error.details.error_code
};

// An error status: the status, refined by the names where it has two meanings (429).
[[nodiscard]] Verdict judge_error_status(int status, const ErrorNames& names);

// An error object inside a 200. A code that is a number counts as the status it names.
[[nodiscard]] Verdict judge_error_in_200(const ErrorNames& names);

// Whether the message of an Anthropic 400 names a spend limit.
[[nodiscard]] bool names_spend_limit(std::string_view message);

// The row of a spend limit.
[[nodiscard]] Verdict spend_limit_verdict();

}  // namespace aiq
