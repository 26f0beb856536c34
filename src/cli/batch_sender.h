#pragma once
// Slices of a batch on their way into the database. With a daemon two are on their way at once:
// while it writes one, it checks the next.

#include <array>
#include <deque>
#include <future>
#include <memory>

#include "cli/session.h"

namespace aiq::cli {

class SliceSender {
 public:
  explicit SliceSender(Session& session) : session_(session) {}

  // Input of batch.append. Needs has_room().
  void send(Json slice);
  [[nodiscard]] bool empty() const { return under_way_.empty(); }
  [[nodiscard]] bool has_room() const;

  struct Settled {
    Json slice;
    Expected<Json, Failure> answer;
  };
  // Waits for the answer to the slice that was sent first. Needs !empty().
  [[nodiscard]] Settled settle();

 private:
  struct Sent {
    std::size_t way;
    Json slice;
    std::future<Expected<Json, Failure>> answer;
  };

  Session& session_;
  std::array<std::unique_ptr<Executor>, 2> ways_;
  std::size_t next_way_ = 0;
  Executor::Where where_ = Executor::Where::none;  // of the last answer
  std::deque<Sent> under_way_;
};

}  // namespace aiq::cli
