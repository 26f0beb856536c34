#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "core/config/config.h"

using namespace aiq;

namespace {

Config parse(std::string_view text) {
  return parse_config(text, "aiq.toml");
}

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kVendor =
    "[vendors.main]\napi = \"openai\"\nbase_url = \"https://api.example.com/v1\"\n";

}  // namespace

TEST_CASE("config: without a file there is the vendor echo with the model echo") {
  const Config config = load_config("");
  REQUIRE(config.vendors.size() == 1);
  CHECK(config.vendors.at("echo").api == "echo");
  CHECK(config.vendors.at("echo").auth == "none");
  CHECK(config.vendors.at("echo").price_vendor == "echo");
  REQUIRE(config.models.size() == 1);
  CHECK(config.models.at("echo").vendor == "echo");
  REQUIRE(config.vendor_of_model("echo") != nullptr);
  CHECK(config.vendor_of_model("echo")->name == "echo");
  CHECK(config.path.empty());
}

TEST_CASE("config: a configured vendor takes the place of echo") {
  const Config config = parse(kVendor);
  CHECK(config.vendors.size() == 1);
  CHECK(config.vendors.contains("main"));
  CHECK(config.models.empty());
}

TEST_CASE("config: values are read into their units") {
  const Config config = parse(R"(
db = "/srv/aiq.db"
default_vendor = "main"
[daemon]
workers = 4
lease = "1m30s"
aggregate_every = ""
audit_every = "2h"
disk_reserve = "1GiB"
log_format = "text"
log_level = "warn"
log_file = "/var/log/aiq.log"
metrics_listen = "[::1]:9464"
[limits]
request_bytes = "64KiB"
unknown_tenants = "refuse"
[retry]
max_attempts = 0
base = "250ms"
[cache]
policy = "deterministic"
soft_ttl = "1h"
jitter = 0
[retention]
completed = "7d"
failed = ""
[tracing]
endpoint = "http://127.0.0.1:4318"
sample = 0.25
[vendors.main]
api = "anthropic"
base_url = "https://api.example.com//"
api_key_env = "MAIN_KEY"
headers = { "X-Team" = "blue", "anthropic-beta" = "a-1,task-2" }
total_timeout = "90s"
rpm = 50
tpm = 40000
idempotency_header = "Idempotency-Key"
proxy = "socks5h://127.0.0.1:1080"
price_vendor = "anthropic"
[models."a/b:1.5"]
fallback = ["c"]
max_output_tokens = 512
cache = { policy = "off", hard_ttl = "2h" }
[tenants.kitchen]
weight = 3
budget = "10.50 USD/day"
cache_group = "house"
allow_bypass = false
[tenants.kitchen.cache]
soft_ttl = "5m"
)");
  CHECK(config.db == "/srv/aiq.db");
  CHECK(config.daemon.workers == 4);
  CHECK(config.daemon.lease_ms == 90'000);
  CHECK_FALSE(config.daemon.aggregate_every_ms.has_value());
  CHECK(config.daemon.audit_every_ms == 7'200'000);
  CHECK(config.daemon.disk_reserve_bytes == 1LL << 30);
  CHECK_FALSE(config.daemon.log.json);
  CHECK(config.daemon.log.level == LogLevel::warn);
  CHECK(config.daemon.log.file == "/var/log/aiq.log");
  CHECK(config.daemon.metrics_listen == "[::1]:9464");
  CHECK(config.limits.request_bytes == 65'536);
  CHECK(config.limits.unknown_tenants == "refuse");
  CHECK(config.retry.max_attempts == 0);
  CHECK(config.retry.base_ms == 250);
  CHECK(config.cache.policy == CachePolicy::deterministic);
  CHECK(config.cache.soft_ttl_ms == 3'600'000);
  CHECK(config.cache.jitter == 0.0);
  CHECK(config.retention.completed_ms == 7LL * 86'400'000);
  CHECK_FALSE(config.retention.failed_ms.has_value());
  CHECK(config.tracing.sample == 0.25);
  const VendorConfig& vendor = config.vendors.at("main");
  CHECK(vendor.base_url == "https://api.example.com");
  CHECK(vendor.auth == "x-api-key");
  CHECK(vendor.headers == std::vector<std::pair<std::string, std::string>>{
                              {"X-Team", "blue"}, {"anthropic-beta", "a-1,task-2"}});
  CHECK(vendor.total_timeout_ms == 90'000);
  CHECK(vendor.rpm == 50);
  CHECK(vendor.tpm == 40'000);
  CHECK(vendor.price_vendor == "anthropic");
  const ModelConfig& model = config.models.at("a/b:1.5");
  CHECK(model.fallback == std::vector<std::string>{"c"});
  CHECK(model.cache.policy == CachePolicy::off);
  CHECK(model.cache.hard_ttl_ms == 7'200'000);
  CHECK_FALSE(model.cache.soft_ttl_ms.has_value());
  const TenantConfig& tenant = config.tenants.at("kitchen");
  CHECK(tenant.weight == 3);
  CHECK(tenant.budget == "10.50 USD/day");
  CHECK_FALSE(tenant.allow_bypass);
  CHECK(tenant.cache.soft_ttl_ms == 300'000);
  CHECK(config.lines.at("daemon.lease") == 6);
  CHECK(config.lines.at("models.\"a/b:1.5\".cache.hard_ttl") == 44);
}

TEST_CASE("config: the packaged example is valid") {
  const Config config = load_config(std::string(AIQ_SOURCE_DIR) + "/examples/aiq.toml");
  CHECK(config.vendors.size() == 2);
  CHECK(config.vendors.at("openai").auth == "bearer");
}

TEST_CASE("config: errors name the key and the line") {
  struct Row {
    std::string text, want;
  };
  const std::vector<Row> rows = {
      {"\nbd = \"x\"", "bd: unknown key (aiq.toml:2)"},
      {"[daemon]\nworker = 1", "[daemon] worker: unknown key (aiq.toml:2)"},
      {"[deamon]\nworkers = 1", "deamon: unknown key (aiq.toml:1)"},
      {"[daemon]\nworkers = 0",
       "[daemon] workers: expected a whole number from 1 to 256 "
       "(aiq.toml:2)"},
      {"[daemon]\nworkers = \"2\"",
       "[daemon] workers: expected a whole number from 1 to 256 "
       "(aiq.toml:2)"},
      {"[daemon]\nworkers = 2.0",
       "[daemon] workers: expected a whole number from 1 to 256 "
       "(aiq.toml:2)"},
      {"daemon = 1", "daemon: expected a section (aiq.toml:1)"},
      {"db = 1", "db: expected text in quotes (aiq.toml:1)"},
      {"[daemon]\n\nlog_level = \"trace\"",
       "[daemon] log_level: expected one of debug, info, warn, error (aiq.toml:3)"},
      {"[cache]\njitter = 1.5", "[cache] jitter: expected a number from 0 to 1 (aiq.toml:2)"},
      {"[cache]\njitter = nan", "[cache] jitter: expected a number from 0 to 1 (aiq.toml:2)"},
      {"[cache]\nsoft_ttl = \"25h\"", "[cache] soft_ttl: is longer than hard_ttl (aiq.toml:2)"},
      {kVendor + "rpm = -1",
       "[vendors.main] rpm: expected a whole number from 0 to 1000000000000 (aiq.toml:4)"},
      {kVendor + "rpm = true",
       "[vendors.main] rpm: expected a whole number from 0 to 1000000000000 (aiq.toml:4)"},
      {kVendor + "auth = \"basic\"",
       "[vendors.main] auth: expected one of bearer, x-api-key, none (aiq.toml:4)"},
      {kVendor + "api_key = \"x\"",
       "[vendors.main] api_key: unknown key; a secret is referenced, by api_key_env or "
       "api_key_file (aiq.toml:4)"},
      {"[vendors.main]", "[vendors.main] api: is required (aiq.toml:1)"},
      {"[vendors.main]\napi = \"openai\"", "[vendors.main] base_url: is required (aiq.toml:1)"},
      {kVendor + "[models.gpt-4.1]\nrpm = 1",
       "[models.gpt-4] 1: unknown key; a name with a dot in it is written in quotes "
       "(aiq.toml:4)"},
      {kVendor + "[models.\"a b\"]\nrpm = 1", "[models] a b: is not a valid name (aiq.toml:4)"},
      {"[tenants.\"a/b\"]", "[tenants] a/b: is not a valid name (aiq.toml:1)"},
      {kVendor + "[models.m]\nvendor = \"other\"",
       "[models.m] vendor: there is no section of this vendor (aiq.toml:5)"},
      {"default_vendor = \"x\"\n" + kVendor,
       "default_vendor: there is no section of this vendor (aiq.toml:1)"},
      {kVendor + "[models.\"m.1\"]\nfallback = [\"m.1\"]",
       "[models.\"m.1\"] fallback: names the model itself (aiq.toml:5)"},
      {kVendor + "[models.m]\nfallback = \"n\"",
       "[models.m] fallback: expected a list of names in quotes (aiq.toml:5)"},
      {kVendor + "[models.m]\nfallback = [\"n\", \"n\"]",
       "[models.m] fallback: n is named twice (aiq.toml:5)"},
      {kVendor + "[vendors.b]\napi = \"echo\"\n[models.m]\nvendor = \"b\"\nfallback = [\"n\"]",
       "[models.m] fallback: n has no vendor (aiq.toml:8)"},
      {kVendor + "[models.m]\ncache = { ttl = \"1h\" }",
       "[models.m] cache.ttl: unknown key (aiq.toml:5)"},
      {kVendor + "[models.m]\ncache = { soft_ttl = \"2h\", hard_ttl = \"1h\" }",
       "[models.m] cache.soft_ttl: is longer than hard_ttl (aiq.toml:5)"},
      {"[tenants.a]\ndisabled = 1", "[tenants.a] disabled: expected true or false (aiq.toml:2)"},
      {"[tenants.a]\nbudget = \"\"\n[tenants.b]\nbudget = 10",
       "[tenants.b] budget: expected text in quotes (aiq.toml:4)"},
      {"db = \"a\\u0007b\"",
       "db: expected text of at most 4096 bytes without control characters (aiq.toml:1)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(error_of(row.text) == row.want);
  }
}

TEST_CASE("config: durations and sizes are text with a unit") {
  for (const char* value :
       {"60", "\"60\"", "\"60 s\"", "\"1w\"", "\"-1s\"", "\"1.5s\"", "\"\"", "60s", "\"60S\""}) {
    CAPTURE(value);
    const std::string error = error_of(std::string("[daemon]\nlease = ") + value);
    CHECK(error.find("aiq.toml:2)") != std::string::npos);
  }
  for (const char* value : {"1024", "\"16mib\"", "\"1.5MiB\"", "\"\"", "\"-1KiB\""}) {
    CAPTURE(value);
    CHECK(error_of(std::string("[limits]\nrequest_bytes = ") + value) ==
          "[limits] request_bytes: expected a size in quotes, such as \"64KiB\" or \"16MiB\" "
          "(aiq.toml:2)");
  }
  CHECK(error_of("[daemon]\nlease = \"0s\"") == "[daemon] lease: must be more than 0 (aiq.toml:2)");
  CHECK(error_of("[daemon]\ndrain_timeout = \"0s\"") == "no error");
}

TEST_CASE("config: what is not TOML names its line") {
  for (const char* text :
       {"\n\ndb = ", "\n\n[daemon\n", "db = \"a\"\n\ndb = \"b\"", "\n\ndb = \"\xFF\""}) {
    const std::string error = error_of(text);
    CAPTURE(error);
    CHECK(error.starts_with("not TOML: "));
    CHECK(error.ends_with("(aiq.toml:3)"));
  }
}

TEST_CASE("config: budgets are an amount, a currency and a window") {
  for (const char* budget :
       {"", "10 USD/day", "0 USD/day", "0.000000000001 EUR/hour", "999999999999999 JPY/month"}) {
    CAPTURE(budget);
    CHECK(error_of(std::string("[tenants.a]\nbudget = \"") + budget + "\"") == "no error");
  }
  for (const char* budget : {"10", "10 USD", "10USD/day", "10 usd/day", "10 USD/week", "-1 USD/day",
                             "1e3 USD/day", ".5 USD/day", "5. USD/day", " 5 USD/day", "5 USDT/day",
                             "5  USD/day", "5 USD/day ", "1.0000000000001 USD/day"}) {
    CAPTURE(budget);
    CHECK(error_of(std::string("[tenants.a]\nbudget = \"") + budget + "\"")
              .starts_with("[tenants.a] budget: expected an amount"));
  }
}

TEST_CASE("config: metrics are served at an explicit address") {
  for (const char* address :
       {"", "127.0.0.1:9464", "127.0.0.1:0", "[::1]:9464", "localhost:9464", "10.1.2.3:80"}) {
    CAPTURE(address);
    CHECK(error_of(std::string("[daemon]\nmetrics_listen = \"") + address + "\"") == "no error");
  }
  for (const char* address :
       {":9464", "9464", "*:9464", "127.0.0.1", "127.0.0.1:", "::1:9464", "127.0.0.1:65536",
        "127.0.0.1:x", "http://127.0.0.1:9464", "[]:1", "example.com:9464"}) {
    CAPTURE(address);
    CHECK(error_of(std::string("[daemon]\nmetrics_listen = \"") + address + "\"")
              .starts_with("[daemon] metrics_listen: expected an address"));
  }
}

TEST_CASE("config: ports of URLs") {
  const auto error = [](const std::string& url) {
    return error_of("[vendors.a]\napi = \"openai\"\nbase_url = \"" + url + "\"");
  };
  for (const char* url : {"http://h", "http://h:1/v1", "http://h:65535", "https://[::1]:443/v1",
                          "https://[::1]/v1", "http://h:/v1"}) {
    CAPTURE(url);
    CHECK(error(url) == "no error");
  }
  for (const char* url : {"http://h:0", "http://h:65536/v1", "http://h:99999999999",
                          "http://h:x/v1", "http://h:80x", "http://[::1]:65536", "http://h:-1"}) {
    CAPTURE(url);
    CHECK(error(url).starts_with("[vendors.a] base_url: the port of the URL"));
  }
}

TEST_CASE("config: headers of the connection are not for the configuration") {
  for (const std::string name : {"Content-Length", "host", "Transfer-Encoding", "Connection"}) {
    CAPTURE(name);
    CHECK(error_of(kVendor + "headers = { \"" + name + "\" = \"1\" }")
              .starts_with("[vendors.main] headers: must not set " + name));
    CHECK(error_of(kVendor + "attempt_header = \"" + name + "\"")
              .starts_with("[vendors.main] attempt_header: expected the name of a header"));
  }
}

TEST_CASE("config: a socket's path that the system can't take") {
  const std::string most(107, 's');
  CHECK(error_of("[daemon]\nsocket = \"" + most + "\"") == "no error");
  CHECK(error_of("[daemon]\nsocket = \"" + most + "s\"")
            .starts_with("[daemon] socket: is longer than a socket's path may be, 107 bytes"));
  CHECK(error_of("db = \"" + most.substr(5) + "\"") == "no error");
  CHECK(error_of("db = \"" + most + "\"").starts_with("db: with .sock after it is longer"));
  CHECK(error_of("db = \"" + most + "\"\n[daemon]\nsocket = \"/run/s\"") == "no error");
}

TEST_CASE("config: the vendor of a model is its section's, the default, or the only one") {
  const std::string two = kVendor + "[vendors.other]\napi = \"echo\"\n";
  const Config config =
      parse("default_vendor = \"main\"\n" + two + "[models.m]\nvendor = \"other\"\n[models.n]\n");
  CHECK(config.vendor_of_model("m")->name == "other");
  CHECK(config.vendor_of_model("n")->name == "main");
  CHECK(config.vendor_of_model("unheard-of")->name == "main");
  CHECK(config.model("unheard-of").vendor == "main");
  CHECK(parse(two).vendor_of_model("x") == nullptr);
  CHECK(parse(kVendor).vendor_of_model("x")->name == "main");
}

TEST_CASE("config: tenants and models without a section have the defaults") {
  const Config config = parse("[tenants.a]\nweight = 9\n");
  CHECK(config.tenant("a").weight == 9);
  CHECK(config.tenant("b").weight == 1);
  CHECK(config.tenant("b").name == "b");
  CHECK(config.model("x").name == "x");
  CHECK(config.model("x").max_tokens_field == "max_tokens");
}

TEST_CASE("config: the cache of a tenant goes over that of a model over the common one") {
  const Config config = parse(R"(
[cache]
soft_ttl = "3h"
hard_ttl = "6h"
[models.m.cache]
soft_ttl = "2h"
policy = "off"
[tenants.a.cache]
policy = "deterministic"
hard_ttl = "1h"
)");
  constexpr DurationMs kHour = 3'600'000;
  CHECK(config.cache_for("x", "y").soft_ttl_ms == 3 * kHour);
  CHECK(config.cache_for("x", "y").policy == CachePolicy::all);
  CHECK(config.cache_for("x", "m").soft_ttl_ms == 2 * kHour);
  CHECK(config.cache_for("x", "m").hard_ttl_ms == 6 * kHour);
  CHECK(config.cache_for("x", "m").policy == CachePolicy::off);
  CHECK(config.cache_for("a", "m").policy == CachePolicy::deterministic);
  CHECK(config.cache_for("a", "m").hard_ttl_ms == 1 * kHour);
  // An entry is never fresh past its end.
  CHECK(config.cache_for("a", "m").soft_ttl_ms == 1 * kHour);
}
