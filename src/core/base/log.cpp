#include "core/base/log.h"

#include <fcntl.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/json_canonical.h"
#include "core/base/json_number.h"
#include "core/base/redact.h"

namespace aiq {
namespace {

// The time is spdlog's part (RFC 3339, milliseconds, UTC); the rest of the line is the payload.
constexpr const char* kJsonPattern = R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ",%v})";
constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %v";

// Appends lines to a file or to stderr, each with one write, so that lines of several processes
// don't mix. spdlog's own file sink buffers, and makes files that all can read.
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LineSink(std::string path) : path_(std::move(path)) {
    if (path_.empty()) return;
    file_ = open_file();
    if (!file_) {
      throw std::runtime_error("cannot open log file " + path_ + ": " + errno_text(errno));
    }
  }

  void reopen() {
    const std::lock_guard lock(mutex_);
    if (path_.empty()) return;
    if (Fd fresh = open_file()) {
      file_ = std::move(fresh);
      cut_ = false;
    }
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    if (cut_) line.push_back('\n');
    formatter_->format(message, line);
    const std::string_view text(line.data(), line.size());
    if (!file_) {
      (void)write_all(STDERR_FILENO, text);
      return;
    }
    cut_ = write_all(file_.get(), text) != 0;
    // The disk may be full; the line must not be lost for that.
    if (cut_) (void)write_all(STDERR_FILENO, text);
  }
  void flush_() override {}

 private:
  [[nodiscard]] Fd open_file() const {
    return Fd(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  }

  std::string path_;  // "" = stderr
  Fd file_;
  bool cut_ = false;  // the last line may be incomplete
};

struct Output {
  bool json;
  std::shared_ptr<LineSink> sink;
};

std::shared_ptr<const Output> make_output(const LogConfig& config) {
  auto sink = std::make_shared<LineSink>(config.file);
  sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      config.json ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc, "\n"));
  return std::make_shared<const Output>(Output{config.json, std::move(sink)});
}

struct Logger {
  std::atomic<LogLevel> level{LogLevel::info};
  std::mutex mutex;
  std::shared_ptr<const Output> output = make_output({});  // guarded by mutex

  std::shared_ptr<const Output> current() {
    const std::lock_guard lock(mutex);
    return output;
  }
};

Logger& logger() {
  // Never destroyed: threads may still log while the process ends.
  static Logger* const instance = new Logger;
  return *instance;
}

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warn:
      return "warn";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

// Values are redacted before they are escaped: a credential then stands as it is known, and the
// line stays JSON whatever is replaced.
void append_value(std::string& out, const LogValue& value, bool quote_text) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    const std::string safe = redact(*text);
    const bool plain =
        !quote_text && !safe.empty() && std::all_of(safe.begin(), safe.end(), [](char c) {
          return c > ' ' && c < 0x7F && c != '"' && c != '=' && c != '\\';
        });
    if (plain) {
      out += safe;
    } else {
      append_json_string(out, safe);
    }
  } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    out += std::to_string(*whole);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    out += *flag ? "true" : "false";
  } else if (const double number = std::get<double>(value); std::isfinite(number)) {
    append_double(out, number);
  } else {
    out += "null";
  }
}

std::string json_payload(LogLevel level, std::string_view message,
                         const std::vector<LogField>& fields) {
  std::string out = R"("level":")";
  out += level_name(level);
  out += R"(","msg":)";
  append_json_string(out, redact(message));
  for (const LogField& field : fields) {
    out += ',';
    append_json_string(out, field.name);
    out += ':';
    append_value(out, field.value, true);
  }
  return out;
}

std::string text_payload(LogLevel level, std::string_view message,
                         const std::vector<LogField>& fields) {
  std::string out(level_name(level));
  out.resize(6, ' ');
  // Escaped, so that a message can't forge a line or steer a terminal, but not in quotes.
  std::string literal;
  append_json_string(literal, redact(message));
  out.append(literal, 1, literal.size() - 2);
  for (const LogField& field : fields) {
    out.append(" ").append(field.name).append("=");
    append_value(out, field.value, false);
  }
  return out;
}

}  // namespace

void log_init(const LogConfig& config) {
  std::shared_ptr<const Output> fresh = make_output(config);
  Logger& l = logger();
  const std::lock_guard lock(l.mutex);
  l.output = std::move(fresh);
  l.level = config.level;
}

void log_reopen() {
  logger().current()->sink->reopen();
}

void log_set_level(LogLevel level) {
  logger().level = level;
}

bool log_enabled(LogLevel level) {
  return level >= logger().level.load(std::memory_order_relaxed);
}

void log_write(LogLevel level, std::string_view message, const std::vector<LogField>& fields) {
  // A log that fails (no memory, in practice) must never fail what it tells about.
  try {
    const std::shared_ptr<const Output> output = logger().current();
    const std::string payload =
        output->json ? json_payload(level, message, fields) : text_payload(level, message, fields);
    const spdlog::log_clock::time_point now{std::chrono::milliseconds{system_clock().wall_ms()}};
    output->sink->log({now, spdlog::source_loc{}, "", spdlog::level::info, payload});
  } catch (...) {
  }
}

}  // namespace aiq
