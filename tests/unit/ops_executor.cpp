#include "core/ops/executor.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/base/sleep.h"
#include "core/store/owner_lock.h"
#include "ops_fake_daemon.h"
#include "ops_world.h"

using namespace ops_world;

namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "aiq-ops-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Client {
  explicit Client(DurationMs busy_timeout_ms = 5'000)
      : executor(config,
                 {.db_path = folder.path("new/aiq.db"),
                  .socket_path = folder.path("aiq.sock"),
                  .busy_timeout_ms = busy_timeout_ms,
                  .actor = "uid:7",
                  .program = "aiq"},
                 system_clock(), system_random()) {}

  Json ok(std::string_view op, const Json& in) {
    auto out = executor.run(op, in);
    REQUIRE_MESSAGE(out.has_value(), out.error().code << ": " << out.error().message);
    return *out;
  }
  Failure fails(std::string_view op, const Json& in) {
    auto out = executor.run(op, in);
    REQUIRE_FALSE(out.has_value());
    return out.error();
  }
  [[nodiscard]] std::string db() const { return folder.path("new/aiq.db"); }
  [[nodiscard]] std::string socket() const { return folder.path("aiq.sock"); }

  Folder folder;
  Config config = parse_config(kConfig, "test.toml");
  Executor executor;
};

const Json kPrompt = {{"model", "gpt-small"}, {"prompt", "hi"}};
const std::string kDone = R"({"job_id":"5","outcome":"created"})";

std::string error_body(int exit, const std::string& code) {
  return Json{
      {"error", {{"exit", exit}, {"code", code}, {"message", "said so"}, {"hint", "do that"}}}}
      .dump();
}

Json body_of(const std::string& request) {
  return Json::parse(request.substr(request.find("\r\n\r\n") + 4));
}

}  // namespace

TEST_CASE("executor: a read before there is a database answers as an empty one") {
  Client client;
  const Json out = client.ok("list", Json::object());
  CHECK(out["rows"].empty());
  REQUIRE(out["warnings"].size() == 1);
  CHECK(out["warnings"][0] == "no database at " + client.db() + " yet");
  CHECK_FALSE(std::filesystem::exists(client.db()));
  CHECK(client.executor.daemon() == std::nullopt);
  CHECK(client.fails("show", {{"job_id", "1"}}).code == "no_such_job");
}

TEST_CASE("executor: the first write makes the database, private to its owner") {
  Client client;
  const Json out = client.ok("submit", kPrompt);
  CHECK(client.executor.where() == Executor::Where::file);
  CHECK(out["job_id"] == "1");
  struct stat info {};
  REQUIRE(stat(client.db().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0600);
  REQUIRE(stat(client.folder.path("new").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0700);
  const Json list = client.ok("list", Json::object());
  CHECK(list["rows"].size() == 1);
  CHECK_FALSE(list.contains("warnings"));
  // Between two runs the database belongs to nobody.
  CHECK(OwnerLock::try_acquire(client.db(), "test").has_value());
}

TEST_CASE("executor: writes without a daemon do not let the log grow without end") {
  Client client;
  constexpr std::uintmax_t kFrame = 8192 + 24;
  const std::string log = client.db() + "-wal";
  std::uintmax_t largest = 0;
  for (int i = 0; i < 3'000; ++i) {
    client.ok("submit", {{"model", "gpt-small"}, {"prompt", "job " + std::to_string(i)}});
    largest = std::max(largest, std::filesystem::file_size(log));
  }
  CHECK(largest > 2'000 * kFrame);  // enough was written to need it
  CHECK(largest < 2'200 * kFrame);
  CHECK(client.ok("stats", Json::object())["jobs"]["queued"] == 3'000);
}

TEST_CASE("executor: reads keep one connection, and see a file that took the place of another") {
  Client client;
  const auto descriptors = [&client] {
    std::ptrdiff_t open = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      open += std::filesystem::read_symlink(entry, gone) == client.db() ? 1 : 0;
    }
    return open;
  };
  client.ok("submit", kPrompt);
  const auto jobs = [&client] { return client.ok("list", Json::object())["rows"].size(); };
  CHECK(jobs() == 1);
  CHECK(descriptors() == 1);
  client.ok("submit", {{"model", "gpt-small"}, {"prompt", "another"}});
  CHECK(jobs() == 2);
  CHECK(descriptors() >= 1);

  std::filesystem::rename(client.folder.path("new"), client.folder.path("old"));
  CHECK(client.ok("list", Json::object()).contains("warnings"));
  CHECK(descriptors() == 0);
  client.ok("submit", kPrompt);
  CHECK(jobs() == 1);
  CHECK(descriptors() == 1);
}

TEST_CASE("executor: while another process owns the database, busy after the timeout") {
  Client client(150);
  client.ok("submit", kPrompt);
  const auto lock = OwnerLock::try_acquire(client.db(), "other-program");
  REQUIRE(lock.has_value());
  const MonoMs start = system_clock().mono_ms();
  const Failure failure = client.fails("submit", kPrompt);
  CHECK(system_clock().mono_ms() - start >= 150);
  CHECK(failure.exit == Exit::busy);
  CHECK(failure.code == "busy");
  CHECK(failure.message.find("other-program (pid " + std::to_string(getpid()) + ")") !=
        std::string::npos);
  // Reads need no owner.
  CHECK(client.ok("list", Json::object())["rows"].size() == 1);
}

TEST_CASE("executor: a write goes on as soon as the owner lets go") {
  Client client;
  client.ok("submit", kPrompt);
  auto lock = OwnerLock::try_acquire(client.db(), "test");
  std::thread release([&lock] {
    sleep_ms(120);
    lock.reset();
  });
  CHECK(client.ok("submit", kPrompt)["outcome"] == "existing");
  release.join();
}

TEST_CASE("executor: input that is not UTF-8 or no operation is exit 2") {
  Client client;
  Json in = kPrompt;
  in["prompt"] = "\xff";
  CHECK(client.fails("submit", in).code == "invalid_utf8");
  CHECK(client.fails("drop.everything", Json::object()).code == "unknown_operation");
  CHECK(client.executor.where() == Executor::Where::none);
  CHECK_FALSE(std::filesystem::exists(client.db()));
}

TEST_CASE("executor: a file that is no database is exit 8") {
  Client client;
  std::filesystem::create_directories(client.folder.path("new"));
  {
    const Fd file(open(client.db().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(write_all(file.get(), std::string(8192, 'x')) == 0);
  }
  CHECK(client.fails("submit", kPrompt).exit == Exit::storage);
  CHECK(client.fails("list", Json::object()).exit == Exit::storage);
}

TEST_CASE("executor: a write goes to the daemon when one answers") {
  Client client;
  FakeDaemon daemon(client.socket(), {FakeDaemon::answer(200, kDone)});
  Json in = kPrompt;
  in["prompt"] = std::string(1 << 20, 'x');
  const Json out = client.ok("submit", in);
  CHECK(out["job_id"] == "5");
  CHECK_FALSE(out.contains("warnings"));
  CHECK(client.executor.where() == Executor::Where::daemon);
  CHECK_FALSE(std::filesystem::exists(client.db()));
  REQUIRE(daemon.requests().size() == 1);
  const std::string request = daemon.requests()[0];
  CHECK(request.starts_with("POST /v1/ops/submit HTTP/1.1\r\n"));
  CHECK(request.find("X-Aiq-Protocol: 1\r\n") != std::string::npos);
  CHECK(request.find("X-Aiq-Config: " + client.config.fingerprint() + "\r\n") != std::string::npos);
  CHECK(body_of(request)["prompt"] == in["prompt"]);
  // A lost answer can be looked for by it.
  CHECK(body_of(request)["correlation_id"].get<std::string>().size() == 32);
}

TEST_CASE("executor: another configuration in the daemon is said once") {
  Client client;
  FakeDaemon daemon(client.socket(), {FakeDaemon::answer(200, kDone, "X-Aiq-Config: other\r\n")});
  CHECK(client.ok("submit", kPrompt)["warnings"].size() == 1);
  CHECK_FALSE(client.ok("submit", kPrompt).contains("warnings"));
}

TEST_CASE("executor: an equal configuration is not mentioned") {
  Client client;
  FakeDaemon daemon(
      client.socket(),
      {FakeDaemon::answer(200, kDone, "X-Aiq-Config: " + client.config.fingerprint() + "\r\n")});
  CHECK_FALSE(client.ok("submit", kPrompt).contains("warnings"));
}

TEST_CASE("executor: the daemon's refusal is passed on as it is") {
  Client client;
  FakeDaemon daemon(client.socket(), {FakeDaemon::answer(409, error_body(4, "key_conflict")),
                                      FakeDaemon::answer(409, error_body(7, "version_mismatch")),
                                      FakeDaemon::answer(500, "oops")});
  Failure failure = client.fails("submit", kPrompt);
  CHECK(failure.exit == Exit::conflict);
  CHECK(failure.code == "key_conflict");
  CHECK(failure.message == "said so");
  CHECK(failure.hint == "do that");
  failure = client.fails("submit", kPrompt);
  CHECK(failure.exit == Exit::busy);
  CHECK(failure.code == "version_mismatch");
  failure = client.fails("submit", kPrompt);
  CHECK(failure.exit == Exit::busy);
  CHECK(failure.code == "unexpected_answer");
}

TEST_CASE("executor: a daemon that is not ready is asked again until the timeout") {
  Client client;
  FakeDaemon daemon(client.socket(), {FakeDaemon::answer(503, error_body(7, "recovering")),
                                      FakeDaemon::answer(503, error_body(7, "recovering")),
                                      FakeDaemon::answer(200, kDone)});
  CHECK(client.ok("submit", kPrompt)["job_id"] == "5");
  CHECK(daemon.requests().size() == 3);
}

TEST_CASE("executor: a daemon that never gets ready is exit 7 with its reason") {
  Client client(120);
  FakeDaemon daemon(client.socket(), {FakeDaemon::answer(503, error_body(7, "recovering"))});
  const Failure failure = client.fails("submit", kPrompt);
  CHECK(failure.exit == Exit::busy);
  CHECK(failure.code == "recovering");
  CHECK(daemon.requests().size() >= 2);
  CHECK_FALSE(std::filesystem::exists(client.db()));
}

TEST_CASE("executor: a lost answer is not asked for again unless that is safe") {
  Client client;
  FakeDaemon daemon(client.socket(), {"", "", FakeDaemon::answer(200, kDone)});
  const Failure failure = client.fails("submit", kPrompt);
  CHECK(failure.exit == Exit::busy);
  CHECK(failure.code == "outcome_unknown");
  REQUIRE(daemon.requests().size() == 1);
  const std::string id = body_of(daemon.requests()[0])["correlation_id"];
  CHECK(failure.hint.find("aiq list --correlation-id " + id) != std::string::npos);
  Json keyed = kPrompt;
  keyed["idempotency_key"] = "K";
  CHECK(client.ok("submit", keyed)["job_id"] == "5");
  REQUIRE(daemon.requests().size() == 3);
  CHECK(body_of(daemon.requests()[1]) == body_of(daemon.requests()[2]));
}

TEST_CASE("executor: a daemon that closes while we write does not end the process") {
  Client client;
  FakeDaemon daemon(client.socket(), {"!"});
  Json in = kPrompt;
  in["prompt"] = std::string(4 << 20, 'x');
  CHECK(client.fails("submit", in).code == "outcome_unknown");
}

TEST_CASE("executor: reads that depend on the configuration ask the daemon, then the file") {
  Client client;
  client.ok("submit", kPrompt);
  {
    FakeDaemon daemon(client.socket(), {FakeDaemon::answer(200, R"({"from":"daemon"})")});
    CHECK(client.ok("stats", Json::object())["from"] == "daemon");
    CHECK(client.executor.where() == Executor::Where::daemon);
    CHECK(client.ok("list", Json::object())["rows"].size() == 1);
    CHECK(client.executor.where() == Executor::Where::file);
    CHECK(daemon.requests().size() == 1);
  }
  // The socket's file is still there, and nobody listens.
  CHECK(client.ok("stats", Json::object())["jobs"]["queued"] == 1);
  CHECK(client.executor.where() == Executor::Where::file);
  CHECK(client.ok("submit", kPrompt)["outcome"] == "existing");
}

TEST_CASE("executor: a daemon that says nothing holds up reads once, for a second") {
  Client client;
  client.ok("submit", kPrompt);
  FakeDaemon daemon(client.socket(), {"?"});
  const MonoMs begun = system_clock().mono_ms();
  Json stats = client.ok("stats", Json::object());
  CHECK(system_clock().mono_ms() - begun >= 1'000);
  CHECK(stats["jobs"]["queued"] == 1);
  CHECK(client.executor.where() == Executor::Where::file);
  REQUIRE(stats["warnings"].size() == 1);
  CHECK(stats["warnings"][0].get<std::string>().find("does not answer") != std::string::npos);
  // What is known now is not asked again.
  stats = client.ok("stats", Json::object());
  CHECK_FALSE(stats.contains("warnings"));
  const auto status = client.executor.daemon();
  REQUIRE(status.has_value());
  CHECK_FALSE(status->answers);
  CHECK(daemon.requests().size() == 1);
}

TEST_CASE("executor: a read that may be long is made from the file") {
  Client client;
  client.ok("submit", kPrompt);
  FakeDaemon daemon(client.socket(), {FakeDaemon::answer(200, R"({"from":"daemon"})")});
  CHECK(client.ok("stats", {{"by", "model"}})["groups"].empty());
  CHECK(client.ok("db.check", Json::object())["ok"] == true);
  CHECK(client.executor.where() == Executor::Where::file);
  CHECK(daemon.requests().empty());
}

TEST_CASE("executor: who may not open the file asks the daemon, but not for its inside") {
  Client client;
  client.ok("submit", kPrompt);
  std::filesystem::remove(client.db() + "-wal");
  std::filesystem::create_directory(client.db() + "-wal");  // not even the super-user opens that
  FakeDaemon daemon(client.socket(), {FakeDaemon::answer(200, R"({"from":"daemon"})")});
  CHECK(client.ok("stats", {{"by", "model"}})["from"] == "daemon");
  CHECK(client.ok("list", Json::object())["from"] == "daemon");
  CHECK(client.fails("db.info", Json::object()).code == "read_only");
  CHECK(client.fails("db.check", Json::object()).code == "read_only");
  CHECK(daemon.requests().size() == 2);
}

TEST_CASE("executor: the daemon's health is read, ready or not") {
  Client client;
  const std::string body =
      Json{{"ready", false},           {"reasons", {"recovering"}}, {"pid", 12},
           {"in_flight", 3},           {"uptime_seconds", 4},       {"version", "0.1.0"},
           {"config_fingerprint", "f"}}
          .dump();
  FakeDaemon daemon(client.socket(),
                    {FakeDaemon::answer(503, body), FakeDaemon::answer(200, R"({"pid":12})")});
  auto status = client.executor.daemon();
  REQUIRE(status.has_value());
  CHECK_FALSE(status->ready);
  CHECK(status->reasons == Names{"recovering"});
  CHECK(status->pid == 12);
  CHECK(status->in_flight == 3);
  CHECK(status->uptime_seconds == 4);
  CHECK(status->version == "0.1.0");
  CHECK(status->config_fingerprint == "f");
  status = client.executor.daemon();
  REQUIRE(status.has_value());
  CHECK(status->ready);
}
