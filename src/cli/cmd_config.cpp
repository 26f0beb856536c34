// aiq config check, aiq config show

#include "cli/commands.h"

namespace aiq::cli {
namespace {

// aiqd needs the keys, aiq does not: what can't be read here may well be readable there.
std::vector<std::string> credential_warnings(const Config& config) {
  std::vector<std::string> warnings;
  for (const auto& [name, vendor] : config.vendors) {
    try {
      static_cast<void>(read_credential(vendor, process_env));
    } catch (const ConfigError& error) {
      warnings.emplace_back(error.what());
    }
  }
  return warnings;
}

Exit check(Session& session) {
  const Config& config = session.config();
  std::vector<std::string> warnings = without_effect(config);
  for (const std::string& warning : credential_warnings(config))
    warnings.push_back(warning + "; aiqd will need it");
  for (const std::string& warning : warnings)
    session.out.warn(warning);
  if (session.out.json()) {
    Json path = nullptr;
    if (!config.path.empty()) path = config.path;
    session.out.object({{"ok", true}, {"path", path}, {"warnings", warnings}});
  } else {
    session.out.line("ok " + (config.path.empty() ? "(no file: defaults)" : config.path));
  }
  return Exit::ok;
}

Exit show(Session& session) {
  Output& out = session.out;
  for (const EffectiveValue& value : effective_values(session.config())) {
    if (out.json()) {
      out.object({{"key", value.key}, {"value", value.value}, {"origin", value.origin}});
    } else {
      out.line(value.key + " = " + value.value + out.tone("  # " + value.origin, Tone::faint));
    }
  }
  return Exit::ok;
}

}  // namespace

void add_config(Command root, Session& session) {
  Command config = root.add("config", "check and show the configuration");
  config.add("check", "say ok, or what is wrong in which line (exit 2)").run([&session] {
    return check(session);
  });
  config.add("show", "print every key, its effective value and where that is from").run([&session] {
    return show(session);
  });
}

}  // namespace aiq::cli
