// SPDX-License-Identifier: Apache-2.0
// One end of the pair of sockets: frames in and out, never waiting.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "serve/frame.h"

namespace clew::serve {

class Channel {
 public:
  explicit Channel(FileDescriptor socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  // Of poll(2): what is waited for there.
  [[nodiscard]] int16_t events() const;
  // So much waits to be written that whoever makes more had better wait.
  [[nodiscard]] bool is_full() const { return unsent_.size() > kUnsentBytesMax; }

  void tell(const Frame& frame);
  // Writes what can be written. Errors: the other end is gone.
  Expected<void> flush();
  // Reads what is there, but a bounded part of much. Errors: the other end is gone.
  Expected<void> read();
  // As FrameReader::take().
  Expected<std::optional<Frame>> take() { return reader_.take(); }

 private:
  static constexpr size_t kUnsentBytesMax = 1 << 20;
  FileDescriptor socket_;
  std::string unsent_;
  FrameReader reader_;
};

}  // namespace clew::serve
