#include "sim/vendor_error.h"

#include <array>

namespace aiq::sim {
namespace {

struct ErrorKind {
  int status;
  const char* anthropic_type;
  const char* openai_type;
  const char* openai_code;  // "" = null
  const char* message;
};

constexpr std::array<ErrorKind, 13> kErrors = {{
    {400, "invalid_request_error", "invalid_request_error", "", "The request is not valid."},
    {401, "authentication_error", "invalid_request_error", "invalid_api_key",
     "Incorrect API key provided."},
    {402, "billing_error", "insufficient_quota", "insufficient_quota",
     "There is a problem with your billing."},
    {403, "permission_error", "invalid_request_error", "permission_denied",
     "You are not allowed to use this model."},
    {404, "not_found_error", "invalid_request_error", "model_not_found",
     "The model does not exist."},
    {408, "timeout_error", "server_error", "request_timeout", "The request timed out."},
    {409, "conflict_error", "invalid_request_error", "conflict", "The resource was changed."},
    {413, "request_too_large", "invalid_request_error", "request_too_large",
     "The request is too large."},
    {429, "rate_limit_error", "requests", "rate_limit_exceeded", "Rate limit reached."},
    {500, "api_error", "server_error", "", "The server had an error."},
    {503, "overloaded_error", "server_error", "server_is_overloaded", "The server is overloaded."},
    {504, "timeout_error", "server_error", "timeout", "The request timed out."},
    {529, "overloaded_error", "server_error", "server_is_overloaded", "The server is overloaded."},
}};

const ErrorKind& kind_of(int status) {
  for (const ErrorKind& kind : kErrors) {
    if (kind.status == status) return kind;
  }
  return kind_of(status >= 500 ? 500 : 400);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

Json error_body(bool anthropic, const Problem& problem, const std::string& request_id) {
  const ErrorKind& kind = kind_of(problem.status);
  if (anthropic) {
    return {{"type", "error"},
            {"error", {{"type", kind.anthropic_type}, {"message", problem.message}}},
            {"request_id", request_id}};
  }
  return {{"error",
           {{"message", problem.message},
            {"type", kind.openai_type},
            {"param", text_or_null(problem.param)},
            {"code", text_or_null(problem.code)}}}};
}

Problem usual_problem(int status) {
  const ErrorKind& kind = kind_of(status);
  return {status, kind.message, "", kind.openai_code};
}

}  // namespace aiq::sim
