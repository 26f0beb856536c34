// aiq import usage|ledger|summary|runs|credits|invoices

#include "cli/commands.h"
#include "cli/lines.h"
#include "cli/render.h"
#include "cli/values.h"
#include "core/base/json_canonical.h"

namespace aiq::cli {
namespace {

constexpr std::size_t kSliceLines = 500;
constexpr std::size_t kSliceBytes = std::size_t{1} << 20;
// Of an answer in JSON; people see each as it comes.
constexpr std::size_t kErrorsKept = 10'000;

struct ImportOptions {
  Text file, source;
};

class TableImport {
 public:
  TableImport(Session& session, std::string op, const ImportOptions& options)
      : session_(session), op_(std::move(op)), lines_("FILE", *options.file) {
    set_text(in_, "source", options.source);
  }

  Exit run() {
    std::string line;
    while (lines_.next(line)) {
      if (slice_.empty()) in_["first_line"] = lines_.number();
      add(line);
      if (slice_.size() >= kSliceLines || bytes_ >= kSliceBytes) send();
    }
    send();
    session_.out.progress("");
    if (session_.out.json()) {
      total_["errors"] = errors_;
      session_.out.object(total_);
    } else {
      print_members(session_.out, total_, {}, true);
    }
    return Exit::ok;
  }

 private:
  // What can't be put into a request is reported here, and stands in it as a blank line.
  void add(std::string& line) {
    if (lines_.too_long()) {
      note_error({{"line", lines_.number()},
                  {"code", "too_large"},
                  {"message", "a line has at most 1 MiB"}});
      line.clear();
    } else if (!is_valid_utf8(line)) {
      note_error(
          {{"line", lines_.number()}, {"code", "invalid_utf8"}, {"message", "not valid UTF-8"}});
      line.clear();
    }
    bytes_ += line.size();
    slice_.push_back(line);
  }

  void send() {
    if (slice_.empty()) return;
    in_["lines"] = std::move(slice_);
    const Json answer = session_.call(op_, in_);
    in_["import_id"] = answer.at("import_id");
    for (const char* name : {"imported", "duplicates", "conflicts"})
      total_[name] = total_[name].get<std::int64_t>() + answer.at(name).get<std::int64_t>();
    for (const Json& error : answer.at("errors"))
      note_error(error);
    slice_ = Json::array();
    bytes_ = 0;
    session_.out.progress(std::to_string(lines_.number()) + " lines");
  }

  void note_error(const Json& error) {
    if (errors_.size() < kErrorsKept) errors_.push_back(error);
    if (!session_.out.json()) {
      session_.out.warn("line " + error.at("line").dump() + ": " +
                        error.at("message").get<std::string>() + " (" +
                        error.at("code").get<std::string>() + ")");
    }
  }

  Session& session_;
  std::string op_;
  LineReader lines_;
  Json in_ = Json::object();
  Json slice_ = Json::array();
  std::size_t bytes_ = 0;
  Json total_ = {{"imported", 0}, {"duplicates", 0}, {"conflicts", 0}};
  Json errors_ = Json::array();
};

}  // namespace

void add_imports(Command root, Session& session) {
  Command group = root.add("import", "take in another system's tables as found, to audit them");
  const std::pair<const char*, const char*> tables[] = {
      {"usage", "its usage events"},        {"ledger", "its ledger"},
      {"summary", "its summaries by hour"}, {"runs", "its aggregation runs"},
      {"credits", "its credit notes"},      {"invoices", "its invoices"},
  };
  for (const auto& [name, summary] : tables) {
    auto options = std::make_shared<ImportOptions>();
    Command command = group.add(name, summary);
    command.operand("FILE", options->file, "JSON Lines; - = standard input", ValueKind::file)
        .option("source", "NAME", options->source, "Name of the other system; default import");
    command.run([options, &session, op = std::string("import.") + name] {
      return TableImport(session, op, *options).run();
    });
  }
}

}  // namespace aiq::cli
