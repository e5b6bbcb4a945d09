// SPDX-License-Identifier: Apache-2.0
// One logical thread over the snaps of several processes, from its end back: what a thread ran
// since it received bytes, then what the thread that sent them ran before, and so on. Which call
// has sent what another one has received is known by the bytes of the stream (streams.h), and not
// by time: no clock needs to be right.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "recorder/show.h"
#include "recorder/snap.h"

namespace clew::recorder {

struct ShownSnap {
  Snap snap;
  Shown shown;
};

// Lines of one thread, in their order.
struct Leg {
  size_t snap = 0;    // In those given.
  size_t thread = 0;  // In Shown::threads.
  size_t begin = 0;   // Of its lines; but for the first leg one that receives what the leg in front
  size_t end = 0;     // of it sends by its last line.
  // It has sent what the next one receives: both ends' bytes are counted from the beginning.
  bool is_sure = true;
};

// Oldest first; `last` lines in all. It ends with the first snap's thread of that number in
// Shown::threads.
std::vector<Leg> across(std::span<const ShownSnap> snaps, size_t thread, size_t last);

}  // namespace clew::recorder
