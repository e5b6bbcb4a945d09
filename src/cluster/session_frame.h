// SPDX-License-Identifier: Apache-2.0
// What a node and the process that runs one of its sessions say to each other over a stream socket,
// frame by frame:
//
//     u32 size of what follows    u8 kind    i64 pane    u32 size of the text    text    bytes
//
// Little endian. The node sends Want, once, and closes its side when the session is to end. The
// session sends Armed or Failed, then Pane and Warning, and Ended or Failed as the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/roles.h"

namespace clew::cluster {

enum class FrameKind : uint8_t {
  Want,     // text: the query; bytes: what a SessionWant has beside it.
  Armed,    // text: what is answered, in normal form (query/print.h).
  Pane,     // pane; bytes: the table (aggregate/table_bytes.h), with all losses so far.
  Warning,  // text
  Failed,   // text: why; pane: its ErrorCode.
  Ended,    // All is taken out.
};

struct Frame {
  FrameKind kind = FrameKind::Ended;
  int64_t pane = 0;
  std::string text{};
  std::vector<std::byte> bytes{};
};

// What a node asks a session for.
struct SessionWant {
  std::string text;
  std::vector<std::string> name_patterns;  // Of processes, beside what the query says.
  int64_t epoch_ns = 0;                    // Of panes,
  int64_t width_ns = 0;
  int64_t offset_ns = 0;       // and of the clock by which they go (session::PaneClock).
  std::optional<Role> role{};  // Of who asked, where nodes ask for that.
};

inline constexpr uint32_t kFrameMax = 1U << 29;

[[nodiscard]] std::vector<std::byte> to_bytes(const Frame& frame);
[[nodiscard]] Frame frame_of(const SessionWant& want);
// Io: it makes no sense.
[[nodiscard]] Expected<SessionWant> want_of(const Frame& frame);

// Puts frames together from what was read.
class FrameReader {
 public:
  void add(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // None: more has to come. Io: the other side does not speak so.
  [[nodiscard]] Expected<std::optional<Frame>> take();
  // Whether a frame has begun.
  [[nodiscard]] bool is_inside() const { return !bytes_.empty(); }

 private:
  std::vector<std::byte> bytes_;
};

// All of it, however often that takes. Io: nobody reads any more.
Expected<void> write_all(int socket, std::span<const std::byte> bytes);

}  // namespace clew::cluster
