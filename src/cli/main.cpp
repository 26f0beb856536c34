// aiq: the command line. See aiq(1).

#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <string_view>

#include "cli/commands.h"
#include "cli/signals.h"
#include "core/store/store_error.h"

namespace aiq::cli {
namespace {

// With a standard stream closed, the database would get its number, and our output. A stand-in
// takes the place, opened the wrong way round, so that reading or writing it is still an error.
void guard_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    const int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) != fd) ::_exit(static_cast<int>(Exit::storage));
  }
}

// Known before the options are parsed, for errors in them.
bool asks_for_json(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

// Turns what can go wrong into one line on standard error and an exit code.
template <class F>
Exit guarded(Output& out, F action) {
  const auto fail = [&out](const Failure& failure) {
    out.error(failure);
    return failure.exit;
  };
  try {
    return action();
  } catch (const CommandFailed& error) {
    return fail(error.failure());
  } catch (const ConfigError& error) {
    return fail({Exit::usage, "config_error", error.what(), "aiq.toml(5) has every key"});
  } catch (const StoreError& error) {
    return fail(failure_of(error));
  } catch (const std::exception& error) {
    return fail({Exit::storage, "internal_error", error.what(), ""});
  }
}

Exit run(int argc, char** argv, Output& out) {
  Session session(out);
  CommandTree tree = make_command_tree(session);
  // The words after it are those of another command line; none of them is an option of this one.
  if (argc > 1 && std::string_view(argv[1]) == "__complete") {
    print_candidates(out, tree.root().node(), {argv + 2, argv + argc});
    return Exit::ok;
  }
  const auto parsed = tree.parse(argc, argv);
  if (!parsed) throw CommandFailed(parsed.error());
  out.set_json(session.globals.json);
  out.set_quiet(session.globals.quiet);
  if (!parsed->action) {
    out.text(parsed->text);
    return Exit::ok;
  }
  return parsed->action();
}

int main_of(int argc, char** argv) {
  guard_standard_streams();
  install_signals();
  Output out(Terminal::of_process());
  out.set_json(asks_for_json(argc, argv));
  const Exit exit = guarded(out, [&] { return run(argc, argv, out); });
  // Also after a failure: what was found before it is true.
  const Exit flushed = guarded(out, [&] {
    out.flush();
    return Exit::ok;
  });
  return static_cast<int>(flushed == Exit::ok ? exit : flushed);
}

}  // namespace
}  // namespace aiq::cli

int main(int argc, char** argv) {
  return aiq::cli::main_of(argc, argv);
}
