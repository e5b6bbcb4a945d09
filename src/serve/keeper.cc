// SPDX-License-Identifier: Apache-2.0
#include "serve/keeper.h"

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace clew::serve {
namespace {

constexpr size_t kChildrenMax = 64;
constexpr size_t kPassedOnBytes = 65536;
constexpr int kNoTimeout = -1;
constexpr int kLastReadsMax = 32;  // More than a pipe holds.

}  // namespace

Expected<void> Keeper::run(int stop_descriptor) {
  Expected<void> ran;
  while (!is_ending_ || !children_.empty()) {
    Expected<void> turned = turn(stop_descriptor);
    if (turned || is_alone_) continue;
    ran = std::move(turned);
    is_alone_ = true;
    is_ending_ = true;
    stop_all();
  }
  return ran;
}

Expected<void> Keeper::turn(int stop_descriptor) {
  std::vector<pollfd> waited{{is_ending_ ? -1 : stop_descriptor, POLLIN, 0},
                             {is_alone_ ? -1 : channel_.descriptor(), channel_.events(), 0}};
  const bool passes_on = is_alone_ || !channel_.is_full();
  for (const auto& [number, kept] : children_) {
    waited.push_back({passes_on && kept.has_output ? kept.child.output.get() : -1, POLLIN, 0});
    waited.push_back({passes_on && kept.has_messages ? kept.child.messages.get() : -1, POLLIN, 0});
    waited.push_back({passes_on ? kept.child.gone.get() : -1, POLLIN, 0});
  }
  (void)poll(waited.data(), waited.size(), kNoTimeout);
  pass_all_on(std::span(waited).subspan(2));
  if (waited[0].revents != 0) stop_all();
  if (is_alone_) return {};
  if ((waited[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) CLEW_TRY(listen());
  return channel_.flush();
}

// Three descriptors of each child were waited for.
void Keeper::pass_all_on(std::span<const pollfd> waited) {
  for (auto at = children_.begin(); at != children_.end(); waited = waited.subspan(3)) {
    auto& [number, kept] = *at;
    if (waited[0].revents != 0) pass_on(FrameKind::Output, number, kept);
    if (waited[1].revents != 0) pass_on(FrameKind::Messages, number, kept);
    const bool is_gone = waited[2].revents != 0;
    if (is_gone) bury(number, kept);
    at = is_gone ? children_.erase(at) : std::next(at);
  }
}

Expected<void> Keeper::listen() {
  CLEW_TRY(channel_.read());
  while (true) {
    const std::optional<Frame> frame = CLEW_TRY(channel_.take());
    if (!frame) return {};
    obey(*frame);
  }
}

void Keeper::obey(const Frame& frame) {
  const auto kept = children_.find(frame.child);
  if (frame.kind == FrameKind::Stop && kept != children_.end()) kept->second.child.stop();
  if (frame.kind == FrameKind::Start && kept == children_.end() && !is_ending_) start(frame);
}

void Keeper::start(const Frame& frame) {
  const auto refuse = [&](const std::string& why) {
    channel_.tell({FrameKind::Ended, frame.child, {"refused", why}});
  };
  if (children_.size() == kChildrenMax) return refuse("too much runs at the same time");
  const Expected<Command> command = command_of(frame.fields, rules_);
  if (!command) return refuse(command.error().message);
  Expected<Child> child = Child::start(*command);
  if (!child) return refuse(child.error().message);
  children_.emplace(frame.child, Kept{.child = std::move(*child)});
}

bool Keeper::pass_on(FrameKind kind, uint32_t number, Kept& kept) {
  const bool is_output = kind == FrameKind::Output;
  const FileDescriptor& from = is_output ? kept.child.output : kept.child.messages;
  std::array<char, kPassedOnBytes> some;
  const ssize_t count = read(from.get(), some.data(), some.size());
  if (count < 0) return errno == EINTR;
  if (count == 0) {
    (is_output ? kept.has_output : kept.has_messages) = false;
  } else if (!is_alone_) {
    channel_.tell({kind, number, {std::string(some.data(), static_cast<size_t>(count))}});
  }
  return count > 0;
}

// What it wrote last is in the pipes, which a process that it has started may hold open.
void Keeper::bury(uint32_t number, Kept& kept) {
  for (const FrameKind kind : {FrameKind::Output, FrameKind::Messages}) {
    int reads = 0;
    while (reads < kLastReadsMax && pass_on(kind, number, kept))
      ++reads;
  }
  channel_.tell({FrameKind::Ended, number, {kept.child.status()}});
}

void Keeper::stop_all() {
  is_ending_ = true;
  for (auto& [number, kept] : children_)
    kept.child.stop();
}

}  // namespace clew::serve
