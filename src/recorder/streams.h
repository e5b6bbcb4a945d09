// SPDX-License-Identifier: Apache-2.0
// Which bytes of its stream each call of a process has moved. The snap says how many bytes a
// connection has carried; counted back from there, by the calls of all threads that have moved some
// of them, each has its place. It ends where that is not sure: a descriptor that had been closed, a
// call that has not come back or does not say how many, two that ran at once, a lost record. If the
// count comes to the connection's beginning, it has to be 0 there: then no call is missing, and
// else nothing is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "recorder/snap.h"
#include "recorder/snap_modules.h"
#include "recorder/transfers.h"

namespace clew::recorder {

// Bytes of one direction, counted from the beginning of the connection.
struct StreamBytes {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool operator==(const StreamBytes&) const = default;
};

struct StreamCall {
  size_t thread = 0;  // In Snap::threads.
  TransferCall call;
  bool waits = false;                  // In the kernel, and has moved nothing yet.
  std::optional<size_t> stream{};      // In Snap::streams.
  std::optional<StreamBytes> bytes{};  // None where nothing was moved, or that is not known.
  bool is_sure = false;                // They are counted from the connection's beginning, too.
};

// By the moment when they began; those of all threads.
std::vector<StreamCall> stream_calls(const SnapModules& modules, const Snap& snap);
// The same, of calls in that order that are without streams and bytes. `known_from`: of later
// moments no call is missing. For tests.
void find_bytes(const Snap& snap, uint64_t known_from, std::vector<StreamCall>& calls);

}  // namespace clew::recorder
