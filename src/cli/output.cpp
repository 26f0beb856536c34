#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "cli/signals.h"
#include "cli/text.h"
#include "core/base/file.h"
#include "core/base/redact.h"
#include "core/config/config.h"

namespace aiq::cli {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10U;

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Terminal Terminal::of_process() {
  const bool fancy = process_env("NO_COLOR").empty() && process_env("TERM") != "dumb";
  Terminal terminal{.out = ::isatty(STDOUT_FILENO) == 1};
  winsize size = {};
  if (terminal.out && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) {
    terminal.width = size.ws_col;
  }
  terminal.color = terminal.out && fancy;
  terminal.progress = ::isatty(STDERR_FILENO) == 1 && fancy;
  return terminal;
}

void Output::text(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) flush();
}

void Output::line(std::string_view line_text) {
  buffer_ += line_text;
  text("\n");
}

void Output::object(const Json& value) {
  line(dump(value));
}

void Output::flush() {
  if (buffer_.empty()) return;
  if (terminal_.out) progress("");
  const std::string bytes = std::exchange(buffer_, {});
  if (reader_gone_) return;
  const int error = write_stdout(bytes);
  if (error == EPIPE) reader_gone_ = true;
  if (error != 0 && error != EPIPE) {
    throw CommandFailed({Exit::storage, "output_failed",
                         "cannot write to standard output: " + errno_text(error),
                         "what the command did stays done; only its output is incomplete"});
  }
}

Table Output::table(std::vector<Column> columns) const {
  std::optional<std::size_t> width;
  if (terminal_.out) width = terminal_.width;
  return {std::move(columns), width, terminal_.color};
}

std::string Output::tone(const std::string& toned_text, Tone tone) const {
  return toned(toned_text, tone, terminal_.color);
}

void Output::words(std::string_view line_text) {
  progress("");
  // Nobody is left to tell when standard error fails.
  static_cast<void>(write_all(STDERR_FILENO, std::string(line_text) + "\n"));
}

void Output::note(std::string_view sentence) {
  if (!quiet_) words("aiq: " + printable(sentence));
}

void Output::warn(std::string_view sentence) {
  if (!quiet_) words("aiq: warning: " + printable(redact(sentence)));
}

void Output::fault(std::string_view text_of_fault) {
  words(printable(redact(text_of_fault)));
}

void Output::error(const Failure& failure) {
  const std::string message = printable(redact(failure.message));
  if (json_) {
    Json error = {{"code", failure.code}, {"message", message}, {"hint", nullptr}};
    if (!failure.hint.empty()) error["hint"] = failure.hint;
    words(dump(Json{{"error", std::move(error)}}));
    return;
  }
  words("aiq: " + message + (failure.hint.empty() ? "" : " (" + printable(failure.hint) + ")"));
}

void Output::progress(std::string_view progress_text) {
  if (!shows_progress() || progress_text == progress_) return;
  progress_ = progress_text;
  set_progress_shown(!progress_.empty());
  const std::string shown = "\r\x1b[K" + cut(printable(progress_), terminal_.width - 1);
  static_cast<void>(write_all(STDERR_FILENO, shown));
}

}  // namespace aiq::cli
