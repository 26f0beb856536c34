#include "cli/pages.h"

#include <algorithm>

#include "cli/values.h"

namespace aiq::cli {
namespace {

constexpr std::int64_t kPageRows = 1000;
constexpr std::int64_t kDefaultLimit = 100;

}  // namespace

void PageOptions::add_to(Command& command, const std::string& after_what) {
  command.option("limit", "N", limit, "At most N rows; default 100, 0 = all")
      .option("after", after_what, after, "Go on after this one");
}

void JobFilterOptions::add_to(Command& command) {
  command.section("Filters")
      .option("status", "STATE", status,
              "queued, processing, retrying, completed, failed, dead_lettered or cancelled",
              ValueKind::job_state)
      .option("tenant", "T", tenant, "Of this tenant", ValueKind::tenant)
      .option("model", "M", model, "For this model", ValueKind::model)
      .option("vendor", "V", vendor, "At this vendor", ValueKind::vendor)
      .option("batch", "B", batch, "Asked for by a line of this batch", ValueKind::batch)
      .option("label", "K=V", label, "With this label", ValueKind::label)
      .option("correlation-id", "ID", correlation_id, "With this correlation id")
      .option("since", "T", since, "Submitted at or after a time, or an age such as 1h")
      .option("until", "T", until, "Submitted before a time, or an age");
}

bool JobFilterOptions::any() const {
  return status || tenant || model || vendor || batch || label || correlation_id || since || until;
}

Json JobFilterOptions::input(const Session& session) const {
  const UnixMs now = session.clock().wall_ms();
  Json in = Json::object();
  set_text(in, "status", status);
  set_text(in, "tenant", tenant);
  set_text(in, "model", model);
  set_text(in, "vendor", vendor);
  set_text(in, "batch_id", batch);
  set_label(in, label);
  set_text(in, "correlation_id", correlation_id);
  set_past(in, "since", "--since", since, now);
  set_past(in, "until", "--until", until, now);
  return in;
}

void for_each_row(Session& session, const std::string& op, Json in, std::int64_t limit,
                  const std::function<void(const Json&)>& row,
                  const std::function<void()>& page_done) {
  std::int64_t left = limit;
  for (;;) {
    in["limit"] = limit == 0 ? kPageRows : std::min(left, kPageRows);
    const Json page = session.call(op, in);
    const Json& rows = page.at("rows");
    for (const Json& entry : rows)
      row(entry);
    page_done();
    left -= static_cast<std::int64_t>(rows.size());
    const auto next = page.find("next_after");
    const bool more = next != page.end() && !next->is_null() && !rows.empty();
    if (!more || (limit != 0 && left <= 0) || session.out.reader_gone()) return;
    in["after"] = *next;
  }
}

Exit print_list(Session& session, const std::string& op, const Json& in, const PageOptions& pages,
                std::vector<Column> columns, const RowCells& cells, const std::string& nothing) {
  const std::int64_t limit =
      pages.limit ? whole_value("--limit", *pages.limit, 0, INT64_MAX) : kDefaultLimit;
  Json input = in;
  set_text(input, "after", pages.after);
  Output& out = session.out;
  Table table = out.table(std::move(columns));
  bool any = false;
  for_each_row(
      session, op, std::move(input), limit,
      [&](const Json& row) {
        any = true;
        if (out.json()) {
          out.object(row);
        } else {
          table.add(cells(row));
        }
      },
      [&] {
        if (!table.empty()) out.text(table.take());
        out.flush();
      });
  if (!any && !out.json()) out.note(nothing);
  return Exit::ok;
}

}  // namespace aiq::cli
