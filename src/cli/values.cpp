#include "cli/values.h"

#include <cerrno>
#include <charconv>

#include "core/base/file.h"

namespace aiq::cli {

void fail_usage(const std::string& code, const std::string& message, const std::string& hint) {
  throw CommandFailed({Exit::usage, code, message, hint});
}

DurationMs duration_value(const std::string& option, const std::string& text) {
  const auto value = parse_duration(text);
  if (!value) {
    fail_usage("invalid_duration", option + " takes a duration, not '" + text + "'",
               "for example 250ms, 5s, 2m, 12h or 7d");
  }
  return *value;
}

std::int64_t whole_value(const std::string& option, const std::string& text, std::int64_t least,
                         std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < least || value > most) {
    fail_usage("invalid_number", option + " takes a whole number, not '" + text + "'",
               most == INT64_MAX ? "at least " + std::to_string(least)
                                 : std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

UnixMs time_value(const std::string& option, const std::string& text) {
  const auto value = parse_rfc3339(text);
  if (!value) {
    fail_usage("invalid_time", option + " takes a time, not '" + text + "'",
               "for example 2026-03-01T12:00:00Z");
  }
  return *value;
}

UnixMs future_value(const std::string& option, const std::string& text, UnixMs now) {
  if (const auto duration = parse_duration(text)) return now + *duration;
  if (const auto time = parse_rfc3339(text)) return *time;
  fail_usage("invalid_time", option + " takes a duration or a time, not '" + text + "'",
             "for example 2h or 2026-03-01T12:00:00Z");
}

UnixMs past_value(const std::string& option, const std::string& text, UnixMs now) {
  const auto value = parse_time_or_age(text, now);
  if (!value) {
    fail_usage("invalid_time", option + " takes a time or an age, not '" + text + "'",
               "for example 2026-03-01T12:00:00Z, or 1h for an hour ago");
  }
  return *value;
}

void set_text(Json& in, const char* member, const Text& text) {
  if (text) in[member] = *text;
}

void set_flag(Json& in, const char* member, bool flag) {
  if (flag) in[member] = true;
}

void set_past(Json& in, const char* member, const std::string& option, const Text& text,
              UnixMs now) {
  if (text) in[member] = format_rfc3339(past_value(option, *text, now));
}

void set_duration(Json& in, const char* member, const std::string& option, const Text& text) {
  if (text) in[member] = duration_value(option, *text);
}

void set_label(Json& in, const Text& label) {
  if (!label) return;
  if (label->find('=') == std::string::npos || label->starts_with("=")) {
    fail_usage("invalid_label", "--label takes key=value, not '" + *label + "'",
               "for example --label team=search");
  }
  in["label"] = *label;
}

void set_labels(Json& in, const Texts& labels) {
  for (const std::string& label : labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      fail_usage("invalid_label", "--label takes key=value, not '" + label + "'",
                 "for example --label team=search");
    }
    const std::string key = label.substr(0, equals);
    if (in.contains("labels") && in["labels"].contains(key)) {
      fail_usage("repeated_label", "the label '" + key + "' is given more than once",
                 "a key has one value");
    }
    in["labels"][key] = label.substr(equals + 1);
  }
}

std::string read_input(const std::string& option, const std::string& path, std::int64_t max_bytes) {
  const std::int64_t limit = request_bytes_bound(max_bytes);
  auto text = read_file(path, static_cast<std::size_t>(limit));
  if (text) return std::move(*text);
  if (text.error().code == EFBIG) {
    throw CommandFailed({Exit::refused, "too_large",
                         option + ": " + path + " is larger than " + format_size(limit),
                         "the limit is limits.request_bytes in aiq.toml"});
  }
  fail_usage("cannot_read", option + ": " + text.error().message, "");
}

}  // namespace aiq::cli
