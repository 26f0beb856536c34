#include "core/vendor/classify.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "core/base/check.h"

namespace aiq {
namespace {

using Failure = HttpResult::Failure;

struct FailureRow {
  Failure failure;
  Outcome outcome;
  Billed billed_if_sent;
  std::string_view code;
};
// Nothing sent is never billed.
constexpr FailureRow kFailures[] = {
    {Failure::not_sent, Outcome::network, Billed::no, "not_sent"},
    {Failure::connect_timeout, Outcome::connect_timeout, Billed::no, "connect_timeout"},
    {Failure::first_byte_timeout, Outcome::first_byte_timeout, Billed::maybe, "first_byte_timeout"},
    {Failure::total_timeout, Outcome::total_timeout, Billed::maybe, "total_timeout"},
    {Failure::broken, Outcome::network, Billed::maybe, "connection_lost"},
    {Failure::cut, Outcome::bad_response, Billed::maybe, "cut"},
    {Failure::too_large, Outcome::bad_response, Billed::maybe, "too_large"},
    {Failure::malformed, Outcome::bad_response, Billed::maybe, "not_http"},
    {Failure::cancelled, Outcome::cancelled, Billed::maybe, "cancelled"},
};

struct StatusRow {
  int first, last;
  Outcome outcome;
  Billed billed;
  bool retryable;
  PauseScope pause;
};
// The first row that covers the status counts.
constexpr StatusRow kStatuses[] = {
    {401, 401, Outcome::auth, Billed::no, true, PauseScope::vendor},
    {402, 402, Outcome::vendor_quota, Billed::no, true, PauseScope::vendor},
    {403, 403, Outcome::auth, Billed::no, true, PauseScope::model},
    {408, 409, Outcome::server_error, Billed::no, true, PauseScope::none},
    {425, 425, Outcome::server_error, Billed::no, true, PauseScope::none},
    {429, 429, Outcome::rate_limited, Billed::no, true, PauseScope::none},
    {503, 503, Outcome::overloaded, Billed::no, true, PauseScope::none},
    {529, 529, Outcome::overloaded, Billed::no, true, PauseScope::none},
    {500, 599, Outcome::server_error, Billed::no, true, PauseScope::none},
    {300, 499, Outcome::rejected, Billed::no, false, PauseScope::none},
    // 2xx that are no answer, and numbers that are no status.
    {0, 999, Outcome::bad_response, Billed::maybe, true, PauseScope::none},
};

struct NameRow {
  std::string_view name;  // "*_x": any name that ends in _x
  int like_status;        // the row of kStatuses that it means
};
// Only these of a 429 mean that a person must act.
constexpr NameRow kSpendLimits[] = {
    {"insufficient_quota", 402},     {"credit_balance_exhausted", 402},
    {"*_spend_limit_exceeded", 402}, {"*_usage_limit_exceeded", 402},
    {"billing_error", 402},          {"enforced_spend_limit_reached", 402},
};
// Names inside a 200, from the vendors' API descriptions.
constexpr NameRow kErrorNames[] = {
    {"invalid_api_key", 401},       {"authentication_error", 401},
    {"permission_error", 403},      {"permission_denied", 403},
    {"rate_limit_exceeded", 429},   {"slow_down", 429},
    {"rate_limit_error", 429},      {"server_is_overloaded", 503},
    {"service_unavailable", 503},   {"overloaded_error", 529},
    {"server_error", 500},          {"internal_error", 500},
    {"internal_server_error", 500}, {"api_error", 500},
    {"timeout_error", 504},         {"conflict_error", 409},
    {"invalid_request_error", 400}, {"invalid_request", 400},
    {"invalid_prompt", 400},        {"context_length_exceeded", 400},
    {"content_filter", 400},        {"content_policy_violation", 400},
    {"not_found_error", 404},       {"model_not_found", 404},
    {"request_too_large", 413},
};

// From Anthropic's messages; the type is the same as for any other bad request.
constexpr std::string_view kSpendLimitPhrases[] = {"spend limit", "spending limit",
                                                   "api usage limit", "credit balance is too low"};

[[nodiscard]] bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.front() != '*') return pattern == name;
  const auto ending = pattern.substr(1);
  return name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending;
}

template <std::size_t N>
[[nodiscard]] std::optional<int> find_name(const NameRow (&rows)[N], std::string_view name) {
  const auto* row =
      std::find_if(rows, rows + N, [&](const NameRow& r) { return matches(r.name, name); });
  if (row == rows + N) return std::nullopt;
  return row->like_status;
}

[[nodiscard]] bool is_spend_limit(const ErrorNames& names) {
  return find_name(kSpendLimits, names.code) || find_name(kSpendLimits, names.type) ||
         find_name(kSpendLimits, names.detail_code);
}

// Proxies send statuses as codes: "code": 429.
[[nodiscard]] std::optional<int> status_in(std::string_view code) {
  int status = 0;
  const auto [end, error] = std::from_chars(code.data(), code.data() + code.size(), status);
  if (error != std::errc{} || end != code.data() + code.size()) return std::nullopt;
  if (status < 400 || status > 599) return std::nullopt;
  return status;
}

}  // namespace

Verdict judge_failure(Failure failure, bool sent) {
  const auto* row = std::find_if(std::begin(kFailures), std::end(kFailures),
                                 [&](const FailureRow& r) { return r.failure == failure; });
  AIQ_CHECK(row != std::end(kFailures));
  return {.outcome = row->outcome,
          .billed = sent ? row->billed_if_sent : Billed::no,
          .retryable = true,
          .pause = PauseScope::none,
          .code = row->code};
}

Verdict judge_status(int status) {
  const auto* row =
      std::find_if(std::begin(kStatuses), std::end(kStatuses),
                   [&](const StatusRow& r) { return r.first <= status && status <= r.last; });
  AIQ_CHECK(row != std::end(kStatuses));
  return {.outcome = row->outcome,
          .billed = row->billed,
          .retryable = row->retryable,
          .pause = row->pause,
          .code = ""};
}

Verdict judge_error_status(int status, const ErrorNames& names) {
  if (status == 429 && is_spend_limit(names)) return spend_limit_verdict();
  return judge_status(status);
}

Verdict judge_error_in_200(const ErrorNames& names) {
  std::optional<int> like = is_spend_limit(names) ? std::optional(402) : std::nullopt;
  if (!like) like = find_name(kErrorNames, names.code);
  if (!like) like = status_in(names.code);
  if (!like) like = find_name(kErrorNames, names.type);
  Verdict verdict = judge_status(like.value_or(200));
  // A failure under the status 200 came after the work began: it may be on the bill.
  if (verdict.outcome == Outcome::server_error) verdict.billed = Billed::maybe;
  if (verdict.outcome == Outcome::bad_response) verdict.code = "error_in_200";
  return verdict;
}

bool names_spend_limit(std::string_view message) {
  std::string lower(message);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::any_of(
      std::begin(kSpendLimitPhrases), std::end(kSpendLimitPhrases),
      [&](std::string_view phrase) { return lower.find(phrase) != std::string::npos; });
}

Verdict spend_limit_verdict() {
  return judge_status(402);
}

}  // namespace aiq
