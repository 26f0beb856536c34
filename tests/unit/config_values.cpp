#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/config/config.h"

using namespace aiq;

namespace {

std::map<std::string, EffectiveValue> by_key(const Config& config) {
  std::map<std::string, EffectiveValue> out;
  for (const EffectiveValue& value : effective_values(config)) {
    CHECK_MESSAGE(out.emplace(value.key, value).second, value.key << " is there twice");
  }
  return out;
}

// The defaults of the operator's contract, as TOML.
const std::vector<std::pair<std::string, std::string>> kDefaults = {
    {"db", R"("")"},
    {"default_vendor", R"("")"},
    {"daemon.socket", R"("")"},
    {"daemon.socket_group", R"("")"},
    {"daemon.workers", "2"},
    {"daemon.max_in_flight", "512"},
    {"daemon.lease", R"("1m")"},
    {"daemon.drain_timeout", R"("30s")"},
    {"daemon.metrics_listen", R"("")"},
    {"daemon.aggregate_every", R"("1m")"},
    {"daemon.audit_every", R"("1h")"},
    {"daemon.age_step", R"("1m")"},
    {"daemon.disk_reserve", R"("256MiB")"},
    {"daemon.log_format", R"("json")"},
    {"daemon.log_level", R"("info")"},
    {"daemon.log_file", R"("")"},
    {"limits.request_bytes", R"("16MiB")"},
    {"limits.response_bytes", R"("16MiB")"},
    {"limits.unknown_tenants", R"("auto")"},
    {"retry.max_attempts", "5"},
    {"retry.base", R"("500ms")"},
    {"retry.cap", R"("1m")"},
    {"retry.unknown_retries", "2"},
    {"retry.crash_limit", "3"},
    {"retry.uncounted_max", "100"},
    {"retry.give_up_after", R"("1d")"},
    {"cache.policy", R"("all")"},
    {"cache.soft_ttl", R"("12h")"},
    {"cache.hard_ttl", R"("1d")"},
    {"cache.jitter", "0.1"},
    {"cache.max_bytes", R"("1GiB")"},
    {"breaker.failure_share", "0.5"},
    {"breaker.window", R"("30s")"},
    {"breaker.min_requests", "10"},
    {"breaker.open_for", R"("15s")"},
    {"breaker.probes", "2"},
    {"retention.completed", R"("30d")"},
    {"retention.failed", R"("90d")"},
    {"retention.cancelled", R"("7d")"},
    {"retention.client_keys", R"("30d")"},
    {"retention.outbox", R"("7d")"},
    {"retention.attempts", R"("90d")"},
    {"tracing.endpoint", R"("")"},
    {"tracing.sample", "1.0"},
    {"vendors.echo.api", R"("echo")"},
    {"vendors.echo.base_url", R"("")"},
    {"vendors.echo.api_key_env", R"("")"},
    {"vendors.echo.api_key_file", R"("")"},
    {"vendors.echo.auth", R"("none")"},
    {"vendors.echo.anthropic_version", R"("2023-06-01")"},
    {"vendors.echo.headers", "{}"},
    {"vendors.echo.connect_timeout", R"("5s")"},
    {"vendors.echo.first_byte_timeout", R"("2m")"},
    {"vendors.echo.total_timeout", R"("10m")"},
    {"vendors.echo.max_connection_age", R"("55s")"},
    {"vendors.echo.max_in_flight", "64"},
    {"vendors.echo.rpm", "0"},
    {"vendors.echo.tpm", "0"},
    {"vendors.echo.idempotency_header", R"("")"},
    {"vendors.echo.attempt_header", R"("")"},
    {"vendors.echo.ca_file", R"("")"},
    {"vendors.echo.proxy", R"("")"},
    {"vendors.echo.price_vendor", R"("echo")"},
    {"models.echo.vendor", R"("echo")"},
    {"models.echo.rpm", "0"},
    {"models.echo.tpm", "0"},
    {"models.echo.max_in_flight", "0"},
    {"models.echo.max_output_tokens", "0"},
    {"models.echo.max_tokens_field", R"("max_tokens")"},
    {"models.echo.fallback", "[]"},
    {"models.echo.cache", "{}"},
    {"tenants.a.weight", "1"},
    {"tenants.a.max_in_flight", "0"},
    {"tenants.a.rpm", "0"},
    {"tenants.a.tpm", "0"},
    {"tenants.a.budget", R"("")"},
    {"tenants.a.cache_group", R"("")"},
    {"tenants.a.cache", "{}"},
    {"tenants.a.allow_bypass", "true"},
    {"tenants.a.disabled", "false"},
};

std::map<std::string, std::string> g_env;

std::string fake_env(const char* name) {
  const auto found = g_env.find(name);
  return found == g_env.end() ? "" : found->second;
}

}  // namespace

TEST_CASE("config values: every key of the contract with its default") {
  const auto values = by_key(parse_config("[tenants.a]\n", "aiq.toml"));
  CHECK(values.size() == kDefaults.size());
  for (const auto& [key, value] : kDefaults) {
    CAPTURE(key);
    REQUIRE(values.contains(key));
    CHECK(values.at(key).value == value);
    CHECK(values.at(key).origin == "default");
  }
}

TEST_CASE("config values: what the file says has its line as origin") {
  const auto values = by_key(parse_config(R"(db = "/srv/a \"b\".db"
[daemon]
lease = "90s"
aggregate_every = ""
[vendors.main]
api = "openai"
base_url = "https://api.example.com/"
api_key_env = "MAIN_KEY"
headers = { "X-Team" = "a", "b.c" = "d" }
[models."gpt-4.1"]
fallback = ["x", "y"]
cache = { soft_ttl = "1h", policy = "off" }
[retention]
failed = ""
)",
                                          "/etc/aiq/aiq.toml"));
  const auto check = [&](const std::string& key, const std::string& value,
                         const std::string& origin) {
    CAPTURE(key);
    REQUIRE(values.contains(key));
    CHECK(values.at(key).value == value);
    CHECK(values.at(key).origin == origin);
  };
  check("db", R"("/srv/a \"b\".db")", "aiq.toml:1");
  check("daemon.lease", R"("1m30s")", "aiq.toml:3");
  check("daemon.aggregate_every", R"("")", "aiq.toml:4");
  check("daemon.workers", "2", "default");
  check("vendors.main.base_url", R"("https://api.example.com")", "aiq.toml:7");
  check("vendors.main.api_key_env", R"("MAIN_KEY")", "aiq.toml:8");
  check("vendors.main.headers", R"({ X-Team = "a", "b.c" = "d" })", "aiq.toml:9");
  check("vendors.main.auth", R"("bearer")", "default");
  check("models.\"gpt-4.1\".fallback", R"(["x", "y"])", "aiq.toml:11");
  check("models.\"gpt-4.1\".cache", R"({ policy = "off", soft_ttl = "1h" })", "aiq.toml:12");
  check("retention.failed", R"("")", "aiq.toml:14");
}

TEST_CASE("config values: the effective values are a configuration again, the same one") {
  const Config config = parse_config(R"(
[cache]
jitter = 1
[vendors.main]
api = "anthropic"
base_url = "https://api.example.com"
headers = { "X-Team" = "a\\b\"c" }
[models."a:b/c.d"]
cache = { hard_ttl = "90m" }
fallback = ["e"]
[tenants."x.y"]
budget = "1.5 EUR/month"
disabled = true
)",
                                     "aiq.toml");
  std::string text;
  for (const EffectiveValue& value : effective_values(config)) {
    text += value.key + " = " + value.value + "\n";
  }
  const Config again = parse_config(text, "again.toml");
  CHECK(again.fingerprint() == config.fingerprint());
}

TEST_CASE("config values: the fingerprint is that of the values, not of the text") {
  const std::string print = parse_config("[daemon]\nlease = \"60s\"\n", "a").fingerprint();
  CHECK(print.size() == 64);
  CHECK(print == load_config("").fingerprint());
  CHECK(print ==
        parse_config("# moved\n[daemon]\nworkers = 2\nlease = \"1m\"\n", "b").fingerprint());
  CHECK(print != parse_config("[daemon]\nlease = \"61s\"\n", "a").fingerprint());
  CHECK(print != parse_config("[tenants.a]\n", "a").fingerprint());
}

TEST_CASE("config paths: the database by option, environment, file and user") {
  const Config with_db = parse_config("db = \"/srv/file.db\"", "a");
  const Config without = load_config("");
  g_env = {{"HOME", "/home/ada"}, {"AIQ_DB", "/srv/env.db"}};
  CHECK(resolve_db_path("/srv/option.db", with_db, fake_env, false) == "/srv/option.db");
  CHECK(resolve_db_path("", with_db, fake_env, false) == "/srv/env.db");
  g_env.erase("AIQ_DB");
  CHECK(resolve_db_path("", with_db, fake_env, true) == "/srv/file.db");
  CHECK(resolve_db_path("", without, fake_env, true) == "/var/lib/aiq/aiq.db");
  CHECK(resolve_db_path("", without, fake_env, false) == "/home/ada/.local/state/aiq/aiq.db");
  g_env["XDG_STATE_HOME"] = "/state";
  CHECK(resolve_db_path("", without, fake_env, false) == "/state/aiq/aiq.db");
  g_env = {{"XDG_STATE_HOME", "relative"}};
  CHECK_THROWS_AS((void)resolve_db_path("", without, fake_env, false), ConfigError);
}

TEST_CASE("config paths: the socket stands beside the database unless named") {
  CHECK(resolve_socket_path(load_config(""), "/srv/aiq.db") == "/srv/aiq.db.sock");
  const Config named = parse_config("[daemon]\nsocket = \"/run/aiq/aiqd.sock\"", "a");
  CHECK(resolve_socket_path(named, "/srv/aiq.db") == "/run/aiq/aiqd.sock");
}

TEST_CASE("config paths: the file by option, environment and user, never from here") {
  std::string folder = (std::filesystem::temp_directory_path() / "aiq-paths-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string file = folder + "/aiq/aiq.toml";
  g_env = {{"XDG_CONFIG_HOME", folder}, {"AIQ_CONFIG", "/srv/env.toml"}};
  CHECK(find_config_path("/srv/option.toml", fake_env) == "/srv/option.toml");
  CHECK(find_config_path("", fake_env) == "/srv/env.toml");
  g_env.erase("AIQ_CONFIG");
  CHECK(find_config_path("", fake_env) != file);
  std::filesystem::create_directories(folder + "/aiq");
  std::ofstream(file) << "[daemon]\nworkers = 3\n";
  CHECK(find_config_path("", fake_env) == file);
  CHECK(load_config(file).daemon.workers == 3);
  CHECK(load_config(file).path == file);
  g_env = {{"HOME", folder}};
  std::filesystem::create_directories(folder + "/.config");
  std::filesystem::rename(folder + "/aiq", folder + "/.config/aiq");
  CHECK(find_config_path("", fake_env) == folder + "/.config/aiq/aiq.toml");
  std::filesystem::remove_all(folder);
}

TEST_CASE("config paths: a named file that is not there is an error") {
  CHECK_THROWS_WITH_AS((void)load_config("/nonexistent/aiq.toml"),
                       doctest::Contains("/nonexistent/aiq.toml"), ConfigError);
}

TEST_CASE("config: keys without effect are named, others are not") {
  CHECK(without_effect(parse_config("", "aiq.toml")).empty());
  CHECK(without_effect(parse_config("[tenants.a]\nrpm = 5\n", "aiq.toml")).empty());
  const auto named = without_effect(
      parse_config("[daemon]\nmetrics_listen = \"127.0.0.1:9464\"\n[tracing]\n"
                   "endpoint = \"http://127.0.0.1:4318\"\n[tenants.a]\nbudget = \"10 USD/day\"\n"
                   "[models.m]\nvendor = \"echo\"\nfallback = [\"echo\"]\n",
                   "aiq.toml"));
  REQUIRE(named.size() == 4);
  CHECK(named[0] ==
        "tenants.a.budget has no effect in this version: what the tenant spends is not limited");
  CHECK(named[1].starts_with("models.m.fallback "));
  CHECK(named[2].starts_with("daemon.metrics_listen "));
  CHECK(named[3].starts_with("tracing.endpoint "));
}
