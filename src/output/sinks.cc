// SPDX-License-Identifier: Apache-2.0
#include "output/sinks.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <poll.h>
#include <unistd.h>

namespace clew::output {
namespace {

constexpr size_t kUnwrittenMax = size_t{64} << 10;

// Until a page can be written at once.
bool has_room(int fd, std::chrono::nanoseconds patience) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const timespec timeout{.tv_sec = patience.count() / kSecondNs,
                         .tv_nsec = patience.count() % kSecondNs};
  pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
  return ppoll(&room, 1, &timeout, nullptr) != 0;
}

}  // namespace

int write_patiently(int fd, std::string_view bytes, std::chrono::nanoseconds patience) {
  while (!bytes.empty()) {
    if (!has_room(fd, patience)) return ETIMEDOUT;
    const ssize_t written = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EAGAIN && errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void FileSink::write(std::string_view bytes) {
  unwritten_ += bytes;
  if (unwritten_.size() >= kUnwrittenMax) flush_all();
}

void FileSink::flush_all() {
  std::string_view bytes = unwritten_;
  if (patience_ != std::chrono::nanoseconds::max() && error_ == 0) {
    error_ = write_patiently(fd_, bytes, patience_);
    bytes = {};
  }
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
