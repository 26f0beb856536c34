#include "cli/batch_load.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_set>

#include "cli/batch_file.h"
#include "cli/batch_sender.h"
#include "cli/batch_slice.h"
#include "cli/signals.h"
#include "cli/text.h"
#include "cli/values.h"
#include "core/base/random.h"
#include "core/base/sha256.h"
#include "core/base/sleep.h"

namespace aiq::cli {
namespace {

// Another loader of the same file may find a bad line first, and take all away that was staged.
constexpr int kPassesMax = 3;
constexpr DurationMs kGiveWayMs = 5;

std::size_t line_bytes_max(Session& session) {
  return static_cast<std::size_t>(request_bytes_bound(session.config().limits.request_bytes));
}

class LoadProgress {
 public:
  LoadProgress(Session& session, const BatchFile& file)
      : out_(session.out), clock_(session.clock()), file_(file), begun_(clock_.mono_ms()) {}
  ~LoadProgress() { out_.progress(""); }
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

  // `skipped`: lines that were in before.
  void show(std::int64_t lines, std::int64_t skipped) {
    const MonoMs now = clock_.mono_ms();
    if (!out_.shows_progress() || now - shown_ < kEveryMs) return;
    shown_ = now;
    const DurationMs took = std::max<DurationMs>(1, now - begun_);
    std::string text = std::to_string(lines) + " lines, " +
                       std::to_string((lines - skipped) * 1000 / took) + " lines/s";
    const std::int64_t position = file_.position();
    if (file_.size() > 0 && position > 0) {
      const auto left =
          static_cast<DurationMs>(static_cast<double>(took) / static_cast<double>(position) *
                                  static_cast<double>(file_.size() - position));
      text += ", " + human_bytes(position) + " of " + human_bytes(file_.size()) + ", " +
              short_age(left) + " left";
    }
    out_.progress(text);
  }

 private:
  static constexpr DurationMs kEveryMs = 200;
  Output& out_;
  Clock& clock_;
  const BatchFile& file_;
  MonoMs begun_, shown_ = 0;
};

// "3 lines: the request asked for a stream; ..."
class Notes {
 public:
  void add(const Json& notes) {
    for (const auto& [text, lines] : notes.items())
      lines_[text] += lines.get<std::int64_t>();
  }
  void print(Output& out) const {
    for (const auto& [text, lines] : lines_)
      out.warn(std::to_string(lines) + (lines == 1 ? " line: " : " lines: ") + text);
  }

 private:
  std::map<std::string, std::int64_t> lines_;
};

class Loader {
 public:
  Loader(Session& session, const BatchRequest& request)
      : session_(session),
        request_(request),
        file_(request.path, request.atomic || request.key.has_value(), line_bytes_max(session)),
        progress_(session, file_) {}

  BatchReport run() {
    Json begin = {{"options", request_.options}};
    if (file_.can_rewind()) {
      begin["fingerprint"] = file_.fingerprint(request_.options_as_given);
      begin["repeatable"] = true;
    } else {
      // A pipe is read once: nobody can come again with the same.
      begin["fingerprint"] = sha256_hex(system_random().token());
    }
    set_text(begin, "idempotency_key", request_.key);
    set_flag(begin, "atomic", request_.atomic);
    set_farewell(file_.can_rewind()
                     ? "aiq: what went in stays; the same command again goes on from there"
                     : "aiq: what went in stays; the rest of the input was not read");
    for (int passes = 1; !pass(begin, passes < kPassesMax); ++passes) {
    }
    set_farewell("");
    notes_.print(session_.out);
    return report();
  }

 private:
  // False: the batch was taken away meanwhile.
  bool pass(const Json& begin, bool may_repeat) {
    state_ = session_.call("batch.begin", begin);
    options_ = request_.options;
    options_["correlation_id"] = state_["correlation_id"];
    const bool staged = state_["state"] == "staging";
    may_repeat = may_repeat && staged;
    const bool takes_lines = staged || (state_["state"] == "loading" && !state_["atomic"]);
    if (takes_lines && !send_lines(staged, may_repeat)) return false;
    if (staged && !file_.damage().empty()) return true;
    if (!step("batch.finish", may_repeat)) return false;
    if (state_["state"] == "loading" && !step("batch.load", false)) return false;
    while (state_["state"] == "loading") {
      progress_.show(state_["created"].get<std::int64_t>() +
                         state_["existing"].get<std::int64_t>() +
                         state_["cached"].get<std::int64_t>(),
                     0);
      give_way();
      (void)step("batch.load", false);
    }
    return true;
  }

  // What is said to the lines of one pass.
  struct Pass {
    bool staged, may_repeat;
    BatchSlicer slicer;
    SliceSender sender;
  };

  bool send_lines(bool staged, bool may_repeat) {
    if (file_.can_rewind()) file_.rewind();
    const auto skipped = state_["read_to"].get<std::int64_t>();
    Pass pass{staged, may_repeat, BatchSlicer(line_bytes_max(session_)), SliceSender(session_)};
    pass.slicer.begin_after(skipped);
    FileLine line;
    while (file_.next(line)) {
      if (line.number <= pass.slicer.last()) continue;  // it is in
      if (pass.slicer.is_full_for(line) && !send(pass)) return false;
      if (!takes_lines(pass)) break;
      if (line.number > pass.slicer.last()) pass.slicer.add(line);
      progress_.show(line.number, skipped);
    }
    if (takes_lines(pass) && !pass.slicer.empty() && !send(pass)) return false;
    while (!pass.sender.empty())
      if (!settle(pass)) return false;
    return true;
  }

  [[nodiscard]] bool takes_lines(const Pass& pass) const {
    return state_["state"] == (pass.staged ? "staging" : "loading");
  }

  bool send(Pass& pass) {
    while (!pass.sender.has_room())
      if (!settle(pass)) return false;
    if (pass.slicer.empty() || !takes_lines(pass)) return true;
    Json slice = pass.slicer.take();
    slice["options"] = options_;
    set_flag(slice, "staged", pass.staged);
    slice["batch_id"] = state_["batch_id"];
    pass.sender.send(std::move(slice));
    return true;
  }

  bool settle(Pass& pass) {
    SliceSender::Settled settled = pass.sender.settle();
    const auto last = settled.slice["last"].get<std::int64_t>();
    if (is_too_large(settled)) refuse_its_line(settled.slice);
    if (!settled.answer && !is_too_large(settled)) {
      if (is_gone(settled.answer.error(), pass.may_repeat)) return false;
      throw CommandFailed(std::move(settled.answer).error());
    }
    if (settled.answer) take(std::move(*settled.answer));
    // Not in: refused as a whole, or come before the slice in front of it.
    if (is_missing(last, pass) && !step("batch.append", pass.may_repeat, settled.slice))
      return false;
    if (is_missing(last, pass)) {
      throw CommandFailed({Exit::busy, "batch_changed", "the batch was changed from elsewhere",
                           "run the same command again"});
    }
    notes_.add(state_["notes"]);
    give_way();
    const auto read_to = state_["read_to"].get<std::int64_t>();
    if (read_to > pass.slicer.last()) pass.slicer.begin_after(read_to);  // another loader is ahead
    return true;
  }

  [[nodiscard]] bool is_missing(std::int64_t last, const Pass& pass) const {
    return state_["read_to"].get<std::int64_t>() < last && takes_lines(pass);
  }

  // Without a daemon this process takes the lock of the file for each slice: others, which look for
  // it every 50 ms, must find it free now and then.
  void give_way() {
    if (session_.executor().where() == Executor::Where::file) sleep_ms(kGiveWayMs);
  }

  // A line that the daemon does not take at all stands alone in its slice: its configuration has a
  // lower limit than ours.
  static bool is_too_large(const SliceSender::Settled& settled) {
    return !settled.answer && settled.answer.error().code == "request_too_large" &&
           settled.slice["lines"].size() == 1;
  }

  static void refuse_its_line(Json& slice) {
    slice["refused"].push_back(
        {slice["lines"][0][0], "too_large", "the line is larger than the daemon takes"});
    slice["lines"] = Json::array();
  }

  // The answers of two slices may come in either order; `read_to` only grows.
  void take(Json answer) {
    if (answer["read_to"].get<std::int64_t>() >= state_["read_to"].get<std::int64_t>())
      state_ = std::move(answer);
  }

  static bool is_gone(const Failure& failure, bool may_repeat) {
    return failure.code == "no_such_batch" && may_repeat;
  }

  // False: there is no such batch any more, and the file may be begun anew.
  bool step(const char* op, bool may_repeat, Json in = Json::object()) {
    in["batch_id"] = state_["batch_id"];
    auto answer = session_.try_call(op, in);
    if (!answer && is_gone(answer.error(), may_repeat)) return false;
    if (!answer) throw CommandFailed(std::move(answer).error());
    state_ = std::move(*answer);
    return true;
  }

  [[nodiscard]] BatchReport report() const {
    BatchReport out;
    const std::string id = state_["batch_id"].get<std::string>();
    const bool nothing = state_["state"] == "staging";
    out.errors_of = id;
    if (!nothing) out.batch_id = id;
    out.lines = state_["lines"].get<std::int64_t>();
    out.created = state_["created"].get<std::int64_t>();
    out.existing = state_["existing"].get<std::int64_t>();
    out.cached = state_["cached"].get<std::int64_t>();
    out.rejected = state_["rejected"].get<std::int64_t>();
    out.damage = file_.damage();
    out.none_runs = session_.executor().where() == Executor::Where::file;
    return out;
  }

  Session& session_;
  const BatchRequest& request_;
  BatchFile file_;
  LoadProgress progress_;
  Notes notes_;
  Json state_, options_;
};

void print_fault(Output& out, const Json& row) {
  out.fault("line " + std::to_string(row.at("line").get<std::int64_t>()) + ": " +
            row.at("code").get<std::string>() + ": " + row.at("message").get<std::string>());
}

// Page by page, so that many faults take no memory.
void for_each_fault(Session& session, const std::string& batch_id,
                    const std::function<void(const Json&)>& each) {
  Json in = {{"batch_id", batch_id}};
  for (;;) {
    const Json page = session.call("batch.errors", in);
    for (const Json& row : page.at("rows"))
      each(row);
    if (page.at("next_after").is_null()) return;
    in["after"] = page["next_after"];
  }
}

Json counts_of(const BatchReport& r) {
  return {{"batch_id", r.batch_id.empty() ? Json(nullptr) : Json(r.batch_id)},
          {"lines", r.lines},
          {"created", r.created},
          {"existing", r.existing},
          {"cached", r.cached},
          {"rejected", r.rejected}};
}

std::string counts_sentence(const BatchReport& r) {
  return std::to_string(r.lines) + (r.lines == 1 ? " line: " : " lines: ") +
         std::to_string(r.created) + " created, " + std::to_string(r.existing) + " existing, " +
         std::to_string(r.cached) + " cached, " + std::to_string(r.rejected) + " rejected";
}

}  // namespace

BatchReport load_batch(Session& session, const BatchRequest& request) {
  return Loader(session, request).run();
}

void print_batch_report(Session& session, const BatchReport& report, const Json& more) {
  Output& out = session.out;
  if (out.json()) {
    std::string head = counts_of(report).dump();
    head.pop_back();
    out.text(head + ",\"errors\":[");
    const char* between = "";
    for_each_fault(session, report.errors_of, [&](const Json& row) {
      out.text(between + row.dump());
      between = ",";
    });
    const std::string tail = more.empty() ? "}" : "," + more.dump().substr(1);
    out.line("]" + tail);
  } else {
    for_each_fault(session, report.errors_of, [&out](const Json& row) { print_fault(out, row); });
    if (report.rejected == 0 && report.damage.empty()) out.note(counts_sentence(report));
  }
  out.flush();
  if (report.none_runs && report.created > 0)
    out.note("queued, but nothing is running: start aiqd, or aiqd --until-idle");
  while (report.batch_id.empty() &&
         !session.call("batch.drop", {{"batch_id", report.errors_of}}).at("done").get<bool>()) {
  }
}

std::optional<Failure> failure_of_batch(const BatchReport& report) {
  const char* rest = report.batch_id.empty() ? "nothing went in" : "the other lines went in";
  if (!report.damage.empty())
    return Failure{Exit::usage, "damaged_gzip", report.damage + "; " + counts_sentence(report),
                   report.batch_id.empty() ? rest : "the lines before that went in"};
  if (report.rejected > 0)
    return Failure{Exit::usage, "lines_rejected", counts_sentence(report), rest};
  return std::nullopt;
}

namespace {

// Counts what lines would come to, and tells faults as they are found.
class Preview {
 public:
  Preview(Session& session, const BatchRequest& request)
      : session_(session),
        request_(request),
        file_(request.path, false, line_bytes_max(session)),
        progress_(session, file_) {}

  BatchReport run() {
    BatchSlicer slicer(line_bytes_max(session_));
    FileLine line;
    if (session_.out.json()) session_.out.text("{\"errors\":[");
    while (file_.next(line)) {
      if (slicer.is_full_for(line)) look(slicer);
      slicer.add(line);
      progress_.show(line.number, 0);
    }
    if (!slicer.empty()) look(slicer);
    report_.damage = file_.damage();
    if (session_.out.json()) session_.out.line("]," + counts_of(report_).dump().substr(1));
    session_.out.flush();
    notes_.print(session_.out);
    return report_;
  }

 private:
  void look(BatchSlicer& slicer) {
    Json slice = slicer.take();
    slice.erase("first");
    slice.erase("last");
    slice["options"] = request_.options;
    const Json answer = session_.call("batch.preview", slice);
    notes_.add(answer.at("notes"));
    for (const Json& row : answer.at("rows"))
      count(row);
  }

  void count(Json row) {
    ++report_.lines;
    if (row.at("code").is_null()) {
      // Hashes only: two of them are equal by chance once in many million files.
      const std::size_t id = std::hash<std::string>{}(row.at("custom_id").get<std::string>());
      if (!custom_ids_.insert(id).second) {
        row["code"] = "duplicate_custom_id";
        row["message"] = "an earlier line has this custom_id";
      } else if (row.at("outcome") == "not_cached") {
        row["code"] = "invalid_request";
        row["message"] = "no fresh answer is in the cache";
      }
    }
    if (row.at("code").is_null()) {
      const auto outcome = row.at("outcome").get<std::string>();
      ++(outcome == "created"    ? report_.created
         : outcome == "existing" ? report_.existing
                                 : report_.cached);
      return;
    }
    ++report_.rejected;
    if (!session_.out.json()) return print_fault(session_.out, row);
    row.erase("custom_id");
    row.erase("outcome");
    session_.out.text((report_.rejected > 1 ? "," : "") + row.dump());
  }

  Session& session_;
  const BatchRequest& request_;
  BatchFile file_;
  LoadProgress progress_;
  Notes notes_;
  BatchReport report_;
  std::unordered_set<std::size_t> custom_ids_;
};

}  // namespace

Exit preview_batch(Session& session, const BatchRequest& request) {
  const BatchReport report = Preview(session, request).run();
  if (!report.damage.empty() || report.rejected > 0)
    throw CommandFailed({Exit::usage, report.damage.empty() ? "lines_rejected" : "damaged_gzip",
                         report.damage.empty() ? counts_sentence(report) : report.damage,
                         "--dry-run: nothing was written"});
  if (!session.out.json()) session.out.line(counts_sentence(report));
  return Exit::ok;
}

}  // namespace aiq::cli
