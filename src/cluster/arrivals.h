// SPDX-License-Identifier: Apache-2.0
// What has come for one end of a bus and waits for its thread: messages, complaints, and that the
// connection has changed; with a descriptor that is readable meanwhile. Any thread puts in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "cluster/bus.h"

namespace clew::cluster {

// What does not fit is given up, the latest first.
inline constexpr size_t kArrivalsMax = 65'536;
inline constexpr size_t kArrivalBytesMax = 64 << 20;
inline constexpr size_t kComplaintsMax = 64;

class Arrivals {
 public:
  Arrivals();

  void put(Message message);
  void complain(std::string complaint);
  void ring();  // The connection has changed.

  // Nothing: the descriptor is quiet from now on.
  std::optional<Message> next();
  std::vector<std::string> take_complaints();
  [[nodiscard]] uint64_t dropped() const;
  [[nodiscard]] int descriptor() const { return event_.get(); }

 private:
  void ring_locked();

  mutable std::mutex mutex_;
  std::deque<Message> messages_;
  size_t bytes_ = 0;
  std::vector<std::string> complaints_;
  uint64_t complaints_left_out_ = 0;
  uint64_t dropped_ = 0;
  bool is_ringing_ = false;
  FileDescriptor event_;
};

}  // namespace clew::cluster
