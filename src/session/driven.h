// SPDX-License-Identifier: Apache-2.0
// What a session's loop gives turns to (loop.h): the sources of a query, the parts of a D session.
// All functions are called by one thread.
#pragma once

#include <chrono>
#include <vector>

#include <poll.h>

#include "base/error.h"
#include "collect/losses.h"

namespace clew::session {

class Driven {
 public:
  Driven() = default;
  Driven(const Driven&) = delete;
  Driven& operator=(const Driven&) = delete;
  virtual ~Driven() = default;

  // What becomes readable when it wants a turn before its patience is over.
  virtual void add_descriptors(std::vector<pollfd>& /*descriptors*/) {}
  // How long it may be left alone. May itself wait some milliseconds for what has no descriptor.
  virtual std::chrono::nanoseconds patience() = 0;
  // Its turn: takes over what cannot wait.
  virtual Expected<void> turn() { return {}; }
  // Five times a second.
  virtual void keep_house() {}
  // Takes out probes whose hits ran out of fuel; each is told once.
  virtual std::vector<collect::DisarmedProbe> disarm_spinning() { return {}; }
};

}  // namespace clew::session
