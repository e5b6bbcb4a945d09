// SPDX-License-Identifier: Apache-2.0
// Where a recorder is asked for a snap: a socket of the abstract name space, whose name nobody can
// take before us, as a part of it is random. Only the recorder's own user and root are heard, by
// the credentials that the kernel has of them.
//
//     clew snap                                   clew record
//     connects to "clew-record-PID-RANDOM", or "clew-record-PID-RANDOM-GROUP"
//     {magic 4, process 4}                   -->
//                                            <--  {magic 4, SnapAnswer 4}, with a sealed memfd that
//                                                 holds {size 8, snap (recorder/snap.h)} for each
//                                                 process
//
// So the recorder writes no file for others, and neither side waits for the other without a limit:
// the recorder takes what is there, and forgets the oldest of too many who ask nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "recorder/snap.h"

namespace clew::engine {

inline constexpr uint32_t kSnapMagic = 0x534e4150;
inline constexpr std::string_view kSnapSocketPrefix = "clew-record-";
inline constexpr size_t kSnapSocketNameMax = 80;
inline constexpr uint64_t kSnapBytesMax = uint64_t{1} << 30;  // Of an answer.
inline constexpr pid_t kAllProcesses = 0;                     // That the recorder has.

struct SnapQuestion {
  uint32_t magic = kSnapMagic;
  int32_t process = 0;
};

enum class SnapAnswer : uint32_t {
  Made,        // The snap comes with it.
  NotWatched,  // It is not, or no more, a process of this recorder.
  Failed,      // There was no memory for it.
};

struct SnapReply {
  uint32_t magic = kSnapMagic;
  SnapAnswer answer = SnapAnswer::Failed;
};

class SnapRequests {
 public:
  // `group` is a part of the name, unless it is empty: recorder::check_group(). Errors: Io.
  static Expected<SnapRequests> open(const std::string& group);

  // Readable when somebody wants something.
  [[nodiscard]] int descriptor() const { return waits_.get(); }

  struct Request {
    FileDescriptor asker;
    pid_t process = kAllProcesses;
  };
  // The next question that is there. Does not wait.
  std::optional<Request> next();

  // Does not wait: who does not take the answer has none.
  static void refuse(const Request& request, SnapAnswer answer);
  static void answer(const Request& request, std::span<const recorder::Snap> snaps);

 private:
  SnapRequests(FileDescriptor socket, FileDescriptor waits)
      : socket_(std::move(socket)), waits_(std::move(waits)) {}
  void accept_all();

  FileDescriptor socket_;
  FileDescriptor waits_;  // epoll(7), of the socket and all connections.
  std::deque<FileDescriptor> askers_;
};

}  // namespace clew::engine
