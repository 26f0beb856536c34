#pragma once
// A flat JSON object, written member by member.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/json_canonical.h"

namespace aiq {

class ObjectWriter {
 public:
  void text(std::string_view name, std::string_view value) {
    begin(name);
    append_json_string(out_, value);
  }
  // `value` is JSON.
  void raw(std::string_view name, std::string_view value) {
    begin(name);
    out_ += value;
  }
  void number(std::string_view name, std::optional<std::int64_t> value) {
    if (value) raw(name, std::to_string(*value));
  }
  [[nodiscard]] std::string finish() && { return std::move(out_) + "}"; }

 private:
  void begin(std::string_view name) {
    out_ += out_.size() == 1 ? "" : ",";
    append_json_string(out_, name);
    out_ += ':';
  }
  std::string out_ = "{";
};

// [{"role":"system","content":...},{"role":"user","content":...}]; no system turn when it is "".
[[nodiscard]] inline std::string chat_turns(std::string_view system, std::string_view prompt) {
  std::string turns = "[";
  const auto add = [&turns](std::string_view role, std::string_view content) {
    ObjectWriter turn;
    turn.text("role", role);
    turn.text("content", content);
    turns += (turns.size() == 1 ? "" : ",") + std::move(turn).finish();
  };
  if (!system.empty()) add("system", system);
  add("user", prompt);
  return turns + "]";
}

}  // namespace aiq
