#include "core/base/process.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "core/base/file.h"

namespace aiq {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 20 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Field 22 of /proc/PID/stat (proc(5)). The name of the program, in parentheses before it, may
// hold anything.
std::optional<std::string> start_of(const std::string& pid) {
  constexpr std::size_t kStatBytes = 4096;
  const auto stat = read_file("/proc/" + pid + "/stat", kStatBytes);
  if (!stat) return std::nullopt;
  std::size_t at = stat->rfind(')');
  if (at == std::string::npos) return std::nullopt;
  constexpr int kFieldsBetween = 20;
  for (int i = 0; i < kFieldsBetween; ++i) {
    at = stat->find(' ', at + 1);
    if (at == std::string::npos) return std::nullopt;
  }
  return stat->substr(at + 1, stat->find(' ', at + 1) - at - 1);
}

}  // namespace

std::string process_name() {
  const std::string pid = std::to_string(::getpid());
  return pid + ":" + start_of(pid).value_or("0");
}

bool process_lives(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view pid = name.substr(0, colon);
  std::string_view start = name.substr(colon + 1);
  start = start.substr(0, start.find(':'));
  if (!is_number(pid) || !is_number(start)) return false;
  return start_of(std::string(pid)) == start;
}

}  // namespace aiq
