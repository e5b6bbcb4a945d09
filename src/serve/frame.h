// SPDX-License-Identifier: Apache-2.0
// What the keeper of sessions and the process that speaks HTTP say to each other, over a pair of
// sockets. Neither trusts the other's lengths.
//
//   | size of the rest: u32 | kind: u8 | number of a child: u32 | fields: (size: u32, bytes)* |
//
// In the machine's byte order: both are one program on one machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::serve {

enum class FrameKind : uint8_t {
  // To the keeper.
  Start,  // A child: `fields` are its task and the words of it (task.h).
  Stop,   // It, as Ctrl-C does.
  // From the keeper.
  Output,    // Some of its standard output: one field.
  Messages,  // Some of its standard error: one field.
  Ended,     // It is gone: its exit status in decimal, "signal N", or "refused"; then why.
};
inline constexpr uint8_t kFrameKinds = 5;

struct Frame {
  FrameKind kind = FrameKind::Start;
  uint32_t child = 0;
  std::vector<std::string> fields{};
};

inline constexpr uint32_t kFrameBytesMax = 256 << 10;
inline constexpr size_t kFrameFieldsMax = 64;

[[nodiscard]] std::string to_bytes(const Frame& frame);

// Takes bytes as they come, and gives frames.
class FrameReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  // Nothing: there is no whole one yet. Errors: what came is no frame, and nothing after it is.
  Expected<std::optional<Frame>> take();

 private:
  std::string bytes_;
  size_t at_ = 0;  // What is in front of it is taken.
};

}  // namespace clew::serve
