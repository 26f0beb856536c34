#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "core/base/clock.h"
#include "core/base/sha256.h"
#include "sim/control.h"
#include "sim/journal.h"
#include "sim/listen.h"
#include "sim/simulator.h"
#include "sim/waiting_room.h"

using namespace aiq::sim;

namespace {

Request chat(const std::string& text, Headers headers = {}, const Json& more = Json::object()) {
  Json body = {{"model", "m"}, {"messages", Json::array({{{"role", "user"}, {"content", text}}})}};
  body.update(more);
  return {"POST", "/v1/chat/completions", std::move(headers), body.dump()};
}

RuleSet one_rule(const std::string& act) {
  auto rules = parse_rules(R"({"rules":[{"name":"r","act":)" + act + "}]}");
  if (!rules) FAIL(rules.error());
  return RuleSet(std::move(*rules), 0);
}

Json line_of(const Plan& plan) {
  return Json::parse(plan.journal_line);
}

}  // namespace

TEST_CASE("sim decision: limits come before rules, and refused requests reach none") {
  Simulator simulator({.limits = {.rpm = 1}}, one_rule(R"({"status":500})"));
  CHECK(simulator.decide(chat("a"), {0, 0}).status == 500);
  const Plan refused = simulator.decide(chat("a"), {0, 10});
  CHECK(refused.status == 429);
  CHECK(find_header(refused.headers, "Retry-After") == "60");
  CHECK_FALSE(refused.in_flight);
  CHECK(line_of(refused)["limited"] == "rpm");
  CHECK(line_of(refused)["rule"].is_null());
  CHECK(simulator.rules().counts()[0].matched == 1);
  CHECK(simulator.decide(chat("a"), {0, 60'000}).status == 500);
}

TEST_CASE("sim decision: tokens are charged by the output limit, or else by the answer") {
  Simulator simulator({.limits = {.tpm = 1000}}, {});
  const Json limit = {{"max_tokens", 100}, {"n", 2}};
  const Plan limited = simulator.decide(chat("12345678", {}, limit), {0, 0});
  CHECK(find_header(limited.headers, "x-ratelimit-remaining-tokens") == "798");
  const Plan open = simulator.decide(chat("12345678"), {0, 0});
  const std::int64_t left =
      798 - Json::parse(open.body)["usage"]["total_tokens"].get<std::int64_t>();
  CHECK(find_header(open.headers, "x-ratelimit-remaining-tokens") == std::to_string(left));
}

TEST_CASE("sim decision: in flight counts until the exchange has ended") {
  Simulator simulator({.limits = {.max_in_flight = 1}}, {});
  const Plan first = simulator.decide(chat("a"), {0, 0});
  CHECK(first.in_flight);
  CHECK(simulator.decide(chat("a"), {0, 0}).status == 429);
  simulator.exchange_ended();
  CHECK(simulator.decide(chat("a"), {0, 0}).status == 200);
}

TEST_CASE("sim decision: latencies stay in their range and follow the seed") {
  Simulator a({.latency_min = 50, .latency_max = 60, .seed = 7}, {});
  Simulator b({.latency_min = 50, .latency_max = 60, .seed = 7}, {});
  bool varied = false;
  for (int i = 0; i < 100; ++i) {
    const Plan plan = a.decide(chat("a"), {0, 0});
    CHECK(plan.delay >= 50);
    CHECK(plan.delay <= 60);
    varied = varied || plan.delay != 50;
    CHECK(plan.delay == b.decide(chat("a"), {0, 0}).delay);
  }
  CHECK(varied);
  Simulator ruled({.latency_min = 50, .latency_max = 60}, one_rule(R"({"delay":"1s"})"));
  CHECK(ruled.decide(chat("a"), {0, 0}).delay == 1000);
}

TEST_CASE("sim decision: the journal says what will be answered") {
  struct Row {
    const char* act;
    Json answered;
    Json status;
    bool usage;
  };
  const Row rows[] = {
      {"{}", 200, 200, true},
      {R"({"status":503})", 503, 503, false},
      {R"({"hold":true})", "hold", 200, true},
      {R"({"close":true})", "close", nullptr, false},
      {R"({"reset":true,"delay":"1s"})", "reset", nullptr, false},
      {R"({"cut":true})", "cut", 200, false},
      {R"({"cut_chunked":true})", "cut", 200, false},
      {R"({"invalid_json":true})", 200, 200, false},
      {R"({"empty":true})", 200, 200, false},
      {R"({"html":true,"status":502})", 502, 502, false},
      {R"({"usage":null})", 200, 200, false},
      {R"({"usage":{"prompt_tokens":1}})", 200, 200, true},
      {R"({"body":{"usage":{"prompt_tokens":1}}})", 200, 200, true},
      {R"({"body":[1]})", 200, 200, false},
      {R"({"body":"text"})", 200, 200, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.act);
    Simulator simulator({}, one_rule(row.act));
    const Json line = line_of(simulator.decide(chat("a"), {0, 0}));
    CHECK(line["answered"] == row.answered);
    CHECK(line["status"] == row.status);
    CHECK(line["usage"].is_object() == row.usage);
    CHECK(line["rule"] == "r");
  }
}

TEST_CASE("sim decision: a cut always leaves something out") {
  for (const char* act : {R"({"cut":true})", R"({"cut":0})", R"({"cut":9999})",
                          R"({"cut":true,"body":"x"})", R"({"cut":5,"body":"xyz"})"}) {
    CAPTURE(act);
    Simulator simulator({}, one_rule(act));
    const Plan plan = simulator.decide(chat("a"), {0, 0});
    CHECK(plan.cut_at < plan.body.size());
  }
}

TEST_CASE("sim decision: headers of a rule replace the usual ones in any case") {
  Simulator simulator({},
                      one_rule(R"({"headers":{"content-type":"text/plain","X-Request-Id":"q"}})"));
  const Plan plan = simulator.decide(chat("a"), {0, 0});
  CHECK(plan.headers == Headers{{"content-type", "text/plain"}, {"X-Request-Id", "q"}});
}

TEST_CASE("sim journal: credentials are left out, the rest of the headers stays") {
  const Headers headers = {{"authorization", "Bearer sk-secret"},
                           {"x-api-key", "sk-secret"},
                           {"cookie", "sk-secret"},
                           {"api-key", "sk-secret"},
                           {"proxy-authorization", "sk-secret"},
                           {"idempotency-key", "k"},
                           {"via", "a"},
                           {"via", "b"}};
  Simulator simulator({}, {});
  const Request request = chat("héllo", headers);
  const Plan plan = simulator.decide(request, {.wall = 1'500, .mono = 9});
  CHECK(plan.journal_line.find("sk-secret") == std::string::npos);
  CHECK(plan.journal_line.back() == '\n');
  const Json line = line_of(plan);
  CHECK(line["headers"] == Json({{"idempotency-key", "k"}, {"via", "a, b"}}));
  CHECK(line["authorized"] == true);
  CHECK(line["at"] == "1970-01-01T00:00:01.500Z");
  CHECK(line["at_ms"] == 1500);
  CHECK(line["body_sha256"] == aiq::sha256_hex(request.body));
  CHECK(line["prompt_head"] == "héllo");
  CHECK(line_of(simulator.decide(chat("a"), {0, 0}))["authorized"] == false);
}

TEST_CASE("sim journal: bytes that are no text don't break the line") {
  Simulator simulator({}, {});
  const Plan plan = simulator.decide({"POST", "/v1/\xff", {{"x", "\xfe"}}, "\xff"}, {0, 0});
  CHECK(plan.status == 404);
  CHECK(Json::accept(plan.journal_line));
  CHECK(Json::accept(plan.body));
}

TEST_CASE("sim control: rules are replaced whole or not at all") {
  Simulator simulator({}, one_rule(R"({"status":500})"));
  WaitingRoom room(aiq::system_clock());
  const auto post = [&](const std::string& path, const std::string& body) {
    return control({"POST", path, {}, body}, simulator, room, 0);
  };
  CHECK(post("/__sim/rules", R"({"rules":[{"act":{"x":1}}]})").status == 400);
  CHECK(simulator.rules().rules().size() == 1);
  CHECK(post("/__sim/rules", R"({"rules":[]})").status == 200);
  CHECK(simulator.rules().rules().empty());
  CHECK(post("/__sim/release", R"({"rules":"a"})").status == 400);
  CHECK(post("/__sim/release", "").status == 200);
  CHECK(post("/__sim/else", "").status == 404);
}

TEST_CASE("sim waiting room: each waiter is woken once, by what it waits for") {
  int wakes[4] = {};
  Woken reasons[4] = {};
  WaitingRoom room(aiq::system_clock());
  const auto enter = [&](int index, const std::string& rule) {
    room.enter({.fd = -1, .due = {}, .rule = rule, .wake = [&, index](Woken reason) {
                  ++wakes[index];
                  reasons[index] = reason;
                }});
  };
  enter(0, "a");
  enter(1, "b");
  enter(2, "b");
  CHECK(room.held() == 3);
  CHECK(room.release("b") == 2);
  CHECK(room.release("b") == 0);
  CHECK(room.held() == 1);
  room.close();
  enter(3, "late");
  CHECK(room.held() == 0);
  for (int count : wakes)
    CHECK(count == 1);
  CHECK(reasons[0] == Woken::stopping);
  CHECK(reasons[1] == Woken::released);
  CHECK(reasons[3] == Woken::stopping);
}

TEST_CASE("sim waiting room: a due waiter is woken, not before its time") {
  WaitingRoom room(aiq::system_clock());
  std::mutex mutex;
  std::condition_variable woken;
  aiq::MonoMs at = 0;
  const aiq::MonoMs due = aiq::system_clock().mono_ms() + 30;
  room.enter({.fd = -1, .due = due, .rule = "", .wake = [&](Woken reason) {
                const std::lock_guard lock(mutex);
                CHECK(reason == Woken::due);
                at = aiq::system_clock().mono_ms();
                woken.notify_one();
              }});
  std::unique_lock lock(mutex);
  REQUIRE(woken.wait_for(lock, std::chrono::seconds(20), [&] { return at != 0; }));
  CHECK(at >= due);
}

TEST_CASE("sim listen: loopback addresses only") {
  for (const char* address : {"127.0.0.1:0", "127.9.9.9:0", "localhost:0"}) {
    CAPTURE(address);
    const auto listener = listen_on(address);
    REQUIRE(listener);
    CHECK(listener->url.rfind("http://127.", 0) == 0);
    CHECK(listener->url.substr(listener->url.size() - 2) != ":0");
  }
  for (const char* address : {"0.0.0.0:0", "8.8.8.8:80", "[::]:0", "[::2]:0", "127.0.0.1", ":0",
                              "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.1:0", ""}) {
    CAPTURE(address);
    const auto listener = listen_on(address);
    REQUIRE_FALSE(listener);
    CHECK(listener.error().exit == aiq::Exit::usage);
  }
}
