// aiq batch list, show, results, cancel, wait

#include <algorithm>
#include <optional>

#include "cli/batch_wait.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/pages.h"
#include "cli/render.h"
#include "cli/values.h"
#include "cli/waiting.h"

namespace aiq::cli {
namespace {

// "12 completed, 3 queued"
std::string counts_text(const Json& counts) {
  std::string text;
  for (const auto& [state, n] : counts.items()) {
    if (n.get<std::int64_t>() == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(n.get<std::int64_t>()) + " " + state;
  }
  return text.empty() ? "-" : text;
}

Exit list(Session& session, const PageOptions& pages) {
  const UnixMs now = session.clock().wall_ms();
  Output& out = session.out;
  const std::int64_t limit = pages.limit ? whole_value("--limit", *pages.limit, 0, INT64_MAX) : 100;
  Json in = Json::object();
  set_text(in, "after", pages.after);
  Table table = out.table({{"ID", true}, {"AGE", true}, {"LINES", true}, {"COUNTS", false, true}});
  bool any = false;
  for_each_row(
      session, "batch.list", in, limit,
      [&](const Json& row) {
        any = true;
        const Json batch = batch_with_counts(session, row);
        if (out.json()) {
          out.object(batch);
        } else {
          table.add({member_text(batch, "batch_id"), age_text(batch, "created_at", now),
                     member_text(batch, "lines"), counts_text(batch.at("counts"))});
        }
      },
      [&] {
        if (!table.empty()) out.text(table.take());
        out.flush();
      });
  if (!any && !out.json()) out.note("there are no batches");
  return Exit::ok;
}

Json shown(Session& session, const Text& id) {
  return batch_with_counts(session, session.call("batch.show", {{"batch_id", *id}}));
}

void print_batch(Output& out, const Json& batch) {
  if (out.json()) {
    out.object(batch);
    return;
  }
  print_members(out, batch, {"counts"});
  for (const auto& [state, n] : batch.at("counts").items())
    if (n.get<std::int64_t>() > 0) out.line(state + ": " + std::to_string(n.get<std::int64_t>()));
}

Exit show(Session& session, const Text& id) {
  print_batch(session.out, shown(session, id));
  return Exit::ok;
}

struct ResultOptions {
  Text id, output, errors;
};

Exit results(Session& session, const ResultOptions& o) {
  const Json batch = session.call("batch.show", {{"batch_id", *o.id}});
  Output& out = session.out;
  std::optional<OutputFile> output, errors;
  if (o.output) output.emplace(*o.output);
  const bool same = o.errors && o.errors == o.output;
  if (o.errors && !same) errors.emplace(*o.errors);
  std::int64_t open = 0;
  Json in = {{"batch_id", *o.id}};
  for (bool more = true; more && !out.reader_gone();) {
    const Json page = session.call("batch.results", in);
    for (const Json& row : page.at("rows")) {
      const bool completed = row.at("completed").get<bool>();
      const auto& text = row.at("text").get_ref<const std::string&>();
      std::optional<OutputFile>& file = completed || same ? output : errors;
      if (file) {
        file->write(text + "\n");
      } else {
        out.line(text);
      }
    }
    out.flush();
    open += page.at("open").get<std::int64_t>();
    more = !page.at("next_after").is_null();
    in["after"] = page["next_after"];
  }
  if (output) output->commit();
  if (errors) errors->commit();
  if (out.reader_gone()) return Exit::ok;
  const std::string id = member_text(batch, "batch_id");
  if (open > 0)
    throw CommandFailed({Exit::no, "lines_open",
                         std::to_string(open) + " lines of batch " + id + " are still open",
                         "aiq batch wait " + id + " waits for them"});
  if (batch.at("state") != "loaded")
    throw CommandFailed({Exit::no, "batch_loading",
                         "the file of batch " + id + " was not read to its end",
                         "run the same aiq submit --batch again"});
  return Exit::ok;
}

struct CancelOptions {
  Text id;
  bool force = false;
};

Exit cancel(Session& session, const CancelOptions& o) {
  cancel_batch_lines(session, *o.id, o.force, [](const Json&) {});
  print_batch(session.out, shown(session, o.id));
  return Exit::ok;
}

struct WaitOptions {
  Text id, timeout;
};

Exit wait(Session& session, const WaitOptions& o) {
  std::optional<DurationMs> timeout;
  if (o.timeout) timeout = duration_value("--timeout", *o.timeout);
  const WaitEnd end = wait_for_batch(session, *o.id, false, timeout, {});
  const Json batch = shown(session, o.id);
  print_batch(session.out, batch);
  session.out.flush();
  if (end == WaitEnd::completed) return Exit::ok;
  throw CommandFailed(failure_of_wait(session, end, not_completed_sentence(batch),
                                      "aiq batch results " + *o.id + " tells what happened"));
}

}  // namespace

void add_batch(Command root, Session& session) {
  Command batch = root.add("batch", "files of requests: what became of their lines");

  auto pages = std::make_shared<PageOptions>();
  Command list_command = batch.add("list", "list batches, newest first");
  pages->add_to(list_command, "B");
  list_command.run([pages, &session] { return list(session, *pages); });

  auto id = std::make_shared<Text>();
  batch.add("show", "show one batch and how many of its lines are in which state")
      .operand("B", *id, "Batch id (b17)", ValueKind::batch)
      .run([id, &session] { return show(session, *id); });

  auto result_options = std::make_shared<ResultOptions>();
  batch.add("results", "print the answers as OpenAI batch output, in the order of the file")
      .operand("B", result_options->id, "Batch id (b17)", ValueKind::batch)
      .option("output", "FILE", result_options->output, "Lines that completed; default stdout",
              ValueKind::file)
      .option("errors", "FILE", result_options->errors, "Lines that did not; default stdout",
              ValueKind::file)
      .run([result_options, &session] { return results(session, *result_options); });

  auto cancel_options = std::make_shared<CancelOptions>();
  batch.add("cancel", "withdraw the lines of a batch")
      .operand("B", cancel_options->id, "Batch id (b17)", ValueKind::batch)
      .flag("force", cancel_options->force, "Also stop jobs that other submissions share")
      .run([cancel_options, &session] { return cancel(session, *cancel_options); });

  auto wait_options = std::make_shared<WaitOptions>();
  batch.add("wait", "wait for all lines of a batch")
      .operand("B", wait_options->id, "Batch id (b17)", ValueKind::batch)
      .option("timeout", "D", wait_options->timeout, "Give up waiting, exit 6; the jobs go on")
      .run([wait_options, &session] { return wait(session, *wait_options); });
}

}  // namespace aiq::cli
