#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/config/config.h"

namespace aiq {
namespace {

constexpr const char* kSystemConfig = "/etc/aiq/aiq.toml";
constexpr const char* kSystemDatabase = "/var/lib/aiq/aiq.db";

// A folder of the XDG Base Directory Specification: the variable, which counts only when it is
// absolute, else `fallback` in the home folder. "" when neither is known.
std::string xdg_folder(GetEnv env, const char* variable, const char* fallback) {
  std::string folder = env(variable);
  if (folder.starts_with('/')) return folder;
  const std::string home = env("HOME");
  return home.starts_with('/') ? home + fallback : "";
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

std::string process_env(const char* name) {
  // Nothing in these programs changes the environment.
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

std::string find_config_path(const std::string& option, GetEnv env) {
  if (!option.empty()) return option;
  if (std::string path = env("AIQ_CONFIG"); !path.empty()) return path;
  if (const std::string folder = xdg_folder(env, "XDG_CONFIG_HOME", "/.config"); !folder.empty()) {
    std::string path = folder + "/aiq/aiq.toml";
    if (exists(path)) return path;
  }
  return exists(kSystemConfig) ? kSystemConfig : "";
}

namespace {

std::string chosen_db_path(const std::string& option, const Config& config, GetEnv env,
                           bool is_root) {
  if (!option.empty()) return option;
  if (std::string path = env("AIQ_DB"); !path.empty()) return path;
  if (!config.db.empty()) return config.db;
  if (is_root) return kSystemDatabase;
  const std::string folder = xdg_folder(env, "XDG_STATE_HOME", "/.local/state");
  if (folder.empty()) {
    throw ConfigError("db: there is no home folder for the database; name one with --db");
  }
  return folder + "/aiq/aiq.db";
}

}  // namespace

std::string resolve_db_path(const std::string& option, const Config& config, GetEnv env,
                            bool is_root) {
  const std::string path = chosen_db_path(option, config, env, is_root);
  if (path == ":memory:") {
    throw ConfigError("db: a database in memory would be gone at once; name a file");
  }
  // One file, one name: the lock and the socket stand beside it, and a second name through a
  // link would have its own.
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

std::string resolve_socket_path(const Config& config, const std::string& db_path) {
  return config.daemon.socket.empty() ? db_path + ".sock" : config.daemon.socket;
}

}  // namespace aiq
