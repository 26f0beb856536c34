// aiq-sim: a vendor on loopback, for drills and tests. See aiq-sim(1).

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <string>

// g++ 12 takes a vector that grows inside CLI11 for a null pointer.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <CLI/CLI.hpp>
#pragma GCC diagnostic pop

#include "core/base/clock.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "sim/http_server.h"
#include "sim/journal.h"
#include "sim/latency.h"
#include "sim/listen.h"
#include "sim/simulator.h"

namespace aiq::sim {
namespace {

constexpr std::size_t kMaxRulesFile = std::size_t{16} << 20U;

struct Arguments {
  std::string listen = "127.0.0.1:0";
  std::string rules;
  std::string journal;
  std::string latency = "0ms";
  SimulatorOptions simulator;
};

int fail(const Failure& failure) {
  std::fprintf(stderr, "aiq-sim: %s\n", failure.message.c_str());
  if (!failure.hint.empty()) std::fprintf(stderr, "hint: %s\n", failure.hint.c_str());
  return static_cast<int>(failure.exit);
}

Expected<RuleSet, Failure> load_rules(const std::string& path) {
  if (path.empty()) return RuleSet();
  const auto text = read_file(path, kMaxRulesFile);
  if (!text) return Unexpected{Failure{Exit::usage, "no_rules", text.error().message, ""}};
  auto rules = parse_rules(*text);
  if (!rules) {
    return Unexpected{Failure{Exit::usage, "bad_rules", path + ": " + rules.error(),
                              "the form is described in aiq-sim(1)"}};
  }
  return RuleSet(std::move(*rules), system_clock().mono_ms());
}

// Blocked before the first thread starts, so that only sigwait() gets them.
sigset_t block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

bool announce(const std::string& url) {
  return std::printf("listening on %s\n", url.c_str()) > 0 && std::fflush(stdout) == 0;
}

int run(const Arguments& arguments) {
  const sigset_t signals = block_stop_signals();
  auto rules = load_rules(arguments.rules);
  if (!rules) return fail(rules.error());
  std::optional<Journal> journal;
  if (!arguments.journal.empty()) {
    auto opened = Journal::open(arguments.journal);
    if (!opened) return fail({Exit::storage, "no_journal", opened.error().message, ""});
    journal.emplace(std::move(*opened));
  }
  auto listener = listen_on(arguments.listen);
  if (!listener) return fail(listener.error());

  Simulator simulator(arguments.simulator, std::move(*rules));
  std::atomic<bool> journal_failed{false};
  HttpServer server({.clock = system_clock(),
                     .simulator = simulator,
                     .journal = journal ? &*journal : nullptr,
                     .journal_failed = [&] {
                       journal_failed = true;
                       kill(getpid(), SIGTERM);
                     }});
  if (!server.start(listener->fd)) {
    return fail({Exit::busy, "cannot_start", "cannot start the server thread", ""});
  }
  if (!announce(listener->url)) {
    return fail({Exit::storage, "no_stdout", "cannot write to standard output", ""});
  }
  int received = 0;
  sigwait(&signals, &received);
  if (journal_failed) {
    return fail({Exit::storage, "journal_failed",
                 "cannot write to the journal " + arguments.journal + "; stopped",
                 "is the disk full?"});
  }
  return static_cast<int>(Exit::ok);
}

// CLI11 tells a number outside of its range with all digits of the range.
Failure failure_of(const CLI::ParseError& error) {
  const std::string what = error.what();
  std::string message = what;
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
      dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    const std::size_t name = what.find("--");
    const std::string option = name == std::string::npos
                                   ? what
                                   : what.substr(name, what.find_first_of(": =", name) - name);
    message = option + " takes a whole number, 0 or more";
  }
  return {Exit::usage, "usage", message, "aiq-sim --help lists the options"};
}

int main_of(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("A vendor of AI models on loopback, for drills and tests.", "aiq-sim");
  app.set_version_flag("--version", "aiq-sim " AIQ_VERSION);
  LimitOptions& limits = arguments.simulator.limits;
  app.add_option("--listen", arguments.listen, "Loopback address and port; port 0 = any free one")
      ->capture_default_str();
  app.add_option("--rules", arguments.rules, "JSON file of faults and answers");
  app.add_option("--journal", arguments.journal, "Append one JSON line per request to this file");
  app.add_option("--latency", arguments.latency, "Time before each answer: 50ms, or 50ms..2s");
  app.add_option("--rpm", limits.rpm, "Requests per 60 s; 0 = no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--tpm", limits.tpm, "Tokens per 60 s; 0 = no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-in-flight", limits.max_in_flight, "Requests at a time; 0 = no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", arguments.simulator.seed, "Seed of answers and latencies")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return fail(failure_of(error));
  }
  const auto latency = parse_latency(arguments.latency);
  if (!latency) {
    return fail({Exit::usage, "bad_latency",
                 "--latency takes a duration or two, not '" + arguments.latency + "'",
                 "for example 200ms or 50ms..2s"});
  }
  arguments.simulator.latency_min = latency->min;
  arguments.simulator.latency_max = latency->max;
  return run(arguments);
}

}  // namespace
}  // namespace aiq::sim

int main(int argc, char** argv) {
  return aiq::sim::main_of(argc, argv);
}
