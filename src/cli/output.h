#pragma once
// Where `aiq` writes: data to standard output, words to standard error.

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cli/table.h"
#include "core/base/errors.h"
#include "core/ops/op.h"

namespace aiq::cli {

// Ends the command: caught by main, which prints it and exits with its code.
class CommandFailed : public std::runtime_error {
 public:
  explicit CommandFailed(Failure failure)
      : std::runtime_error(failure.message), failure_(std::move(failure)) {}
  [[nodiscard]] const Failure& failure() const noexcept { return failure_; }

 private:
  Failure failure_;
};

// What a stream is connected to.
struct Terminal {
  bool out = false;       // standard output is a terminal
  bool color = false;     // on standard output
  bool progress = false;  // standard error is a terminal that may show a progress line
  std::size_t width = 80;
  // Of this process: isatty, window size, NO_COLOR, TERM.
  [[nodiscard]] static Terminal of_process();
};

class Output {
 public:
  explicit Output(Terminal terminal) : terminal_(terminal) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // With --json. Set once, before anything is written.
  void set_json(bool json) { json_ = json; }
  // With --quiet: no notes and no progress; errors stay.
  void set_quiet(bool quiet) { quiet_ = quiet; }
  [[nodiscard]] bool json() const { return json_; }
  [[nodiscard]] const Terminal& terminal() const { return terminal_; }

  // ---- standard output, buffered; errors come up in flush()
  void text(std::string_view bytes);
  void line(std::string_view text);
  void object(const Json& value);  // one line of JSON
  // Writes what is buffered. A reader that went away is no error: reader_gone() from then on.
  // Any other error: CommandFailed, exit 8.
  void flush();
  // A list may stop.
  [[nodiscard]] bool reader_gone() const { return reader_gone_; }

  [[nodiscard]] Table table(std::vector<Column> columns) const;
  [[nodiscard]] std::string tone(const std::string& text, Tone tone) const;

  // ---- standard error
  void note(std::string_view sentence);  // "aiq: sentence"
  void warn(std::string_view sentence);  // "aiq: warning: sentence"
  // A fault in the input, as its place and what it is; also with --quiet.
  void fault(std::string_view text);
  // "aiq: message (hint)"; with --json the error object instead.
  void error(const Failure& failure);
  // The progress line: only on a terminal, replaced by the next one, removed by "" and by
  // anything else that is written.
  void progress(std::string_view text);
  [[nodiscard]] bool shows_progress() const { return terminal_.progress && !quiet_; }

 private:
  void words(std::string_view line);

  Terminal terminal_;
  bool json_ = false, quiet_ = false, reader_gone_ = false;
  std::string buffer_, progress_;
};

}  // namespace aiq::cli
