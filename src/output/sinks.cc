// SPDX-License-Identifier: Apache-2.0
#include "output/sinks.h"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace clew::output {
namespace {

constexpr size_t kUnwrittenMax = size_t{64} << 10;

}  // namespace

void FileSink::write(std::string_view bytes) {
  unwritten_ += bytes;
  if (unwritten_.size() >= kUnwrittenMax) flush_all();
}

void FileSink::flush_all() {
  std::string_view bytes = unwritten_;
  while (error_ == 0 && !bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd waiting{.fd = fd_, .events = POLLOUT, .revents = 0};
      (void)poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  unwritten_.clear();
}

// A pipe is writable while it has room for a page.
bool FileSink::ready() const {
  pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
  return error_ != 0 || poll(&room, 1, 0) != 0;
}

}  // namespace clew::output
