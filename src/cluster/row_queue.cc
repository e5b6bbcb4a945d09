// SPDX-License-Identifier: Apache-2.0
#include "cluster/row_queue.h"

#include <utility>

namespace clew::cluster {

// Of too many the oldest go; whoever waits for one sees the gap.
void RowQueue::add(Bytes message, int64_t now_ns) {
  bytes_ += message.size();
  sent_.push_back({.number = ++last_, .time_ns = now_ns, .message = std::move(message)});
  while (bytes_ > kBytesMax && sent_.size() > 1)
    forget(sent_.front().number);
}

void RowQueue::forget(uint64_t number) {
  while (!sent_.empty() && sent_.front().number <= number) {
    bytes_ -= sent_.front().message.size();
    sent_.pop_front();
  }
}

std::vector<Bytes> RowQueue::take_unheard(int64_t now_ns) {
  std::vector<Bytes> unheard;
  for (Sent& each : sent_) {
    if (now_ns - each.time_ns < kAgainAfter) continue;
    each.time_ns = now_ns;
    unheard.push_back(each.message);
  }
  return unheard;
}

}  // namespace clew::cluster
