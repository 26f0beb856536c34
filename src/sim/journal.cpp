#include "sim/journal.h"

#include <fcntl.h>

#include <cerrno>

#include "core/base/duration.h"
#include "core/base/sha256.h"

namespace aiq::sim {
namespace {

constexpr std::size_t kPromptHead = 80;  // code points

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json open_headers(const Headers& headers) {
  Json out = Json::object();
  for (const auto& [name, value] : headers) {
    if (is_secret_header(name)) continue;
    const auto earlier = out.find(name);
    if (earlier == out.end()) {
      out[name] = value;
    } else {
      *earlier = earlier->get<std::string>() + ", " + value;
    }
  }
  return out;
}

bool is_authorized(const Headers& headers) {
  return !find_header(headers, "authorization").empty() ||
         !find_header(headers, "x-api-key").empty() || !find_header(headers, "api-key").empty();
}

}  // namespace

bool is_secret_header(std::string_view name) {
  return name == "authorization" || name == "x-api-key" || name == "api-key" || name == "cookie" ||
         name == "proxy-authorization";
}

std::string journal_line(const JournalEntry& entry, const Request& request, const ApiRequest& api) {
  Json line = Json::object();
  line["seq"] = entry.sequence;
  line["at"] = format_rfc3339(entry.at);
  line["at_ms"] = entry.at;
  line["method"] = request.method;
  line["path"] = request.path;
  line["model"] = text_or_null(api.model);
  line["headers"] = open_headers(request.headers);
  line["authorized"] = is_authorized(request.headers);
  line["body_sha256"] = sha256_hex(request.body);
  line["body_bytes"] = request.body.size();
  line["prompt_head"] = head_of(api.last_user_text, kPromptHead);
  line["rule"] = text_or_null(entry.rule);
  line["limited"] = text_or_null(entry.limited);
  line["answered"] =
      !entry.ending.empty() || !entry.status ? Json(entry.ending) : Json(*entry.status);
  line["status"] = entry.status ? Json(*entry.status) : Json(nullptr);
  line["usage"] = entry.usage;
  return dump(line) + "\n";
}

Expected<Journal, FileError> Journal::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) {
    const int code = errno;
    return Unexpected{FileError{code, "cannot write " + path + ": " + errno_text(code)}};
  }
  return Journal(std::move(fd));
}

bool Journal::write(std::string_view line) {
  return write_all(fd_.get(), line) == 0;
}

}  // namespace aiq::sim
