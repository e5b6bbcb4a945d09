// SPDX-License-Identifier: Apache-2.0
#include "serve/channel.h"

#include <array>
#include <cerrno>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>

namespace clew::serve {
namespace {

bool is_passing(int error) {
  return error == EAGAIN || error == EINTR;
}

tl::unexpected<Error> other_end_gone() {
  return fail(ErrorCode::Io, "the other process of clew ui is gone");
}

}  // namespace

int16_t Channel::events() const {
  return static_cast<int16_t>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
}

void Channel::tell(const Frame& frame) {
  unsent_ += to_bytes(frame);
}

Expected<void> Channel::flush() {
  size_t sent = 0;
  while (sent < unsent_.size()) {
    const ssize_t count = send(socket_.get(), unsent_.data() + sent, unsent_.size() - sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && !is_passing(errno)) return other_end_gone();
    if (count <= 0) break;
    sent += static_cast<size_t>(count);
  }
  unsent_.erase(0, sent);
  return {};
}

Expected<void> Channel::read() {
  constexpr int kReadsMax = 8;
  std::array<char, 65536> some;
  for (int reads = 0; reads < kReadsMax; ++reads) {
    const ssize_t count = recv(socket_.get(), some.data(), some.size(), MSG_DONTWAIT);
    if (count < 0 && is_passing(errno)) return {};
    if (count <= 0) return other_end_gone();
    reader_.add(std::string_view(some.data(), static_cast<size_t>(count)));
  }
  return {};
}

}  // namespace clew::serve
