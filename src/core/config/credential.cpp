#include <cstddef>

#include "core/base/file.h"
#include "core/base/names.h"
#include "core/base/redact.h"
#include "core/config/config.h"
#include "core/config/config_fields.h"

namespace aiq {
namespace {

constexpr std::size_t kCredentialBytesMax = 16'384;

[[noreturn]] void fail(const VendorConfig& vendor, const std::string& key,
                       const std::string& message) {
  throw ConfigError("[" + full_key("vendors", vendor.name) + "] " + key + ": " + message);
}

// systemd puts a service's credentials into a folder of its own (systemd.exec(5), Credentials);
// a name without a slash means one of them.
std::string credential_path(const VendorConfig& vendor, GetEnv env) {
  if (vendor.api_key_file.find('/') != std::string::npos) return vendor.api_key_file;
  const std::string folder = env("CREDENTIALS_DIRECTORY");
  return folder.empty() ? vendor.api_key_file : folder + "/" + vendor.api_key_file;
}

}  // namespace

std::string read_credential(const VendorConfig& vendor, GetEnv env) {
  if (vendor.auth == "none") return "";
  std::string secret, key;
  if (!vendor.api_key_env.empty()) {
    key = "api_key_env";
    secret = env(vendor.api_key_env.c_str());
    if (secret.empty()) {
      fail(vendor, key, "the environment variable " + vendor.api_key_env + " is not set");
    }
  } else if (!vendor.api_key_file.empty()) {
    key = "api_key_file";
    auto content = read_file(credential_path(vendor, env), kCredentialBytesMax);
    if (!content) fail(vendor, key, content.error().message);
    secret = *std::move(content);
  } else {
    return "";
  }
  // Files mostly end in a newline, which would end the header early.
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  if (secret.empty()) fail(vendor, key, "the credential is empty");
  register_secret(secret);
  if (!is_plain_text(secret, kCredentialBytesMax)) {
    fail(vendor, key, "the credential has a line break or another control character in it");
  }
  return secret;
}

}  // namespace aiq
