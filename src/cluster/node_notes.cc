// SPDX-License-Identifier: Apache-2.0
// What a node says, for people, of the bus and of roots: whether they are there, and what goes
// wrong with them.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cluster/node.h"

namespace clew::cluster {
namespace {

// Longer than one takes over.
constexpr int64_t kRootlessTold = 10 * kSecond;

}  // namespace

void Node::look_at_bus() {
  const bool is_connected = bus_.is_connected();
  if (std::exchange(was_connected_, is_connected) == is_connected) return;
  notes_.emplace_back(is_connected
                          ? "the bus is reached again"
                          : "the bus is not reached: what is counted is kept, and sent later");
  if (!is_connected) return;
  // What was said meanwhile was said to nobody.
  is_want_known_ = false;
  wants_beat_ = true;
  reached_ns_ = clock_.monotonic_ns();
}

// Where the bus is not reached nobody knows.
void Node::look_for_root() {
  const int64_t now = clock_.monotonic_ns();
  const bool is_heard = now - heard_ns_ < kRootlessTold;
  const bool is_silent = was_connected_ && now - std::max(heard_ns_, reached_ns_) >= kRootlessTold;
  if (is_heard && !has_root_) notes_.emplace_back("a root is there");
  if (is_silent && has_root_) {
    notes_.emplace_back(
        "no root is there: none has answered for 10 s (`clew root` is one, and `clew run "
        "--cluster` brings one)");
  }
  has_root_ = is_heard || (has_root_ && !is_silent);
}

// What is not permitted is tried again, in case that changes, and told once.
void Node::tell_refusal(const Error& error) {
  if (error.code != ErrorCode::Refused || error.message == refusal_) return;
  refusal_ = error.message;
  notes_.push_back("the server does not permit what a node does: " + error.message);
}

void Node::tell_problem(const std::string& about, const Error& error) {
  if (error.code == ErrorCode::Refused) return tell_refusal(error);
  complain(about, error.message);
}

// For people: once, until it goes right again or goes wrong in another way.
void Node::complain(const std::string& about, const std::string& problem) {
  if (problem.empty()) {
    complaints_.erase(about);
  } else if (std::exchange(complaints_[about], problem) != problem) {
    notes_.push_back(fmt::format("{}: {}", about, problem));
  }
}

}  // namespace clew::cluster
