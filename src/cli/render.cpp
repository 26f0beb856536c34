#include "cli/render.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/text.h"

namespace aiq::cli {
namespace {

std::string joined_pairs(const Json& object) {
  std::string out;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    out += (out.empty() ? "" : " ") + key + "=" + scalar_text(value);
  }
  return out;
}

std::string error_text(const Json& error) {
  std::string out = member_text(error, "class");
  if (!error.value("code", Json()).is_null()) out += " " + member_text(error, "code");
  if (!error.value("message", Json()).is_null()) out += ": " + member_text(error, "message");
  if (!error.value("http_status", Json()).is_null()) {
    out += " (HTTP " + member_text(error, "http_status") + ")";
  }
  return out;
}

std::string rounded(double number) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.3f", number);
  return buffer.data();
}

std::string member_line(const std::string& name, const Json& value) {
  if (name == "error" && value.is_object()) return error_text(value);
  if (name == "bytes" || name.ends_with("_bytes")) {
    if (value.is_number_integer()) return human_bytes(value.get<std::int64_t>());
  }
  if (value.is_number_float()) return rounded(value.get<double>());
  const bool flat =
      value.is_object() &&
      std::none_of(value.begin(), value.end(), [](const Json& v) { return v.is_structured(); });
  return flat ? joined_pairs(value) : scalar_text(value);
}

}  // namespace

std::string scalar_text(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return without_fraction(value.get_ref<const std::string&>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string member_text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? "-" : scalar_text(*found);
}

std::string age_text(const Json& object, const char* name, UnixMs now) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return "-";
  const auto at = parse_rfc3339(found->get_ref<const std::string&>());
  return at ? short_age(now - *at) + " ago" : "-";
}

void print_members(Output& out, const Json& object, const std::vector<std::string>& skip,
                   bool all) {
  const auto shown = [&](const std::string& name, const Json& value) {
    if (std::find(skip.begin(), skip.end(), name) != skip.end()) return false;
    const bool nothing = value.is_null() || (value.is_structured() && value.empty());
    return all || !nothing;
  };
  std::size_t width = 0;
  for (const auto& [name, value] : object.items()) {
    if (shown(name, value)) width = std::max(width, name.size());
  }
  for (const auto& [name, value] : object.items()) {
    if (!shown(name, value)) continue;
    const std::string text = printable(member_line(name, value));
    const bool state = name == "status" || name == "state";
    out.line(name + ":" + std::string(width - name.size() + 2, ' ') +
             (state ? out.tone(text, tone_of(text)) : text));
  }
}

void print_attempts(Output& out, const Json& attempts) {
  if (!attempts.is_array() || attempts.empty()) return;
  Table table = out.table({{"ATTEMPT", true},
                           {"OUTCOME"},
                           {"BILLED"},
                           {"HTTP", true},
                           {"STARTED"},
                           {"MS", true},
                           {"REQUEST", false, true}});
  for (const Json& a : attempts) {
    const std::string outcome =
        a.value("outcome", Json()).is_null() ? "running" : member_text(a, "outcome");
    table.add({member_text(a, "generation") + "." + member_text(a, "attempt"),
               {outcome, tone_of(outcome)},
               member_text(a, "billed"),
               member_text(a, "http_status"),
               member_text(a, "started_at"),
               member_text(a, "total_ms"),
               member_text(a, "vendor_request_id")});
  }
  out.line("");
  out.text(table.take());
}

std::string job_sentence(const Json& job) {
  std::string out = "job " + member_text(job, "job_id") + " is " + member_text(job, "status");
  const auto error = job.find("error");
  if (error != job.end() && error->is_object()) out += ": " + error_text(*error);
  return out;
}

const std::string& answer_text(const Json& result) {
  const Json& text = result.at("text");
  if (text.is_string()) return text.get_ref<const std::string&>();
  const std::string id = member_text(result, "job_id");
  if (result.at("endpoint") == "embeddings") {
    throw CommandFailed({Exit::usage, "no_text", "job " + id + " has embeddings, not text",
                         "aiq result " + id + " prints them"});
  }
  throw CommandFailed({Exit::no, "no_text", "the answer of job " + id + " holds no text",
                       "aiq result " + id + " prints all of it"});
}

void print_answer_text(Output& out, const Json& result) {
  const std::string& text = answer_text(result);
  out.text(text);
  if (!text.ends_with('\n')) out.text("\n");
  out.flush();
  note_source(out, result);
}

void note_source(Output& out, const Json& result) {
  const Json stale = result.value("stale", Json());
  if (stale.is_boolean() && stale.get<bool>()) {
    out.note("from the cache, past its soft TTL; a newer answer is on its way");
  } else if (result.value("result_source", Json()) == "cache") {
    out.note("from the cache");
  }
}

}  // namespace aiq::cli
