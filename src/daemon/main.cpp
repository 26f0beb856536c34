#include <cstdio>
#include <exception>

// g++ 12 takes a vector that grows inside CLI11 for a null pointer.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <CLI/CLI.hpp>
#pragma GCC diagnostic pop

#include "core/base/redact.h"
#include "core/config/config.h"
#include "core/ops/op.h"
#include "daemon/daemon.h"

namespace {

int fail(const aiq::Failure& failure) {
  (void)std::fprintf(stderr, "aiqd: %s\n", aiq::redact(failure.message).c_str());
  if (!failure.hint.empty()) (void)std::fprintf(stderr, "  %s\n", failure.hint.c_str());
  return static_cast<int>(failure.exit);
}

}  // namespace

int main(int argc, char** argv) {
  aiq::DaemonOptions options;
  CLI::App app("aiqd works off the queue of one host", "aiqd");
  app.set_version_flag("--version", "aiqd " AIQ_VERSION);
  app.add_option("--config", options.config, "Configuration file (TOML)");
  app.add_option("--db", options.db, "Database file");
  app.add_flag("--check", options.check, "Check configuration and secrets, then exit");
  app.add_flag("--until-idle", options.until_idle, "Work off what is due, then exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return fail({aiq::Exit::usage, "usage", error.what(), "aiqd --help lists the options"});
  }
  try {
    return static_cast<int>(aiq::run_daemon(options));
  } catch (const aiq::ConfigError& error) {
    return fail({aiq::Exit::usage, "config", error.what(), ""});
  } catch (const aiq::StoreError& error) {
    aiq::Failure failure = aiq::failure_of(error);
    // The hint for `aiq` names an option that aiqd does not have.
    if (failure.exit == aiq::Exit::busy) failure.hint = "try again later";
    return fail(failure);
  } catch (const std::exception& error) {
    return fail({aiq::Exit::storage, "start", error.what(), ""});
  }
}
