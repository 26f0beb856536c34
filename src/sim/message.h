#pragma once
// The parts of HTTP that the simulator's own logic sees. No server library here.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace aiq::sim {

// Members keep the order in which they were written, so that answers and journal lines read well.
using Json = nlohmann::ordered_json;

using Headers = std::vector<std::pair<std::string, std::string>>;

// One whole request. Header names are in lower case; a repeated header is there once per line.
struct Request {
  std::string method;  // "POST"
  std::string path;    // "/v1/chat/completions", without the query
  Headers headers;
  std::string body;
};

// The first value of a header, or "" when it is absent. `name` in lower case.
[[nodiscard]] inline std::string_view find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

// JSON text of `value`; bytes that are not UTF-8 become U+FFFD instead of an error.
[[nodiscard]] inline std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace aiq::sim
