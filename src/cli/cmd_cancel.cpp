// aiq cancel

#include <algorithm>

#include "cli/batch_wait.h"
#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/render.h"
#include "cli/values.h"

namespace aiq::cli {
namespace {

struct CancelOptions {
  Texts ids;
  JobFilterOptions filter;
  bool force = false;
};

constexpr std::size_t kSlice = 500;  // ids per operation: each is one short transaction

// The jobs that the filters name and that can still be cancelled.
std::vector<std::string> matching_ids(Session& session, const JobFilterOptions& filter) {
  std::vector<std::string> ids;
  for (const char* status : {"queued", "retrying", "processing"}) {
    Json in = filter.input(session);
    if (filter.status && *filter.status != status) continue;
    in["status"] = status;
    for_each_row(
        session, "list", std::move(in), 0,
        [&](const Json& job) { ids.push_back(job.at("job_id").get<std::string>()); }, [] {});
  }
  // One that changed its state between two of the lists stands in both.
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void print_row(Output& out, const Json& row) {
  if (out.json()) {
    out.object(row);
  } else {
    out.line(member_text(row, "job_id") + " " + member_text(row, "outcome"));
  }
}

// Filters name who asked where they can: a job goes on when others asked for it, too.
void cancel_slice(Session& session, const std::vector<std::string>& ids, const CancelOptions& o) {
  Json in = {{"ids", ids}};
  set_flag(in, "force", o.force);
  set_text(in, "batch_id", o.filter.batch);
  set_text(in, "correlation_id", o.filter.correlation_id);
  const Json answer = session.call("cancel", in);
  for (const Json& row : answer.at("rows"))
    print_row(session.out, row);
  session.out.flush();
}

// --batch alone: line by line, without a list of all jobs.
bool only_batch(const JobFilterOptions& f) {
  JobFilterOptions rest = f;
  rest.batch.reset();
  return f.batch && !rest.any();
}

Exit cancel_batch(Session& session, const CancelOptions& o) {
  bool any = false;
  cancel_batch_lines(session, *o.filter.batch, o.force, [&](const Json& row) {
    any = true;
    print_row(session.out, row);
  });
  if (!any) session.out.note("no job that could be cancelled matches");
  return Exit::ok;
}

Exit cancel(Session& session, const CancelOptions& o) {
  if (o.ids.empty() == !o.filter.any()) {
    fail_usage("missing_argument",
               o.ids.empty() ? "aiq cancel needs job ids or filters"
                             : "job ids and filters exclude each other",
               "for example aiq cancel 17, or aiq cancel --tenant acme");
  }
  if (!o.ids.empty()) {
    // All in one operation: an unknown id cancels nothing.
    cancel_slice(session, o.ids, o);
    return Exit::ok;
  }
  if (only_batch(o.filter)) return cancel_batch(session, o);
  const std::vector<std::string> ids = matching_ids(session, o.filter);
  for (std::size_t at = 0; at < ids.size(); at += kSlice) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), at + kSlice));
    cancel_slice(session, {begin, end}, o);
  }
  if (ids.empty()) session.out.note("no job that could be cancelled matches");
  return Exit::ok;
}

}  // namespace

void add_cancel(Command root, Session& session) {
  auto options = std::make_shared<CancelOptions>();
  Command command = root.add("cancel", "withdraw submissions; a job without any stops");
  command
      .operands("ID", options->ids,
                "Job ids (17: all submissions of the job) or submission ids (s17)", false,
                ValueKind::live_job)
      .flag("force", options->force, "Also where other submissions share the job");
  options->filter.add_to(command);
  command.run([options, &session] { return cancel(session, *options); });
}

}  // namespace aiq::cli
