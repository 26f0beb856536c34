#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/redact.h"
#include "core/config/config.h"

using namespace aiq;

namespace {

// Recognisable in any output, and shaped like no vendor's key.
const std::string kSecret = "hush-4711-open-sesame";

std::string error_of(const std::string& lines) {
  try {
    (void)parse_config("[vendors.main]\napi = \"openai\"\n" + lines, "aiq.toml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string with_url(const std::string& url) {
  return "base_url = \"" + url + "\"\n";
}

const std::string kUrl = with_url("https://api.example.com/v1");

// A folder that is removed with its content.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "aiq-config-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ + "/" + name) << content;
    return path_ + "/" + name;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string g_credentials_folder;

std::string fake_env(const char* name) {
  const std::string variable = name;
  if (variable == "MAIN_KEY") return kSecret + " \n";
  if (variable == "BROKEN_KEY") return "broken-secret-1\nX-Injected: 1";
  if (variable == "BLANK_KEY") return " \n";
  if (variable == "CREDENTIALS_DIRECTORY") return g_credentials_folder;
  return "";
}

std::string credential_error(const VendorConfig& vendor) {
  try {
    (void)read_credential(vendor, fake_env);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

VendorConfig vendor_with(const std::string& env, const std::string& file) {
  VendorConfig vendor;
  vendor.name = "main";
  vendor.auth = "bearer";
  vendor.api_key_env = env;
  vendor.api_key_file = file;
  return vendor;
}

}  // namespace

TEST_CASE("config: secrets in headers are refused and not repeated") {
  for (const char* header : {"Authorization", "authorization", "x-api-key", "X-API-Key", "api-key",
                             "Cookie", "Proxy-Authorization", "X-Goog-Api-Key", "X-Auth-Token"}) {
    const std::string error =
        error_of(kUrl + "headers = { \"" + header + "\" = \"" + kSecret + "\" }");
    CAPTURE(error);
    CHECK(error.find("secret; use api_key_env or api_key_file") != std::string::npos);
    CHECK(error.find("aiq.toml:4") != std::string::npos);
    CHECK(error.find(kSecret) == std::string::npos);
  }
  for (const char* value :
       {"Bearer hush-4711", "bearer hush-4711", "sk-hush4711", "a sk-hush4711", "Basic hush4711"}) {
    const std::string error = error_of(kUrl + "headers = { \"X-Team\" = \"" + value + "\" }");
    CAPTURE(error);
    CHECK(error.find("secret; use api_key_env or api_key_file") != std::string::npos);
    CHECK(error.find("hush") == std::string::npos);
  }
  CHECK(error_of(kUrl + R"(headers = { "X-Team" = "task-1", "OpenAI-Organization" = "org-1" })") ==
        "no error");
}

TEST_CASE("config: headers are those of HTTP") {
  for (const char* name : {"X Team", "X-Team:", "", "X-T\\u00e9am"}) {
    CHECK(error_of(kUrl + "headers = { \"" + name + "\" = \"a\" }")
              .starts_with("[vendors.main] headers"));
  }
  CHECK(error_of(kUrl + R"(headers = { "X-Team" = "a\r\nX-Other: b" })")
            .find("without control characters") != std::string::npos);
  CHECK(error_of(kUrl + "headers = { \"X-Team\" = 1 }") ==
        "[vendors.main] headers.X-Team: expected text in quotes (aiq.toml:4)");
  CHECK(error_of(kUrl + "idempotency_header = \"Authorization\"") ==
        "[vendors.main] idempotency_header: expected the name of a header (aiq.toml:4)");
  CHECK(error_of(kUrl + "attempt_header = \"X Aiq\"") ==
        "[vendors.main] attempt_header: expected the name of a header (aiq.toml:4)");
}

TEST_CASE("config: secrets in URLs are refused and not repeated") {
  const std::vector<std::string> urls = {
      "https://user:hush@api.example.com/v1",       "https://hush@api.example.com",
      "https://api.example.com/v1?api_key=hush",    "https://api.example.com/v1?x=1&Key=hush",
      "https://api.example.com/?access_token=hush", "https://api.example.com/sk-hush4711/v1",
      "https://api.example.com/?a=1;sig=hush"};
  for (const std::string& url : urls) {
    const std::string error = error_of(with_url(url));
    CAPTURE(error);
    CHECK(error.starts_with("[vendors.main] base_url: "));
    CHECK(error.find("aiq.toml:3") != std::string::npos);
    CHECK(error.find("hush") == std::string::npos);
  }
  for (const char* key : {"proxy", "[tracing]\nendpoint"}) {
    const std::string error = error_of(kUrl + key + " = \"http://user:hush@127.0.0.1:1\"");
    CAPTURE(error);
    CHECK(error.find("must hold no user name or password") != std::string::npos);
    CHECK(error.find("hush") == std::string::npos);
  }
}

TEST_CASE("config: a base URL is one of HTTP, without a query or a last slash") {
  for (const char* url : {"api.example.com", "ftp://api.example.com", "https://", "https:///v1",
                          "https://:443/v1", "https://api.example.com/v1?a=b",
                          "https://api.example.com/v1#x", "https://api.example.com/a b"}) {
    CAPTURE(url);
    CHECK(error_of(with_url(url)).starts_with("[vendors.main] base_url: "));
  }
  const auto normal = [](const std::string& url) {
    return parse_config("[vendors.main]\napi = \"openai\"\n" + with_url(url), "a")
        .vendors.at("main")
        .base_url;
  };
  CHECK(normal("HTTPS://api.example.com/") == "HTTPS://api.example.com");
  CHECK(normal("http://127.0.0.1:8089/v1//") == "http://127.0.0.1:8089/v1");
  CHECK(normal("http://[::1]:8089") == "http://[::1]:8089");
}

TEST_CASE("config: a key in place of its reference is refused and not repeated") {
  for (const std::string line :
       {"api_key_env = \"sk-hush4711\"", "api_key_env = \"4hush\"",
        "api_key_file = \"sk-hush4711\"", "sk-hush4711 = 1", "base_url = sk-hush4711",
        "rpm = \"sk-hush4711\"", "auth = \"Bearer hush\""}) {
    const std::string error = error_of((line.starts_with("base_url") ? "" : kUrl) + line);
    CAPTURE(error);
    CHECK(error != "no error");
    CHECK(error.find("hush") == std::string::npos);
  }
  CHECK(error_of(kUrl + "api_key_env = \"A\"\napi_key_file = \"/b\"") ==
        "[vendors.main] api_key_file: api_key_env is set too: keep one of them (aiq.toml:5)");
}

TEST_CASE("credential: it comes from the environment, trimmed and redacted from then on") {
  CHECK(read_credential(vendor_with("MAIN_KEY", ""), fake_env) == kSecret);
  CHECK(redact("a " + kSecret + " b") == "a [redacted] b");
  CHECK(credential_error(vendor_with("MISSING_KEY", "")) ==
        "[vendors.main] api_key_env: the environment variable MISSING_KEY is not set");
  CHECK(credential_error(vendor_with("BLANK_KEY", "")) ==
        "[vendors.main] api_key_env: the credential is empty");
}

TEST_CASE("credential: it comes from a file, or from systemd's folder by name") {
  const TempFolder folder;
  const std::string file = folder.write("openai", "file-secret-0815\n");
  CHECK(read_credential(vendor_with("", file), fake_env) == "file-secret-0815");
  g_credentials_folder = folder.path();
  CHECK(read_credential(vendor_with("", "openai"), fake_env) == "file-secret-0815");
  g_credentials_folder.clear();
  const std::string missing = credential_error(vendor_with("", folder.path() + "/none"));
  CHECK(missing.starts_with("[vendors.main] api_key_file: "));
  CHECK(missing.find(folder.path() + "/none") != std::string::npos);
  CHECK(credential_error(vendor_with("", folder.write("empty", "\n"))) ==
        "[vendors.main] api_key_file: the credential is empty");
}

TEST_CASE("credential: one that would break the header is refused and not repeated") {
  const std::string error = credential_error(vendor_with("BROKEN_KEY", ""));
  CHECK(error.find("control character") != std::string::npos);
  CHECK(error.find("broken-secret-1") == std::string::npos);
}

TEST_CASE("credential: a vendor without one, or without authentication, has none") {
  CHECK(read_credential(vendor_with("", ""), fake_env).empty());
  VendorConfig open = vendor_with("MISSING_KEY", "");
  open.auth = "none";
  CHECK(read_credential(open, fake_env).empty());
}
