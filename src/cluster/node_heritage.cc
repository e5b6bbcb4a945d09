// SPDX-License-Identifier: Apache-2.0
// What a node with our name and our folder has left, and what is left of queries that have ended:
// it is sent until a root says that it is safe.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cluster/node.h"

namespace clew::cluster {
namespace {

// For a mark of what was sent: a root that knows the query answers within a second.
constexpr int64_t kHeritageWait = 60 * kSecond;
constexpr int64_t kHeritageAgain = 5 * kSecond;
constexpr int64_t kSafeWait = 2 * kSecond;  // Its last beat may be lost.
constexpr size_t kCountedMost = 10'000;

}  // namespace

Expected<void> Node::inherit() {
  if (spill_ == nullptr || !heritage_.empty()) return {};
  for (const LeftFile& left : CLEW_TRY(spill_->take_left())) {
    // Under another name it would be counted once more.
    if (left.owner.tenant != options_.tenant || left.owner.node != options_.name) {
      notes_.push_back(
          fmt::format("query {}: what node {} has left in the spill folder stays there",
                      left.owner.query, left.owner.node));
      continue;
    }
    const auto same = std::find_if(heritage_.begin(), heritage_.end(), [&](const Heritage& each) {
      const SpillOwner& owner = each.outbox.spill().owner();
      return is_of(owner, left.owner.query, left.owner.revision) &&
             owner.incarnation == left.owner.incarnation;
    });
    if (same != heritage_.end()) {
      same->outbox.spill().add(left);
      continue;
    }
    Heritage one{.outbox = Outbox(Spill(left.owner, options_.spill_bytes_max, spill_),
                                  options_.incarnation.start_ns)};
    one.outbox.spill().add(left);
    notes_.push_back(
        fmt::format("query {}: sends what the node before has left", left.owner.query));
    heritage_.push_back(std::move(one));
  }
  if (spill_->unreadable() != 0) {
    notes_.push_back(
        fmt::format("{} files in the spill folder are damaged, or of another version, "
                    "and stay there",
                    spill_->unreadable()));
  }
  return {};
}

// Whoever waits for a query waits for that, too.
void Node::add_heritage(Beat& said) const {
  for (const Heritage& one : heritage_) {
    const SpillOwner& owner = one.outbox.spill().owner();
    const auto known = std::find_if(
        said.queries.begin(), said.queries.end(),
        [&owner](const NodeQuery& each) { return is_of(owner, each.query, each.revision); });
    // It is not known before that is read.
    if (known != said.queries.end())
      known->sequence = std::max(known->sequence, one.outbox.sequence());
    if (one.sent_ns != 0) continue;
    if (known == said.queries.end()) {
      said.queries.push_back(
          {.query = owner.query, .revision = owner.revision, .state = NodeState::Draining});
    } else if (known->state != NodeState::Armed) {
      known->state = NodeState::Draining;
    }
  }
}

// Until it is marked, or no root knows the query any more.
void Node::send(Heritage& one, int64_t until_ns) {
  constexpr Pane kAll = std::numeric_limits<Pane>::max();
  const int64_t now = clock_.monotonic_ns();
  (void)one.outbox.send(bus_, subjects_, clock_, log_, until_ns);
  const bool is_sent = one.outbox.spill().next() == nullptr;
  if (is_sent && one.sent_ns == 0) one.sent_ns = now;
  if (is_sent && now - one.sent_ns > kHeritageWait) one.outbox.spill().forget(kAll);
  // No beat names it, so nobody asks for it again.
  if (is_sent && now - one.again_ns > kHeritageAgain) {
    if (std::exchange(one.again_ns, now) != 0) one.outbox.send_again({kAllPanes});
  }
}

// Nobody waits for what has ended and is safe. What no root takes is kept for a lease, and what was
// not sent until it is.
void Node::forget_closed() {
  const int64_t now = clock_.monotonic_ns();
  for (auto each = tasks_.begin(); each != tasks_.end();) {
    Task& task = each->second;
    const bool is_over = task.session == nullptr && !task.is_wanted;
    const bool is_old = now - task.ended_ns > static_cast<int64_t>(task.want.lease_ns);
    const bool is_safe = task.outbox.spill().empty();
    if (!is_over || !(is_old || (is_safe && now - task.ended_ns > kSafeWait))) {
      ++each;
      continue;
    }
    if (task.taken != kNoPane && counted_.size() < kCountedMost) {
      counted_[{task.want.query, task.want.revision}] = {.taken = task.taken,
                                                         .safe = task.outbox.spill().safe()};
    }
    if (!is_safe) heritage_.push_back({.outbox = std::move(task.outbox)});
    each = tasks_.erase(each);
  }
}

}  // namespace clew::cluster
