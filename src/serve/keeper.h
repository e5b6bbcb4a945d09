// SPDX-License-Identifier: Apache-2.0
// The process of `clew ui` that has the rights to trace. It starts commands of ours as its children
// and passes on what they write; it reads no byte of a browser's and none of their answers. The
// process that speaks HTTP asks it over a channel (frame.h) for tasks of a closed list (task.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include <poll.h>

#include "serve/channel.h"
#include "serve/child.h"
#include "serve/task.h"

namespace clew::serve {

class Keeper {
 public:
  Keeper(Channel channel, const TaskRules& rules) : channel_(std::move(channel)), rules_(rules) {}

  // Until the stop descriptor is readable, or the other process is gone, which is an error. Then
  // all children are stopped, and none is left.
  Expected<void> run(int stop_descriptor);

 private:
  struct Kept {
    Child child;
    bool has_output = true;
    bool has_messages = true;
  };
  using Children = std::map<uint32_t, Kept>;

  Expected<void> turn(int stop_descriptor);
  void pass_all_on(std::span<const pollfd> waited);
  Expected<void> listen();
  void obey(const Frame& frame);
  void start(const Frame& frame);
  // False: there is nothing more to pass on now.
  bool pass_on(FrameKind kind, uint32_t number, Kept& kept);
  void bury(uint32_t number, Kept& kept);
  void stop_all();

  Channel channel_;
  TaskRules rules_;
  Children children_;
  bool is_ending_ = false;
  bool is_alone_ = false;  // The other process is gone.
};

}  // namespace clew::serve
