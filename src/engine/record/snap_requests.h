// SPDX-License-Identifier: Apache-2.0
// Where a recorder is asked for a snap: a socket of the abstract name space, whose name nobody can
// take before us, as a part of it is random. Only the recorder's own user and root are heard, by
// the credentials that the kernel has of them.
//
//     clew snap                                   clew record
//     connects to "clew-record-PID-RANDOM"
//     {magic 4, process 4}                   -->
//                                            <--  {magic 4, SnapAnswer 4}, with a sealed memfd that
//                                                 holds the snap (recorder/snap.h)
//
// So the recorder writes no file for others, and neither side waits for the other without a limit:
// the recorder takes what is there, and forgets the oldest of too many who ask nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::engine {

inline constexpr uint32_t kSnapMagic = 0x534e4150;
inline constexpr size_t kSnapSocketNameMax = 64;

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

// "clew-record-PID-"; the rest of a recorder's name is random.
std::string snap_socket_prefix(pid_t recorder);

class SnapRequests {
 public:
  // Errors: Io.
  static Expected<SnapRequests> open();

  // Readable when somebody wants something.
  [[nodiscard]] int descriptor() const { return waits_.get(); }

  struct Request {
    FileDescriptor asker;
    pid_t process = 0;
  };
  // The next question that is there. Does not wait.
  std::optional<Request> next();

  // Does not wait: who does not take the answer has none.
  static void refuse(const Request& request, SnapAnswer answer);
  static void answer(const Request& request, std::span<const uint8_t> snap);

 private:
  SnapRequests(FileDescriptor socket, FileDescriptor waits)
      : socket_(std::move(socket)), waits_(std::move(waits)) {}
  void accept_all();

  FileDescriptor socket_;
  FileDescriptor waits_;  // epoll(7), of the socket and all connections.
  std::deque<FileDescriptor> askers_;
};

}  // namespace clew::engine
