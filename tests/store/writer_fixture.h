#pragma once
// A writer over a file, and means to hold it still and to wait for its answers.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/store/writer.h"
#include "store/store_fixture.h"

namespace aiq::test {

using Priority = WritePriority;

// Lets a test wait for something to have happened, with a deadline. Who opens it keeps its state
// alive: who waits may be gone before open() returns.
class Gate {
 public:
  void open() {
    const auto state = state_;
    const std::lock_guard lock(state->mutex);
    state->open = true;
    state->changed.notify_all();
  }
  void pass() {
    std::unique_lock lock(state_->mutex);
    if (!state_->changed.wait_for(lock, std::chrono::seconds(60),
                                  [this] { return state_->open; })) {
      throw std::runtime_error("nobody opened the gate");
    }
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class Answers {
 public:
  Writer::Done expect() {
    const std::lock_guard lock(state_->mutex);
    const std::size_t index = state_->answers.size();
    state_->answers.emplace_back();
    ++state_->open;
    return [state = state_, index](std::exception_ptr error) {
      const std::lock_guard inner(state->mutex);
      state->answers[index] = error;
      --state->open;
      state->changed.notify_all();
    };
  }
  // All that were expected, in their order.
  std::vector<std::exception_ptr> wait() {
    std::unique_lock lock(state_->mutex);
    if (!state_->changed.wait_for(lock, std::chrono::seconds(60),
                                  [this] { return state_->open == 0; })) {
      throw std::runtime_error("an operation was not answered");
    }
    return state_->answers;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::exception_ptr> answers;
    int open = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

inline std::string words_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

inline std::optional<StoreError::Kind> kind_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const StoreError& e) {
    return e.kind();
  } catch (...) {
  }
  return std::nullopt;
}

inline Writer::Operation submitting(const std::string& text) {
  return [s = request(text)](Store& store) { store.submit(s, kStart); };
}

struct OnDisk {
  explicit OnDisk(const WriterConfig& config = {}, const StoreOptions& options = {})
      : writer(open_store(folder.file(), options, kStart, true), config, system_clock()) {}

  // Occupies the writer thread inside an open group until `gate` opens: what is posted meanwhile
  // joins that group.
  void hold(Gate& gate, Answers& answers) {
    Gate entered;
    writer.post(
        Priority::renewal,
        [&gate, entered_gate = &entered, first = std::make_shared<bool>(true)](Store&) {
          if (*first) {
            *first = false;
            entered_gate->open();
          }
          gate.pass();
        },
        answers.expect());
    entered.pass();
  }
  std::set<std::string> jobs() {
    std::set<std::string> names;
    for (const JobRow& row : open_reader(folder.file())->list_jobs({}, {0, 1000})) {
      names.insert(row.correlation_id);
    }
    return names;
  }

  TempFolder folder;
  Writer writer;
};

// No operation of a test may miss its group because the machine was slow.
inline WriterConfig patient() {
  WriterConfig config;
  config.max_hold_ms = 60'000;
  return config;
}

}  // namespace aiq::test
