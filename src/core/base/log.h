#pragma once
// Structured logging. One line per event: JSON by default, or text for people. Every line passes
// through redact(). Field names are those of the operator's contract: ts level msg request_id
// job_id idempotency_key tenant model vendor attempt generation error_class upstream_ms
// correlation_id trace_id. Thread-safe.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace aiq {

enum class LogLevel { debug, info, warn, error };

struct LogConfig {
  LogLevel level = LogLevel::info;
  bool json = true;
  std::string file;  // "" = stderr
};

using LogValue = std::variant<std::string, std::int64_t, double, bool>;
struct LogField {
  std::string_view name;
  LogValue value;
};

// Opens the sink. Throws std::runtime_error when the file can't be opened.
void log_init(const LogConfig& config);
// Opens the file again under its name (after log rotation). Keeps the old one on failure.
void log_reopen();
void log_set_level(LogLevel level);
[[nodiscard]] bool log_enabled(LogLevel level);
void log_write(LogLevel level, std::string_view message, const std::vector<LogField>& fields);

inline void log_debug(std::string_view m, const std::vector<LogField>& f = {}) {
  if (log_enabled(LogLevel::debug)) log_write(LogLevel::debug, m, f);
}
inline void log_info(std::string_view m, const std::vector<LogField>& f = {}) {
  if (log_enabled(LogLevel::info)) log_write(LogLevel::info, m, f);
}
inline void log_warn(std::string_view m, const std::vector<LogField>& f = {}) {
  if (log_enabled(LogLevel::warn)) log_write(LogLevel::warn, m, f);
}
inline void log_error(std::string_view m, const std::vector<LogField>& f = {}) {
  if (log_enabled(LogLevel::error)) log_write(LogLevel::error, m, f);
}

}  // namespace aiq
