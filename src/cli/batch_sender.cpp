#include "cli/batch_sender.h"

#include <utility>

#include "core/base/check.h"

namespace aiq::cli {

bool SliceSender::has_room() const {
  // Without a daemon two would only wait for each other's lock of the file.
  return under_way_.empty() ||
         (where_ == Executor::Where::daemon && under_way_.size() < ways_.size());
}

void SliceSender::send(Json slice) {
  AIQ_CHECK(has_room());
  std::unique_ptr<Executor>& way = ways_[next_way_];
  if (!way) way = session_.make_executor();
  Executor& executor = *way;
  Sent& sent = under_way_.emplace_back(Sent{next_way_, std::move(slice), {}});
  next_way_ = (next_way_ + 1) % ways_.size();
  // Elements of a deque stay where they are while others come and go at its ends.
  sent.answer = std::async(std::launch::async,
                           [&executor, &sent] { return executor.run("batch.append", sent.slice); });
}

SliceSender::Settled SliceSender::settle() {
  AIQ_CHECK(!under_way_.empty());
  Sent& sent = under_way_.front();
  auto answer = sent.answer.get();
  where_ = ways_[sent.way]->where();
  if (answer && answer->is_object()) session_.tell_warnings(*answer);
  Settled out{std::move(sent.slice), std::move(answer)};
  under_way_.pop_front();
  return out;
}

}  // namespace aiq::cli
